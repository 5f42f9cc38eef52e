"""Promises to programs: idempotency, ETags, pagination, names, errors, actors and tables."""

import csv
import io
import json
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from urllib.parse import quote

import pytest

from dowise import Experiment
from dowise.experiment.case import Case
from dowise.problem.problem_file import parse_problem
from dowise_web.api.queries import safe_csv

pytestmark = pytest.mark.slow  # hundreds of requests

API = "/api/experiments/ward%207"
PROBLEM = 'graph = "X -> Y"\nreward = "Y"'


@pytest.fixture(scope="module")
def admin(ward):
    return ward.client("admin", "Dr. Zoë")


def ask(client, key=None, at=API, **body):
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post(f"{at}/ask", json={"context": {"C": 1}} | body, headers=headers)


def last_number(client, at=API):
    return int(client.get(at).json()["head"].partition(":")[0])


# -- idempotency keys --------------------------------------------------------------------------


def test_a_repeated_key_returns_the_same_decision(admin):
    first, again = ask(admin, "bed 4"), ask(admin, "bed 4")
    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()


def test_concurrent_requests_with_one_key_get_one_decision(ward, admin):
    before = last_number(admin)
    clients = [ward.client("ask") for _ in range(12)]
    with ThreadPoolExecutor(12) as threads:
        answers = [*threads.map(lambda client: ask(client, "bed 6"), clients)]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert last_number(admin) == before + 1


def test_a_repeated_key_returns_the_same_batch(admin):
    body, headers = {"contexts": [{"C": 0}, {"C": 1}]}, {"Idempotency-Key": "beds 7, 8"}
    first = admin.post(f"{API}/ask-many", json=body, headers=headers).json()
    again = admin.post(f"{API}/ask-many", json=body, headers=headers).json()
    assert first == again and len(first["decisions"]) == 2


@pytest.mark.parametrize("key", ["x" * 201, ""])
def test_invalid_keys_are_refused(admin, key):
    assert ask(admin, key).status_code == 422


@pytest.mark.parametrize("verb", ["tell", "amend", "withdraw", "erase"])
def test_of_concurrent_equal_writes_exactly_one_changes_something(ward, admin, verb):
    number, body = ask(admin).json()["id"], {"reason": "typo"}
    if verb == "tell":
        body = {"values": {"Y": 1}}
    if verb == "amend":
        admin.post(f"{API}/tell/{number}", json={"values": {"Y": 0}})
        body["values"] = {"Y": 1}
    clients = [ward.client("admin") for _ in range(4)]

    def write(client):
        return client.post(f"{API}/{verb}/{number}", json=body).json()["changed"]

    with ThreadPoolExecutor(4) as threads:
        with closing(sqlite3.connect(str(ward.storage), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # so that all wait for the lock
            answers = [threads.submit(write, client) for client in clients]
            time.sleep(0.3)
        assert sorted(answer.result(20) for answer in answers) == [False, False, False, True]


# -- ETags -----------------------------------------------------------------------------------------


def test_an_unchanged_status_is_not_sent_again(admin):
    first = admin.get(f"{API}/status")
    tag = first.headers["etag"]
    same = admin.get(f"{API}/status", headers={"If-None-Match": f'"other", {tag}'})
    assert same.status_code == 304 and not same.content and same.headers["etag"] == tag
    assert admin.get(f"{API}/status?rounds=1", headers={"If-None-Match": tag}).status_code == 200
    ask(admin)
    after = admin.get(f"{API}/status", headers={"If-None-Match": tag})
    assert after.status_code == 200 and after.headers["etag"] != tag
    assert after.json()["decisions"]["asked"] == first.json()["decisions"]["asked"] + 1


def test_an_etag_does_not_bypass_authentication(ward, admin):
    import httpx2

    tag = admin.get(f"{API}/status").headers["etag"]
    answer = httpx2.get(f"{ward.address}{API}/status", headers={"If-None-Match": tag})
    assert answer.status_code == 401


# -- lists ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 3, 1000])
@pytest.mark.parametrize(("resource", "number"), [("decisions", "id"), ("events", "number")])
def test_lists_are_paginated_in_order(admin, resource, number, limit):
    for _ in range(4):
        ask(admin)
    numbers, after = [], 0
    while after is not None:
        page = admin.get(f"{API}/{resource}", params={"after": after, "limit": limit}).json()
        assert len(page[resource]) <= limit
        numbers += [item[number] for item in page[resource]]
        after = page["next"]
    last = max(numbers)
    assert numbers == [*range(1, last + 1)]
    assert resource == "decisions" or last == last_number(admin)


def test_lists_can_be_filtered(admin):
    number = ask(admin).json()["id"]
    admin.post(f"{API}/withdraw/{number}", json={"reason": "moved to Ύδρα"})
    ids = [
        item["id"] for item in admin.get(f"{API}/decisions?status=withdrawn").json()["decisions"]
    ]
    assert number in ids
    matches = admin.get(f"{API}/events", params={"kind": "withdrawn", "search": "ύδρα"}).json()
    assert [item["body"]["decision"] for item in matches["events"]] == [number]


@pytest.mark.parametrize("kind", [None, "pending", "done", "withdrawn", "erased"])
def test_listing_decisions_copies_only_the_page(ward, admin, kind, monkeypatch):
    for number in [ask(admin).json()["id"] for _ in range(4)][:2]:
        admin.post(f"{API}/withdraw/{number}", json={"reason": "left"})
    cases = [
        case for case in ward.registry.experiment("ward 7").records() if kind in (None, case.status)
    ]
    copies, copy = [], Case.copy
    monkeypatch.setattr(Case, "copy", lambda case: copies.append(case.id) or copy(case))
    query = {"limit": 1, **({} if kind is None else {"status": kind})}
    page = admin.get(f"{API}/decisions", params=query).json()
    assert [item["id"] for item in page["decisions"]] == [case.id for case in cases[:1]]
    assert page["next"] == (cases[0].id if len(cases) > 1 else None)
    assert len(copies) <= 2
    if len(cases) > 1:
        page = admin.get(f"{API}/decisions", params={**query, "after": page["next"]}).json()
        assert [item["id"] for item in page["decisions"]] == [cases[1].id]


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=-1",
        "after=-1",
        "after=x",
        "kind=asked|told",
        "search=" + "x" * 201,
        f"after={2**64}",
    ],
)
def test_invalid_queries_of_lists_are_refused(admin, query):
    assert admin.get(f"{API}/events?{query}").status_code == 422


