"""Changing an experiment over HTTP: begin, revise, with policies of the operator's own too."""

import pytest
from live_tools import InOrder

from dowise import register_policy
from dowise.policies import registry


@pytest.fixture
def own(monkeypatch):
    """A policy that was loaded when the server started."""
    monkeypatch.setattr(registry, "_POLICIES", {**registry._POLICIES})
    register_policy("in-order", learns_from="everything")(InOrder)


GRAPH = 'graph = "X -> Y; Z -> Y"\nreward = "Y"\n'


@pytest.mark.usefixtures("own")
def test_a_policy_of_the_operators_own_can_begin_and_revise(ward):
    client = ward.client()
    body = {"name": "own", "problem": GRAPH, "policy": "in-order"}
    assert client.post("/api/experiments", json=body).status_code == 201
    at = "/api/experiments/own"
    assert client.post(f"{at}/ask", json={}).json()["text"].startswith("do(")
    said = {"policy": "ids", "options": {"samples": 20}, "reason": "quicker"}
    assert client.post(f"{at}/revise", json=said).json()["policy"] == "ids"
    back = {"policy": "in-order", "reason": "no"}
    assert client.post(f"{at}/revise", json=back).json()["policy"] == "in-order"


def test_what_editors_put_around_a_text_is_no_matter(ward):
    """What the preview takes can begin: a mark before the text, the line ends of Windows."""
    client, text = ward.client(), "\ufeff" + GRAPH.replace("\n", "\r\n")
    assert client.post("/api/preview", json={"problem": text}).status_code == 200
    body = {"name": "from an editor", "problem": text, "policy": "ucb"}
    answer = client.post("/api/experiments", json=body)
    assert answer.status_code == 201, answer.text
    at, said = "/api/experiments/from an editor", {"problem": text + "minimise = true\r\n"}
    assert client.post(f"{at}/revise", json=said | {"reason": "a cost"}).status_code == 200


@pytest.mark.parametrize("policy", ["os:getcwd", "antigravity:Policy", "nothing"])
def test_a_policy_that_would_have_to_be_imported_is_refused(ward, policy):
    import sys

    before = set(sys.modules)
    body = {"name": "evil", "problem": GRAPH, "policy": policy}
    answer = ward.client().post("/api/experiments", json=body)
    assert answer.status_code == 422 and "--policy-module" in answer.json()["detail"]
    assert "antigravity" not in set(sys.modules) - before


def test_what_a_revision_would_take_is_tried_first(ward):
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
def test_a_name_that_no_address_can_hold_is_refused(ward, name):
    body = {"name": name, "problem": GRAPH, "policy": "random"}
    answer = ward.client().post("/api/experiments", json=body)
    assert answer.status_code == 422 and "address" in answer.json()["detail"]
    assert name not in ward.house.names()


def test_every_word_behind_a_name_is_known():
    """A new page or verb is one more ending that a name can't have."""
    from dowise.service.app import make_app
    from dowise.service.house import _WORDS
    from dowise.service.settings import Settings

    app = make_app(None, Settings())
    paths = [path for path in app.openapi()["paths"] if "{name}/" in path]
    words = {path.partition("{name}/")[2].split("/")[0] for path in paths}
    assert words | {"now", "known", "graph", "history"} == set(_WORDS)
