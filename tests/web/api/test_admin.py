"""Changing an experiment over HTTP: begin, revise, with policies of the operator's own too."""

from contextlib import contextmanager

import pytest
from support.experiments import OrderDependentPolicy

from dowise import register_policy
from dowise.experiment import config as plan
from dowise.policies import registry
from dowise.problem.problem_file import parse_problem


@pytest.fixture
def own(monkeypatch):
    """A policy that was loaded when the server started."""
    monkeypatch.setattr(registry, "_POLICIES", {**registry._POLICIES})
    register_policy("in-order", learns_from="everything")(OrderDependentPolicy)


GRAPH = 'graph = "X -> Y; Z -> Y"\nreward = "Y"\n'


@pytest.mark.slow
@pytest.mark.usefixtures("own")
def test_custom_policies_loaded_by_the_operator_can_be_used(ward):
    client = ward.client()
    body = {"name": "own", "problem": GRAPH, "policy": "in-order"}
    assert client.post("/api/experiments", json=body).status_code == 201
    at = "/api/experiments/own"
    assert client.post(f"{at}/ask", json={}).json()["text"].startswith("do(")
    said = {"policy": "ids", "options": {"samples": 20}, "reason": "quicker"}
    assert client.post(f"{at}/revise", json=said).json()["policy"] == "ids"
    back = {"policy": "in-order", "reason": "no"}
    assert client.post(f"{at}/revise", json=back).json()["policy"] == "in-order"


@pytest.mark.slow
def test_byte_order_marks_and_line_ends_are_normalized(ward):
    """What the preview takes can begin: a mark before the text, the line ends of Windows."""
    client, text = ward.client(), "\ufeff" + GRAPH.replace("\n", "\r\n")
    assert client.post("/api/preview", json={"problem": text}).status_code == 200
    body = {"name": "from an editor", "problem": text, "policy": "ucb"}
    answer = client.post("/api/experiments", json=body)
    assert answer.status_code == 201, answer.text
    at, said = "/api/experiments/from an editor", {"problem": text + "minimise = true\r\n"}
    assert client.post(f"{at}/revise", json=said | {"reason": "a cost"}).status_code == 200


NOTED = GRAPH + 'forbidden = ["do(X=1)"]\narms = "pomis"\n'


@pytest.mark.slow
def test_notes_on_a_new_problem_are_in_the_response(ward):
    """The process that tried it is the only one that reads it as a new one."""
    client, said = ward.client(), "with forbidden assignments the best arm need not be"
    body = {"name": "noted", "problem": NOTED, "policy": "random"}
    made = client.post("/api/experiments", json=body).json()
    (note,) = made["notes"]
    assert note.startswith(said)
    at = "/api/experiments/noted/revise"
    page = client.post(at, json={"policy": "ucb", "reason": "better"}).json()
    assert page["notes"] == []  # the problem was there before
    changed = {"problem": NOTED + "minimise = true\n", "reason": "a cost"}
    (note,) = client.post(at, json=changed).json()["notes"]
    assert note.startswith(said)


@pytest.mark.slow
def test_a_large_current_problem_can_get_another_policy(ward):
    """One that came in by a command may be larger than a request's."""
    text = f'description = "{"x" * 300_000}"\n{GRAPH}'
    ward.registry.create("large", parse_problem(text), policy="ts", seed=1)
    at = "/api/experiments/large/revise"
    for change in ({"policy": "ucb"}, {"policy": "ids", "options": {"samples": 20}},
                   {"options": {"samples": 30}}, {"learn_restricted": False}):  # fmt: skip
        answer = ward.client().post(at, json=change | {"reason": "it is time"})
        assert answer.status_code == 200 and answer.json()["changed"], answer.text
    greedy = {"options": {"samples": 10**12}, "reason": "surely"}
    assert ward.client().post(at, json=greedy).status_code == 422  # it is still tried


@pytest.fixture
def order(monkeypatch, ward):
    """When problems are read, and when the store is held."""
    seen, parse, writing = [], plan.parse_problem, ward.storage.transaction

    @contextmanager
    def held(*args, **options):
        with writing(*args, **options) as one:
            seen.append("held")
            yield one
            seen.append("free")

    monkeypatch.setattr(plan, "parse_problem", lambda text: seen.append("read") or parse(text))
    monkeypatch.setattr(ward.storage, "transaction", held)
    return seen


@pytest.mark.slow
def test_no_problem_is_parsed_during_a_transaction(ward, order):
    client = ward.client()
    order.clear()  # of the client's token
    body = {"name": "quick", "problem": GRAPH + 'name = "quick"\n', "policy": "ids"}
    assert client.post("/api/experiments", json=body).status_code == 201
    assert order == ["read", "held", "free"]
    order.clear()
    said = {"problem": body["problem"] + "minimise = true\n", "reason": "a cost"}
    assert client.post("/api/experiments/quick/revise", json=said).status_code == 200
    assert order == ["read", "held", "free"]


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
    """Options that ask for more memory than there is end in a refusal, not in the server's end."""
    client = ward.client()
    assert (
        client.post(
            "/api/experiments", json={"name": "greedy", "problem": GRAPH, "policy": "ids"}
        ).status_code
        == 201
    )
    said = {"options": {"samples": 10**12}, "reason": "surely"}
    answer = client.post("/api/experiments/greedy/revise", json=said)
    assert answer.status_code == 422
    assert client.post("/api/experiments/greedy/ask", json={}).status_code == 200


@pytest.mark.parametrize("name", ["a/status", "ward/ask", "..", "a/../b", "a//b", "/a", "."])
def test_names_that_do_not_work_in_urls_are_refused(ward, name):
    body = {"name": name, "problem": GRAPH, "policy": "random"}
    answer = ward.client().post("/api/experiments", json=body)
    assert answer.status_code == 422 and answer.json()["code"] == "invalid-name"
    assert name not in ward.registry.names()


def test_reserved_words_are_the_paths_after_a_name():
    """A new page or verb is one more ending that a name can't have."""
    from dowise_web.app import make_app
    from dowise_web.registry import RESERVED_WORDS
    from dowise_web.settings import Settings

    app = make_app(None, Settings())
    paths = [path for path in app.openapi()["paths"] if "{name}/" in path]
    words = {path.partition("{name}/")[2].split("/")[0] for path in paths}
    assert words | {"now", "known", "graph", "history"} == set(RESERVED_WORDS)