# -- names ----------------------------------------------------------------------------------------

NAMES = [
    "ward 7/b",
    "a/b/c",
    "50 %",
    "100%25",
    "Ζωή",
    "日本",
    "a?b=c#d",
    "a&b;c",
    "quo'te\"s",
    "a+b",
    "dots..",
    "...",
    "status",
    "back\\slash",
    "<script>alert(1)</script>",
    "{name}",
    "a:b@c",
    "ask",
    "🙂",
    "%2e%2e%2fetc",
    "_",
    "x" * 200,
]


@pytest.mark.parametrize("name", NAMES)
def test_experiments_are_found_by_unusual_names(ward, admin, name):
    if name == NAMES[0]:  # through the sandbox, which takes long
        page = {"name": name, "problem": PROBLEM, "policy": "ucb"}
        assert admin.post("/api/experiments", json=page).json()["name"] == name
    else:
        ward.registry.create(name, parse_problem(PROBLEM), policy="ucb")
    at = f"/api/experiments/{quote(name, safe='').replace('.', '%2E')}"
    assert admin.get(at).json()["name"] == name
    asked = ask(admin, at=at, context=None)
    assert asked.json()["id"] == 1
    assert admin.get(f"{at}/status").json()["name"] == name
    assert admin.get(f"{at}/events").json()["events"][0]["experiment"] == name
    table = admin.get(f"{at}/export")
    assert table.headers["content-disposition"].isprintable()
    assert table.headers["content-disposition"].count('"') == 2
    assert name in [item["name"] for item in admin.get("/api/experiments").json()["experiments"]]


