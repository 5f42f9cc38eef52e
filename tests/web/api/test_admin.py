"""Create and revise experiments over HTTP, also with custom policies."""

import json
from contextlib import contextmanager

import pytest
from support.experiments import OrderDependentPolicy

from dowise import register_policy
from dowise.experiment import config as config_module
from dowise.policies import registry
from dowise.problem.problem_file import parse_problem


@pytest.fixture
def custom_policy(monkeypatch):
    """A policy that was loaded when the server started."""
    monkeypatch.setattr(registry, "_POLICIES", {**registry._POLICIES})
    register_policy("in-order", learns_from="everything")(OrderDependentPolicy)


GRAPH = 'graph = "X -> Y; Z -> Y"\nreward = "Y"\n'


@pytest.mark.slow
@pytest.mark.usefixtures("custom_policy")
def test_custom_policies_loaded_by_the_operator_can_be_used(ward):
    client = ward.client()
    body = {"name": "own", "problem": GRAPH, "policy": "in-order"}
    assert client.post("/api/experiments", json=body).status_code == 201
    at = "/api/experiments/own"
    assert client.post(f"{at}/ask", json={}).json()["text"].startswith("do(")
    change = {"policy": "ids", "options": {"samples": 20}, "reason": "quicker"}
    assert client.post(f"{at}/revise", json=change).json()["policy"] == "ids"
    back = {"policy": "in-order", "reason": "no"}
    assert client.post(f"{at}/revise", json=back).json()["policy"] == "in-order"


def test_an_option_that_is_not_a_number_is_named(ward):
    text = json.dumps({"name": "nan", "problem": GRAPH, "options": {"floor": float("nan")}})
    headers = {"content-type": "application/json"}
    answer = ward.client().post("/api/experiments", content=text, headers=headers)
    assert answer.status_code == 422 and "floor=nan" in answer.text


@pytest.mark.slow
def test_byte_order_marks_and_line_ends_are_normalized(ward):
    client, text = ward.client(), "\ufeff" + GRAPH.replace("\n", "\r\n")
    assert client.post("/api/preview", json={"problem": text}).status_code == 200
    body = {"name": "from an editor", "problem": text, "policy": "ucb"}
    answer = client.post("/api/experiments", json=body)
    assert answer.status_code == 201, answer.text
    at, change = "/api/experiments/from an editor", {"problem": text + "minimise = true\r\n"}
    assert client.post(f"{at}/revise", json=change | {"reason": "a cost"}).status_code == 200


NOTED = GRAPH + 'forbidden = ["do(X=1)"]\narms = "pomis"\n'


@pytest.mark.slow
def test_notes_on_a_new_problem_are_in_the_response(ward):
    client, message = ward.client(), "with forbidden assignments the best arm need not be"
    body = {"name": "noted", "problem": NOTED, "policy": "random"}
    page = client.post("/api/experiments", json=body).json()
    (note,) = page["notes"]
    assert note.startswith(message)
    at = "/api/experiments/noted/revise"
    page = client.post(at, json={"policy": "ucb", "reason": "better"}).json()
    assert page["notes"] == []  # the problem is not new
    changed = {"problem": NOTED + "minimise = true\n", "reason": "a cost"}
    (note,) = client.post(at, json=changed).json()["notes"]
    assert note.startswith(message)


@pytest.mark.slow
def test_a_large_current_problem_can_get_another_policy(ward):
    """It may have been created by a command, without the limit of requests."""
    text = f'description = "{"x" * 300_000}"\n{GRAPH}'
    ward.registry.create("large", parse_problem(text), policy="ts", seed=1)
    at = "/api/experiments/large/revise"
    for change in (
        {"policy": "ucb"},
        {"policy": "ids", "options": {"samples": 20}},
        {"options": {"samples": 30}},
        {"learn_restricted": False},
    ):
        answer = ward.client().post(at, json=change | {"reason": "it is time"})
        assert answer.status_code == 200 and answer.json()["changed"], answer.text
    greedy = {"options": {"samples": 10**12}, "reason": "surely"}
    assert ward.client().post(at, json=greedy).status_code == 422  # tried in the sandbox


@pytest.fixture
def events(monkeypatch, ward):
    """Events: problems are parsed, and transactions begin and end."""
    recorded, parse, transaction = [], config_module.parse_problem, ward.storage.transaction

    @contextmanager
    def record(*args, **options):
        with transaction(*args, **options) as block:
            recorded.append("begin")
            yield block
            recorded.append("end")

    monkeypatch.setattr(
        config_module,
        "parse_problem",
        lambda text, **rules: recorded.append("parse") or parse(text, **rules),
    )
    monkeypatch.setattr(ward.storage, "transaction", record)
    return recorded


@pytest.mark.slow
def test_no_problem_is_parsed_during_a_transaction(ward, events):
    client = ward.client()
    events.clear()  # of the client's token
    body = {"name": "quick", "problem": GRAPH + 'name = "quick"\n', "policy": "ids"}
    assert client.post("/api/experiments", json=body).status_code == 201
    assert events == ["parse", "begin", "end"]
    events.clear()
    change = {"problem": body["problem"] + "minimise = true\n", "reason": "a cost"}
    assert client.post("/api/experiments/quick/revise", json=change).status_code == 200
    assert events == ["parse", "begin", "end"]


@pytest.mark.parametrize("policy", ["os:getcwd", "antigravity:Policy", "nothing"])
def test_policies_are_not_imported(ward, policy):
    import sys

    before = set(sys.modules)
    body = {"name": "evil", "problem": GRAPH, "policy": policy}
    answer = ward.client().post("/api/experiments", json=body)
    assert answer.status_code == 422 and "--policy-module" in answer.json()["detail"]
    assert "antigravity" not in set(sys.modules) - before


@pytest.mark.slow
def test_a_revision_is_tried_in_the_sandbox(ward):
    """Options that need too much memory are refused."""
    client = ward.client()
    assert (
        client.post(
            "/api/experiments", json={"name": "greedy", "problem": GRAPH, "policy": "ids"}
        ).status_code
        == 201
    )
    change = {"options": {"samples": 10**12}, "reason": "surely"}
    answer = client.post("/api/experiments/greedy/revise", json=change)
    assert answer.status_code == 422
    assert client.post("/api/experiments/greedy/ask", json={}).status_code == 200


@pytest.mark.parametrize("name", ["a/status", "ward/ask", "..", "a/../b", "a//b", "/a", "."])
def test_names_that_do_not_work_in_urls_are_refused(ward, name):
    body = {"name": name, "problem": GRAPH, "policy": "random"}
    answer = ward.client().post("/api/experiments", json=body)
    assert answer.status_code == 422 and answer.json()["code"] == "invalid-name"
    assert name not in ward.registry.names()


def test_reserved_words_are_the_paths_after_a_name():
    from dowise_web.app import make_app
    from dowise_web.registry import RESERVED_WORDS
    from dowise_web.settings import Settings

    app = make_app(None, Settings())
    paths = [path for path in app.openapi()["paths"] if "{name}/" in path]
    words = {path.partition("{name}/")[2].split("/")[0] for path in paths}
    assert words | {"now", "known", "graph", "history"} == set(RESERVED_WORDS)
