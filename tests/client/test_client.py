"""`Client`, compared with `Experiment` on the store that the server has."""

import inspect
import warnings

import numpy as np
import pytest
from support.errors import raises_code
from support.sample_experiments import SAMPLES, WARD, frozen_clock
from support.servers import running

from dowise import CausalGraph, Client, DowiseError, Experiment, Problem
from dowise.client import client as client_module
from dowise.client.transport import Transport
from dowise.errors import DowiseWarning
from dowise.experiment.event import WITHHELD
from dowise.experiment.record_import import BadRowsError

pytestmark = pytest.mark.slow  # it plays every kind of experiment twice

LOCAL_ONLY = {
    "acting_as",
    "counts",
    "decisions",
    "judged",
    "learn_restricted",
    "open",
    "view",
    "warm_up",
}


def public_names(kind):
    return {name for name in dir(kind) if not name.startswith("_")} | {"__enter__", "__exit__"}


def test_client_has_the_methods_of_an_experiment():
    shared = public_names(Experiment) - LOCAL_ONLY
    assert shared <= public_names(Client)
    for name in shared - {"create"}:
        remote, local = getattr(Client, name), getattr(Experiment, name)
        if isinstance(local, property):
            assert remote.fget.__annotations__ == local.fget.__annotations__, name
            continue
        remote, local = inspect.signature(remote), inspect.signature(local)
        assert [*remote.parameters.values()] == [*local.parameters.values()], name
        returned = str(remote.return_annotation).replace("Client", "Experiment")
        assert returned == local.return_annotation, name
    remote, local = (inspect.signature(kind.create).parameters for kind in (Client, Experiment))
    assert {*local} - {*remote} == {"store", "actor", "accept_clock"}
    assert all(remote[name].default == local[name].default for name in {*local} & {*remote})


@pytest.mark.parametrize("kind", SAMPLES)
def test_queries_are_those_of_an_experiment(served, kind, monkeypatch):
    client, local = served.client(kind, "read"), served.local(kind)
    assert (client.name, client.policy, client.options) == (kind, local.policy, local.options)
    assert client.problem == local.problem and client.head == local.head
    assert client.is_one_of_many and client.store == served.url
    assert client.records() == local.records() and client.pending() == local.pending()
    rounds = None if kind in ("large", "doubtful") else 4
    remote_status, local_status = (x.status(rounds=rounds) for x in (client, local))
    with frozen_clock(monkeypatch):
        assert remote_status.as_dict(0.1) == local_status.as_dict(0.1)
        assert str(remote_status) == str(local_status)
    context = dict.fromkeys(local.problem.context, 1)
    assert client.status(context, False).rows() == local.status(context, False).rows()
    assert client.history(points=4).as_dict() == local.history(points=4).as_dict()
    assert client.counted() == local.counted()
    assert client.audit(local.head) == local.audit(local.head)
    assert client.table() == local.table() and client.frame().equals(local.frame())
    assert np.array_equal(*(x.belief.mean_rewards(context) for x in (client, local)))
    for case in local.records():
        assert client.case(case.id) == case and client.idle(case.id) == local.idle(case.id)
        if case.status != "erased":
            assert client.decision(case.id).as_dict() == local.decision(case.id).as_dict()
            remote, expected = client.explain(case.id), local.explain(case.id)
            assert remote.as_dict() == expected.as_dict() and str(remote) == str(expected)


def test_files_figures_and_evaluations(served, tmp_path):
    client, local = served.client("eventful", "read"), served.local("eventful")
    for ending in ("csv", "parquet"):
        remote, here = tmp_path / f"remote.{ending}", tmp_path / f"local.{ending}"
        assert client.export(remote) == local.export(here)
        assert remote.read_bytes() == here.read_bytes()
    client.figure(tmp_path / "now.svg", tolerance=0.1)
    assert (tmp_path / "now.svg").stat().st_size > 1000
    for target, options in (
        ("ts", {"propensity_samples": 20}),
        ("do(X=1)", None),
        ({"X": "1"}, None),
        ({("0",): "do()", ("1",): "do(X=1)"}, None),
    ):
        evaluation = client.evaluate(target, options, 0.8)
        assert evaluation.as_dict() == local.evaluate(target, options, 0.8).as_dict()
    assert client.value_of_continuing(3) == local.value_of_continuing(3)
    assert client.value_of_continuing(3, 4) == local.value_of_continuing(3, 4)
    with raises_code("invalid-input", "posterior"):
        served.client("large", "read").value_of_continuing(3)