def test_a_duplicate_name_is_a_conflict(admin):
    page = {"name": "ward 7", "problem": PROBLEM, "policy": "ucb"}
    response = admin.post("/api/experiments", json=page)
    assert response.status_code == 409


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\r\nX: 1", "a\0b", "x" * 201, "\u202eabc"])
def test_invalid_names_are_refused(admin, name):
    response = admin.post("/api/experiments", json={"name": name, "problem": PROBLEM})
    assert response.status_code == 422


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/experiments/ward%208", None, 404),
        ("GET", "/api/nothing", None, 404),
        ("GET", f"{API}/decisions/4000", None, 404),
        ("GET", f"{API}/decisions/0", None, 422),
        ("PUT", f"{API}/ask", None, 405),
        ("POST", f"{API}/ask", {"context": {"C": 7}}, 422),
        ("POST", f"{API}/ask", {"contxt": {"C": 1}}, 422),
        ("POST", f"{API}/tell/4000", {"values": {"Y": 1}}, 404),
        ("DELETE", "/api/tokens/4000", None, 404),
    ],
)
def test_errors_are_problem_details(admin, method, path, body, status):
    answer = admin.request(method, path, json=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    page = answer.json()
    assert page["status"] == status and page["title"] and page["detail"] and page["type"]


def test_long_invalid_bodies_get_short_responses(admin):
    answer = ask(admin, allowed=[7.5] * 20_000)
    assert answer.status_code == 422 and len(answer.content) < 20_000
    answer = ask(admin, context={"C": "x" * 900_000})
    assert answer.status_code == 422 and len(answer.content) < 20_000


# -- actors -----------------------------------------------------------------------------------


def test_the_actor_is_the_holder_of_the_token(ward, admin):
    number = ask(ward.client("ask", "tablet of ward 7")).json()["id"]
    ward.client("tell", "Schwester Käthe").post(f"{API}/tell/{number}", json={"values": {"Y": 1}})
    admin.post(f"{API}/erase/{number}", json={"reason": "asked to"})
    with Experiment.open(ward.storage, "ward 7") as experiment:
        actors = [event.actor for event in experiment.events()][-3:]
    assert actors == ["tablet of ward 7", "Schwester Käthe", "Dr. Zoë"]


def test_the_creator_of_an_experiment_is_the_actor(admin):
    admin.post("/api/experiments", json={"name": "begun", "problem": PROBLEM, "policy": "ucb"})
    events = admin.get("/api/experiments/begun/events").json()["events"]
    assert [event["actor"] for event in events] == ["Dr. Zoë"]


# -- secrets of the random stream -------------------------------------------------------


def test_only_admins_see_seed_and_salts(ward, admin):
    ask(admin)
    shown = admin.get(f"{API}/events").json()["events"]
    assert shown[0]["body"]["seed"] == "7"
    assert all(event["salt"] for event in shown if "erased" not in event["body"])
    for role in ("read", "tell", "ask"):
        events = ward.client(role).get(f"{API}/events").json()["events"]
        assert len(events) == len(shown)
        assert not any(event["salt"] for event in events)
        assert "seed" not in json.dumps(events)


def test_searching_does_not_reveal_the_seed(ward, admin):
    reader = ward.client("read")
    for text in ('"seed":"7"', '"seed":"', "seed"):
        assert admin.get(f"{API}/events", params={"search": text}).json()["events"]
        assert not reader.get(f"{API}/events", params={"search": text}).json()["events"]
    matches = reader.get(f"{API}/events", params={"search": '"policy":"ids"'}).json()["events"]
    assert [event["kind"] for event in matches] == ["created"]


def test_only_events_contain_the_seed(ward):
    name, seed = "seeded", "170141183460469231731687303715884105727"
    admin, at = ward.client(), "/api/experiments/seeded"
    body = {"name": name, "problem": PROBLEM, "policy": "ids", "seed": seed}
    response = admin.post("/api/experiments", json=body | {"options": {"samples": 20}})
    assert response.status_code == 201
    ask(admin, at=at, context=None)
    answers = [response] + [
        admin.get(f"{at}{path}")
        for path in (
            "",
            "/status",
            "/decisions",
            "/decisions/1",
            "/explain/1",
            "/history",
            "/audit",
            "/export",
            "/export?format=json",
            "/../" + name,
        )
    ]
    assert all(answer.status_code < 300 and seed not in answer.text for answer in answers)


def test_invalid_seeds_are_refused(admin):
    for seed in (-1, "x", "1" * 60, 1.5, 2**128, "٣", True, [1]):
        body = {"name": "bad", "problem": PROBLEM, "seed": seed}
        assert admin.post("/api/experiments", json=body).status_code == 422, seed


# -- tables ---------------------------------------------------------------------------------------

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0", "＝1+1", "\n=1"]


@pytest.mark.parametrize("cell", FORMULAS)
def test_no_cell_starts_a_formula(cell):
    rows = [*csv.reader(io.StringIO(safe_csv({cell: [cell, "x"]}).decode(), newline=""))]
    assert rows == [[f"'{cell}"], [f"'{cell}"], ["x"]]


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_no_cell_starts_another_row(end):
    """Spreadsheets end rows at carriage returns outside of quotes."""
    assert safe_csv({"X": [f"low{end}=1+1"]}).decode() == f'X\r\n"low{end}=1+1"\r\n'


def test_exported_formulas_are_quoted(admin):
    problem = 'graph = "X -> Y"\nreward = "Y"\n[domains]\nX = ["=1+1", "@x"]\n'
    body = {"name": "sheet", "problem": problem, "policy": "ucb"}
    assert admin.post("/api/experiments", json=body).status_code == 201
    at = "/api/experiments/sheet"
    ask(admin, at=at, context=None)
    table = admin.get(f"{at}/export")
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    for row in csv.reader(io.StringIO(table.text)):
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row)
    assert admin.get(f"{at}/export?format=json").json()["X"][0] in ("=1+1", "@x")
    assert admin.get(f"{at}/export?format=xlsx").status_code == 422
