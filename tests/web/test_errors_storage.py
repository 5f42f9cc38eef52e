"""Errors of the store: they are reported, and never reveal paths of the server."""

import os
import re
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest
from support.servers import running

import dowise
from dowise import Experiment, load_problem
from dowise.policies import registry

pytestmark = pytest.mark.slow  # each test damages its own store

API = "/api/experiments/ward%207"
QUERIES = ("", "status", "decisions", "decisions/1", "explain/1", "history", "events", "audit")
QUERIES += ("export", "belief", "counted", "graph.svg")
WARD = "/experiments/ward%207"
PAGES = ("/", "/?all", "/new", "/tokens", f"{WARD}/now", f"{WARD}/known", f"{WARD}/graph")
PAGES += (f"{WARD}/history",)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A store with a decision, to be copied."""
    store = tmp_path_factory.mktemp("template") / "template.db"
    with Experiment.create(
        store, "ward 7", load_problem("task2"), "ids", {"samples": 50}, 7
    ) as experiment:
        experiment.tell(experiment.ask({"C": 1}).id, {"Y": 1})
    return store


@pytest.fixture
def ward(template, tmp_path):
    """A server whose store a test may damage."""
    shutil.copy(template, tmp_path / "a secret place.db")
    with running(tmp_path / "a secret place.db") as server:
        server.store = tmp_path / "a secret place.db"
        yield server


def responses(ward, client=None, browser=None):
    """Yield the responses to every query, every write and every page."""
    client = client or ward.client()
    bodies = {
        "/ask": {"context": {"C": 1}},
        "/tell/1": {"values": {"Z": 1}},
        "/withdraw/1": {"reason": "x"},
        "/revise": {"policy": "ucb", "reason": "x"},
    }
    yield from (client.get(f"{API}/{path}".rstrip("/")) for path in QUERIES)
    yield from (client.post(f"{API}{path}", json=body) for path, body in bodies.items())
    yield client.get("/api/experiments")
    yield client.get("/api/tokens")
    yield client.post("/api/tokens", json={"role": "read", "name": "new"})
    problem = {"name": "new", "problem": 'graph = "X -> Y"\nreward = "Y"', "policy": "ucb"}
    yield client.post("/api/experiments", json=problem)
    if browser is not None:
        yield from (browser.get(path) for path in PAGES)


def assert_no_paths(ward, answer):
    text = answer.text + str(answer.headers)
    paths = [
        str(ward.store.parent),
        ward.store.name,
        str(Path.home()),
        str(Path.cwd()),
        str(Path(dowise.__file__).parent),
    ]
    revealed = [path for path in paths if path in text.replace("%20", " ")]
    assert not revealed, (answer.request.url, revealed, answer.text)


def test_responses_do_not_name_the_store(ward):
    for answer in responses(ward, browser=ward.browser()):
        assert answer.status_code < 500, answer.text
        assert_no_paths(ward, answer)


def delete(store):
    for file in store.parent.glob(f"{store.name}*"):
        file.unlink()


def empty(store):
    delete(store)
    store.touch()


def overwrite(store):
    delete(store)
    store.write_bytes(b"no database at all" * 100)


def corrupt(store):
    with sqlite3.connect(store) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    with store.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(store.stat().st_size - 4096))


def replace_by_folder(store):
    delete(store)
    store.mkdir()


@pytest.mark.parametrize("damage", [delete, empty, overwrite, corrupt, replace_by_folder])
def test_a_damaged_store_is_unavailable_and_not_named(ward, damage):
    client, browser = ward.client(), ward.browser()
    damage(ward.store)
    statuses = set()
    for answer in responses(ward, client, browser):
        assert_no_paths(ward, answer)
        statuses.add(answer.status_code)
        assert answer.status_code in (200, 303, 401, 503), (answer.request.url, answer.text)
    assert 503 in statuses


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_store_is_unavailable(ward):
    client = ward.client()
    ward.store.chmod(stat.S_IRUSR)
    ward.store.parent.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        for answer in responses(ward, client):
            assert_no_paths(ward, answer)
            assert answer.status_code in (200, 503)
    finally:
        ward.store.parent.chmod(stat.S_IRWXU)


@pytest.mark.parametrize("name", ["SQLITE_FULL", "SQLITE_READONLY", "SQLITE_IOERR_WRITE"])
def test_write_errors_are_reported(ward, monkeypatch, name):
    client = ward.client()

    def fail(*_anything):
        error = sqlite3.OperationalError(f"unable to write {ward.store}")
        error.sqlite_errorname = name
        raise error

    monkeypatch.setattr("dowise.experiment.storage.sqlite.SqliteStorage.commit", fail)
    answer = client.post(f"{API}/ask", json={"context": {"C": 1}})
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert_no_paths(ward, answer)
    monkeypatch.undo()
    assert client.post(f"{API}/ask", json={"context": {"C": 1}}).status_code == 200


def test_system_errors_are_not_quoted(ward, monkeypatch):
    client = ward.client()

    def fail(*_anything):
        raise OSError(28, "No space left on device", str(ward.store))

    monkeypatch.setattr(ward.registry, "names", fail)
    answer = client.get("/api/experiments")
    assert answer.status_code in (500, 503)
    assert_no_paths(ward, answer)


BROKEN_POLICY = """
from dowise.policies import Policy
class Broken:
    def __init__(self, problem, secret=None):
        open(f"/srv/own/{secret}")
"""


def test_a_failing_custom_policy_is_a_server_error(ward, monkeypatch, tmp_path, caplog):
    folder = tmp_path / "own code"
    folder.mkdir()
    (folder / "broken_one.py").write_text(BROKEN_POLICY)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(registry, "_MODULES", {})
    dowise.policies.import_policies("broken_one")
    body = {"policy": "broken_one:Broken", "options": {"secret": "x"}, "reason": "try"}
    answer = ward.client().post(f"{API}/revise", json=body)
    assert answer.status_code == 500 and "log" in answer.json()["detail"]
    assert "/srv/own" not in answer.text and "broken_one.py" not in answer.text
    assert "/srv/own" in caplog.text
    assert_no_paths(ward, answer)


def test_other_stores_can_not_be_reached(ward, tmp_path):
    other = tmp_path / "other.db"
    with Experiment.create(other, "another", load_problem("task2"), "ucb", seed=1):
        pass
    client = ward.client()
    for name in (
        "another",
        str(other),
        f"sqlite:///{other}",
        "../other.db",
        f"file:{other}",
        "other.db/another",
        "http://127.0.0.1:1/x",
    ):
        for path in ("", "/status", "/stream"):
            answer = client.get(f"/api/experiments/{name.replace('/', '%2F')}{path}")
            assert answer.status_code == 404, name
    body = {"name": str(other), "problem": 'graph = "X -> Y"\nreward = "Y"', "policy": "ucb"}
    before = other.read_bytes()
    assert client.post("/api/experiments", json=body).status_code == 422  # not a name for URLs
    body["name"] = str(other).lstrip("/")  # an ordinary name
    assert client.post("/api/experiments", json=body).status_code == 201
    assert other.read_bytes() == before and re.search("other.db", str(ward.registry.names()))