def test_only_admins_see_the_whole_journal(served):
    events = served.local("eventful").events()
    assert served.client("eventful").events() == events
    assert served.client("eventful").events(3, 7) == events[3:7]
    redacted = served.client("eventful", "ask").events()
    assert [event.number for event in redacted] == [event.number for event in events]
    assert "seed" not in redacted[0].payload
    assert {event.salt for event in redacted} == {WITHHELD, ""}
    assert [event.is_erased for event in redacted] == [event.is_erased for event in events]


def test_same_calls_write_the_same_journal(empty, tmp_path):
    token = empty.tokens["admin"]
    past = {"C": [0, 1], "X": [1, 0], "Z": [0, 0], "Y": [1, 0], "W": [1, 1]}
    settings = {"policy": "ids", "options": {"samples": 30}, "seed": 2**127 + 1}
    client = Client.create(empty.url, "a/b é", WARD, **settings, records=past, token=token)
    local = Experiment.create(tmp_path / "ward.db", "a/b é", WARD, **settings, records=past)
    assert client.problem == local.problem and client.status().imported == 2
    for experiment in (client, local):
        with experiment:
            first = experiment.ask({"C": True}, "résumé 1", allowed=["do(X=1)", {"W": 0}])
            again = experiment.ask({"C": 1.0}, "résumé 1", allowed=[{"X": 1}, "do(W=0)"])
            assert again.id == first.id == 1 and again.request_id == "résumé 1"
            batch = experiment.ask_many([{"C": 0}, {"C": 1}], forbid=["do()"])
            values = {"Z": np.int64(1), "X": None, "W": 0, "Y": 1}
            experiment.tell(1, {k: v for k, v in values.items() if k not in first.arm})
            assert experiment.tell(1, {"Y": 1}).previous is None
            amended = experiment.amend(1, {"Y": 0}, "typo")
            assert (amended.previous.values["Y"], amended.values["Y"]) == ("1", "0")
            experiment.tell(2, {"Y": 1}, played={"X": 1}, unrelated=True)
            experiment.withdraw(batch[1].id, "left")
            assert experiment.import_records({"C": [1], "Y": [1]}, "do(X=0)", source="later") == 1
            assert experiment.erase(2, "asked to be forgotten")
            assert not experiment.erase(2, "once more")
            assert experiment.revise(options={"samples": 20}, reason="faster")
            assert not experiment.revise(options={"samples": 20}, reason="the same")
    assert [*map(str, client.records())] == [*map(str, local.records())]
    differing = {"request_id", "known", "maker", "erased"}
    remote, here = (
        [{k: v for k, v in event.payload.items() if k not in differing} for event in x.events()]
        for x in (client, local)
    )
    assert remote == here
    assert client.audit().ok
    assert {event.actor for event in client.events()} == {"a admin"}  # named by the token


def test_every_ask_has_its_own_request_id(served):
    client = served.client("fresh", "ask")
    before = len(client.records())
    decision = client.ask({"C": 1})
    assert len(decision.request_id) == 32 and len(client.records()) == before + 1
    assert decision.request_id != client.ask({"C": 1}).request_id


def test_long_lists_come_in_several_responses(empty, monkeypatch):
    token = empty.tokens["admin"]
    client = Client.create(empty.url, "many", "task1", "ucb", seed=1, token=token)
    client.ask_many([None] * 150)
    paths, get = [], Transport.get

    def recorded_get(transport, path, *rest, **query):
        paths.append(path)
        return get(transport, path, *rest, **query)

    monkeypatch.setattr(Transport, "get", recorded_get)
    records, events = client.records(), client.events()
    assert [case.id for case in records] == [*range(1, 151)]
    assert [event.number for event in events] == [*range(1, 152)]
    assert len(paths) == 2
    monkeypatch.setattr(client_module, "MAX_ROWS", 40)
    assert client.records() == records and client.events() == events
    assert len(paths) == 2 + 4 + 4


def test_records_are_checked_before_they_are_sent(served):
    client = served.client("imported")
    table = {"Z": [0, 1], "X": [1, 1], "Y": ["bad", 0]}
    before = client.head
    with raises_code("bad-rows", "1 of 2 rows", error=BadRowsError):
        client.import_records(table)
    assert client.head == before
    assert client.import_records(table, skip_bad=True, source="x.csv") == 1
    assert client.events()[-1].payload["skipped"] == 1
    assert client.import_records({"Z": ["bad"]}, skip_bad=True) == 0
    with raises_code("conflict", "by event"):
        client.import_records(table, skip_bad=True)
    assert client.import_records(table, skip_bad=True, again=True) == 1
    with pytest.warns(DowiseWarning, match="none with a value of the reward"):
        client.import_records({"Z": [1]})
    with raises_code("conflict", "export"):
        client.import_records(client.frame())


