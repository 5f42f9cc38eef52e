"""A client of a real server beside the same experiment opened by its store."""

import inspect
import json
import warnings

import numpy as np
import pytest
from support.errors import raises_code
from support.sample_experiments import KINDS, WARD, still
from support.servers import running

from dowise import CausalGraph, Client, DowiseError, Experiment, Problem
from dowise.errors import DowiseWarning
from dowise.experiment.event import WITHHELD
from dowise.experiment.records import BadRowsError

pytestmark = pytest.mark.slow  # it plays every kind of experiment twice

HERE = {
    "acting_as", "counts", "decisions", "judged", "learn_restricted", "open", "view", "warm_up",
}  # fmt: skip
"""What only those need who have the store: a server, say."""


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")} | {"__enter__", "__exit__"}


def test_it_has_the_methods_of_an_experiment():
    assert public(Experiment) - HERE <= public(Client)
    for name in public(Experiment) - HERE - {"create"}:
        mine, theirs = (getattr(kind, name) for kind in (Client, Experiment))
        if isinstance(theirs, property):
            assert isinstance(mine, property), name
            mine, theirs = mine.fget, theirs.fget
            assert mine.__annotations__ == theirs.__annotations__, name
            continue
        one, other = inspect.signature(mine), inspect.signature(theirs)
        assert [*one.parameters.values()] == [*other.parameters.values()], name
        returned = str(one.return_annotation).replace("Client", "Experiment")
        assert returned == other.return_annotation, name
    made, own = (inspect.signature(kind.create).parameters for kind in (Client, Experiment))
    assert {*own} - {*made} == {"store", "actor", "accept_clock"}
    assert all(made[name].default == own[name].default for name in {*own} & {*made})


@pytest.mark.parametrize("kind", KINDS)
def test_every_look_is_that_of_an_experiment(served, kind, monkeypatch):
    client, local = served.client(kind, "read"), served.local(kind)
    assert (client.name, client.policy, client.options) == (kind, local.policy, local.options)
    assert client.problem == local.problem and client.head == local.head
    assert client.is_one_of_many and client.store == served.url
    assert client.records() == local.records() and client.pending() == local.pending()
    rounds = None if kind in ("large", "doubtful") else 4
    mine, theirs = (one.status(rounds=rounds) for one in (client, local))
    with still(monkeypatch):
        assert mine.as_dict(0.1) == theirs.as_dict(0.1) and str(mine) == str(theirs)
    context = dict.fromkeys(local.problem.context, 1)
    assert client.status(context, False).rows() == local.status(context, False).rows()
    assert client.history(points=4).as_dict() == local.history(points=4).as_dict()
    assert client.counted() == local.counted()
    assert client.audit(local.head) == local.audit(local.head)
    assert client.table() == local.table() and client.frame().equals(local.frame())
    means = [one.belief.mean_rewards(context) for one in (client, local)]
    assert np.array_equal(*means)
    for case in local.records():
        assert client.case(case.id) == case and client.idle(case.id) == local.idle(case.id)
        if case.status != "erased":
            assert client.decision(case.id).as_dict() == local.decision(case.id).as_dict()
            one, other = client.explain(case.id), local.explain(case.id)
            assert one.as_dict() == other.as_dict() and str(one) == str(other)


def test_what_is_worked_out_from_looks(served, tmp_path):
    client, local = served.client("eventful", "read"), served.local("eventful")
    for ending in ("csv", "parquet"):
        mine, theirs = tmp_path / f"mine.{ending}", tmp_path / f"theirs.{ending}"
        assert client.export(mine) == local.export(theirs)
        assert mine.read_bytes() == theirs.read_bytes()
    client.figure(tmp_path / "mine.svg", tolerance=0.1)
    assert (tmp_path / "mine.svg").stat().st_size > 1000
    rules = ("do(X=1)", {"X": "1"}, {("0",): "do()", ("1",): "do(X=1)"})
    for target, options in [("ts", {"propensity_samples": 20}), *((rule, None) for rule in rules)]:
        found = client.evaluate(target, options, 0.8)
        assert found.as_dict() == local.evaluate(target, options, 0.8).as_dict()
    assert client.value_of_continuing(3) == local.value_of_continuing(3)
    assert client.value_of_continuing(3, 4) == local.value_of_continuing(3, 4)
    with pytest.raises(DowiseError, match="is not known"):
        served.client("large", "read").value_of_continuing(3)


