"""Evaluation and audit over HTTP."""

import sqlite3

import pytest
from support.servers import running

from dowise import Experiment, load_problem

API = "/api/experiments/ward 7"


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        ("ids", {"samples": 10**12}, "samples=1e+12"),
        ("ids", {"samples": 1e300}, "samples=1e+300"),
        ("ts", {"propensity_samples": 10_001}, "propensity_samples=10001"),
        ("bayes-optimal", {"horizon": 14, "max_states": 10**9}, "max_states=1e+09"),
    ],
)
def test_evaluation_refuses_expensive_options(ward, policy, options, message):
    body = {"policy": policy, "options": options}
    answer = ward.client("read").post(f"{API}/evaluate", json=body)
    assert answer.status_code == 422, answer.text
    assert message in answer.json()["detail"] and "10,000" in answer.json()["detail"]


def test_readers_may_evaluate(ward):
    admin = ward.client("admin")
    for _ in range(3):
        decision = admin.post(f"{API}/ask", json={"context": {"C": "0"}}).json()
        values = {"X1": "0", "Z": "0", "X2": "0", "Y": "1"}
        outcome = {name: value for name, value in values.items() if name not in decision["arm"]}
        response = admin.post(f"{API}/tell/{decision['id']}", json={"values": outcome})
        assert response.status_code == 200
    body = {"policy": "ids", "options": {"samples": 10_000}}
    answer = ward.client("read").post(f"{API}/evaluate", json=body)
    assert answer.status_code == 200, answer.text


def test_an_audit_reads_the_store_again(tmp_path):
    """The server does not trust what it has in memory."""
    store = tmp_path / "ward.db"
    with Experiment.create(store, "ward", load_problem("task1"), "ucb", seed=7) as experiment:
        for _ in range(3):
            experiment.tell(experiment.ask().id, {"Z": 0, "Y": 1})
    with running(store) as server:
        reader, browser = server.client("read"), server.browser("read")
        url, page = "/api/experiments/ward/audit", "/experiments/ward/history/audit"
        assert reader.get(url).json()["ok"]
        assert "is complete" in browser.get(page).text
        with sqlite3.connect(store) as database:
            change = """UPDATE events SET body = replace(body, '"Y":"1"', '"Y":"0"') """
            assert database.execute(f"{change} WHERE number = 3").rowcount == 1
        database.close()
        audit = reader.get(url).json()
        assert not audit["ok"] and audit["finding"]["event"] == 3
        assert "The record has an error" in browser.get(page).text