def test_warnings_of_a_revision_are_repeated(empty):
    client = Client.create(empty.url, "forbids", WARD, "random", token=empty.tokens["admin"])
    client.ask({"C": 1}, allowed=["do(X=1)"])
    forbidding = Problem(WARD.graph, "Y", "C", "Z", forbidden=["do(X=1)"], arms="all")
    with pytest.warns(DowiseWarning, match="1 pending decision is on arms that are forbidden"):
        client.revise(forbidding, reason="unsafe")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.revise(forbidding, reason="unsafe")
    assert client.problem == forbidding


@pytest.mark.parametrize(
    "call",
    [
        lambda experiment: experiment.case(99),
        lambda experiment: experiment.tell(1, {"Q": 1}),
        lambda experiment: experiment.amend(1, {"Y": 0}),
        lambda experiment: experiment.ask({"C": 1}, allowed=["do(Q=1)"]),
        lambda experiment: experiment.ask({"C": 0}, "a batch/é"),
        lambda experiment: experiment.ask_many([]),
        lambda experiment: experiment.explain(2),
        lambda experiment: experiment.audit("nonsense"),
        lambda experiment: experiment.evaluate("nobody"),
    ],
)
def test_errors_are_those_of_an_experiment(served, call):
    errors = []
    for experiment in (served.client("eventful"), served.local("eventful")):
        with pytest.raises(DowiseError) as caught:
            call(experiment)
        errors.append((type(caught.value), caught.value.code))
    assert errors[0] == errors[1]


def test_missing_roles_and_tokens_are_refused(served):
    with raises_code("role-required", "'ask' is required"):
        served.client("eventful", "read").ask({"C": 1})
    with raises_code("role-required", "'admin' is required"):
        served.client("eventful", "ask").erase(1, "why not")
    with raises_code("authentication-required"):
        Client(served.url, name="fresh")
    with raises_code("authentication-required", "does not accept"):
        Client(served.url, "nonsense", "fresh")


def test_name_of_the_experiment(served, monkeypatch):
    token = served.tokens["read"]
    with raises_code("missing-value", "doubtful, eventful, "):
        Client(served.url, token)
    assert Client(f"{served.url}/experiments/odd", token).name == "odd"
    assert Client(f"{served.url}/experiments/odd/history", token).name == "odd"
    assert Client(f"{served.url}/api/experiments/odd", token, "odd").name == "odd"
    with raises_code("duplicate-name", "'odd'", "'large'"):
        Client(f"{served.url}/experiments/odd", token, "large")
    with raises_code("unknown-experiment", "'od'", "'odd'"):
        Client(served.url, token, "od")
    monkeypatch.setenv("DOWISE_TOKEN", token)
    client = Client(served.url, name="fresh")
    assert repr(client) == f"<Client of fresh at {served.url}>"
    client.close()
    assert client.policy == "ids"  # connects again
    assert token not in repr(vars(client)) and token not in repr(client._transport)


def test_server_without_experiments(tmp_path):
    with running(tmp_path / "none.db") as server, raises_code("not-found", "dowise new"):
        Client(server.address, server.token("read"))


def test_invalid_arguments_are_refused_before_they_are_sent(served):
    client = served.client("fresh")
    for call in (
        lambda: client.ask({"C": [1]}),
        lambda: client.tell(1, "Y=1"),
        lambda: client.revise(options={"samples": object()}, reason="x"),
        lambda: client.revise(3, reason="x"),
        lambda: Client.create(served.url, "x", CausalGraph.parse("X -> Y")),
        lambda: client.case(True),
    ):
        with pytest.raises(DowiseError) as caught:
            call()
        assert caught.value.code in ("invalid-type", "not-found", "invalid-input")


def test_prior_file_is_read_by_the_client(empty, tmp_path):
    prior = tmp_path / "prior.toml"
    prior.write_text("Y = 3.0\n")
    client = Client.create(
        empty.url, "prior", WARD, "ts", {"prior": str(prior)}, token=empty.tokens["admin"]
    )
    assert client.options["prior"] == {"Y": 3.0}
    with raises_code("invalid-type", "no files are read here"):
        body = {"options": {"prior": str(prior)}, "reason": "x"}
        client._transport.post(client._path("revise"), body)