def test_the_journal_is_shown_whole_to_admins_only(served):
    events = served.local("eventful").events()
    assert served.client("eventful").events() == events
    assert served.client("eventful").events(3, 7) == events[3:7]
    shown = served.client("eventful", "ask").events()
    assert [one.number for one in shown] == [one.number for one in events]
    assert "seed" not in shown[0].payload and {one.salt for one in shown} == {WITHHELD, ""}
    assert [one.is_erased for one in shown] == [one.is_erased for one in events]


def test_a_whole_experiment(empty, tmp_path):
    token = empty.tokens["admin"]
    past = {"C": [0, 1], "X": [1, 0], "Z": [0, 0], "Y": [1, 0], "W": [1, 1]}
    settings = {"policy": "ids", "options": {"samples": 30}, "seed": 2**127 + 1}
    client = Client.create(empty.url, "a/b é", WARD, **settings, records=past, token=token)
    local = Experiment.create(tmp_path / "ward.db", "a/b é", WARD, **settings, records=past)
    assert client.problem == local.problem and client.status().imported == 2
    for one in (client, local):
        with one:
            first = one.ask({"C": True}, "résumé 1", allowed=["do(X=1)", {"W": 0}])
            again = one.ask({"C": 1.0}, "résumé 1", allowed=[{"X": 1}, "do(W=0)"])
            assert again.id == first.id == 1 and again.request_id == "résumé 1"
            batch = one.ask_many([{"C": 0}, {"C": 1}], forbid=["do()"])
            one.tell(1, {"Z": np.int64(1), "X": None} if "X" not in first.arm else {"Z": 1})
            one.tell(1, {"W": 0, "Y": 1} if "W" not in first.arm else {"Y": 1})
            assert one.tell(1, {"Y": 1}).previous is None
            amended = one.amend(1, {"Y": 0}, "typo")
            assert (amended.previous.values["Y"], amended.values["Y"]) == ("1", "0")
            one.tell(2, {"Y": 1}, played={"X": 1}, unrelated=True)
            one.withdraw(batch[1].id, "left")
            assert one.import_records({"C": [1], "Y": [1]}, "do(X=0)", source="later") == 1
            assert one.erase(2, "asked to be forgotten") and not one.erase(2, "once more")
            assert one.revise(options={"samples": 20}, reason="faster")
            assert not one.revise(options={"samples": 20}, reason="the same")
    mine, theirs = client.records(), local.records()
    assert [str(case) for case in mine] == [str(case) for case in theirs]
    says = [[event.payload for event in one.events()] for one in (client, local)]
    for one, other in zip(*says, strict=True):
        differs = {"request_id", "known", "maker", "erased"}
        assert {k: v for k, v in one.items() if k not in differs} == {
            k: v for k, v in other.items() if k not in differs
        }
    assert client.audit().ok
    assert {event.actor for event in client.events()} == {"a admin"}  # whom the token names


def test_one_call_is_one_decision_with_a_key_of_its_own(served):
    client = served.client("fresh", "ask")
    before = len(client.records())
    asked = client.ask({"C": 1})
    assert len(asked.request_id) == 32 and len(client.records()) == before + 1
    assert asked.request_id != client.ask({"C": 1}).request_id


def test_records_are_checked_here(served):
    client = served.client("imported")
    table = {"Z": [0, 1], "X": [1, 1], "Y": ["bad", 0]}
    before = client.head
    with pytest.raises(BadRowsError, match="1 of 2 rows") as caught:
        client.import_records(table)
    assert caught.value.checked.bad[0].row == 0 and client.head == before
    assert client.import_records(table, skip_bad=True, source="x.csv") == 1
    assert client.events()[-1].payload["skipped"] == 1
    assert client.import_records({"Z": ["bad"]}, skip_bad=True) == 0
    with pytest.raises(DowiseError, match="imported before, by event"):
        client.import_records(table, skip_bad=True)
    assert client.import_records(table, skip_bad=True, again=True) == 1
    with pytest.warns(DowiseWarning, match="none with a value of the reward"):
        client.import_records({"Z": [1]})
    own = client.frame()
    with pytest.raises(DowiseError, match="an export of the same experiment"):
        client.import_records(own)


def test_what_a_revision_forbids_is_said(empty):
    client = Client.create(empty.url, "forbids", WARD, "random", token=empty.tokens["admin"])
    client.ask({"C": 1}, allowed=["do(X=1)"])
    never = Problem(WARD.graph, "Y", "C", "Z", forbidden=["do(X=1)"], arms="all")
    with pytest.warns(DowiseWarning, match="1 pending decision is on arms that are forbidden"):
        client.revise(never, reason="unsafe")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.revise(never, reason="unsafe")
    assert client.problem == never


def test_errors_are_those_of_an_experiment(served):
    client, local = served.client("eventful"), served.local("eventful")
    calls = (
        lambda one: one.case(99),
        lambda one: one.tell(1, {"Q": 1}),
        lambda one: one.tell(2, {"Y": 1}),
        lambda one: one.amend(1, {"Y": 0}),
        lambda one: one.ask({"C": 7}),
        lambda one: one.ask({"C": 1}, allowed=["do(Q=1)"]),
        lambda one: one.ask({"C": 1}, forbid="do(X=1)"),
        lambda one: one.ask({"C": 1}, ""),
        lambda one: one.ask_many([]),
        lambda one: one.ask({"C": 0}, "a batch/é"),
        lambda one: one.explain(2),
        lambda one: one.audit("nonsense"),
        lambda one: one.erase(1),
        lambda one: one.evaluate("nobody"),
        lambda one: one.history(points=1),
    )
    for call in calls[:-2]:
        words = []
        for one in (client, local):
            with pytest.raises(DowiseError) as caught:
                call(one)
            words.append((type(caught.value), str(caught.value)))
        assert words[0] == words[1]
    for call in calls[-2:]:
        with pytest.raises(DowiseError):
            call(client)


def test_a_role_that_is_lacking_is_named(served):
    reader = served.client("eventful", "read")
    with raises_code("role-required", "'ask' is required"):
        reader.ask({"C": 1})
    with raises_code("role-required", "'admin' is required"):
        served.client("eventful", "ask").erase(1, "why not")
    with raises_code("authentication-required"):
        Client(served.url, name="fresh")
    with raises_code("authentication-required", "does not accept"):
        Client(served.url, "nonsense", "fresh")


def test_which_experiment(served, monkeypatch):
    token = served.tokens["read"]
    with raises_code("missing-value", "doubtful, eventful, "):
        Client(served.url, token)
    assert Client(f"{served.url}/experiments/odd", token).name == "odd"
    assert Client(f"{served.url}/experiments/odd/history", token).name == "odd"
    assert Client(f"{served.url}/api/experiments/odd", token, "odd").name == "odd"
    with raises_code("duplicate-name", "'odd'", "'large'"):
        Client(f"{served.url}/experiments/odd", token, "large")
    with pytest.raises(DowiseError, match=r"no experiment 'od' here \(did you mean 'odd'\?\)"):
        Client(served.url, token, "od")
    monkeypatch.setenv("DOWISE_TOKEN", token)
    client = Client(served.url, name="fresh")
    assert repr(client) == f"<Client of fresh at {served.url}>"
    client.close()
    assert client.policy == "ids"  # opened anew
    assert token not in repr(vars(client)) and token not in repr(client._transport)


def test_a_server_without_experiments_says_how_to_make_one(tmp_path):
    with running(tmp_path / "none.db") as server, raises_code("not-found", "dowise new"):
        Client(server.address, server.token("read"))


def test_what_cannot_be_sent(served):
    client = served.client("fresh")
    with pytest.raises(DowiseError, match="is not a value"):
        client.ask({"C": [1]})
    with pytest.raises(DowiseError, match="must map variables to values"):
        client.tell(1, "Y=1")
    with pytest.raises(DowiseError, match="can't be stored"):
        client.revise(options={"samples": object()}, reason="x")
    with pytest.raises(DowiseError, match="about a Problem"):
        Client.create(served.url, "x", CausalGraph.parse("X -> Y"))
    with pytest.raises(DowiseError, match="there is no decision True in fresh"):
        client.case(True)


def test_a_prior_in_a_file_is_read_here(empty, tmp_path):
    prior = tmp_path / "prior.toml"
    prior.write_text("Y = 3.0\n")
    client = Client.create(
        empty.url, "prior", WARD, "ts", {"prior": str(prior)}, token=empty.tokens["admin"]
    )
    assert client.options["prior"] == {"Y": 3.0}
    body = json.dumps({"prior": str(prior)})
    with raises_code("invalid-type", "no files are read here"):
        client._transport.post(client._path("revise"), {"options": json.loads(body), "reason": "x"})
