"""The corpus of hostile inputs; and script in every name, on every page that shows it."""

import csv
import io
import json
import re
import sys
from html.parser import HTMLParser
from urllib.parse import quote, urljoin, urlsplit
from xml.etree import ElementTree

import pytest
from support.hostile_requests import API, CORPUS, MARK
from support.servers import running
from web.test_security import raw, status

from dowise import Experiment, load_problem

pytestmark = pytest.mark.slow  # a corpus, and a crawl of all pages

_ASKING = ("open", "import", "subprocess.Popen", "socket.getaddrinfo")
_asked_for = []
_is_listening = False


def _listen(event, arguments):
    """What this process asks of the system, by name: files, modules, programs, addresses."""
    if _is_listening and event in _ASKING and MARK in repr(arguments):
        _asked_for.append((event, repr(arguments)[:200]))


@pytest.fixture(scope="module")
def listening():
    """Hears it for as long as these tests run: such a hook can't be taken away, only silenced."""
    global _is_listening
    sys.addaudithook(_listen)
    _is_listening = True
    yield _asked_for
    _is_listening = False


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    store = tmp_path_factory.mktemp("hostile") / "ward.db"
    with Experiment.create(
        store, "ward 7", load_problem("task2"), "ids", {"samples": 50}, 7
    ) as one:
        one.tell(one.ask({"C": 1}).id, {"Y": 1, "Z": 1})
    with running(store, failures=1000.0, rate=1000.0) as found:
        found.admin = found.client()
        yield found


def answer_to(ward, hostile):
    """Status, headers and text."""
    if hostile.is_raw:
        token = ward.admin.headers["Authorization"]
        host = ward.address.removeprefix("http://")
        lines = (f"GET {hostile.path} HTTP/1.1", f"Host: {host}", f"Authorization: {token}",
                 "Connection: close", "", "")  # fmt: skip
        came = raw(ward, "\r\n".join(lines).encode("latin-1"))
        head, _, body = came.partition(b"\r\n\r\n")
        return status(came), head.decode("latin-1").lower(), body.decode(errors="replace")
    headers = {"Content-Type": hostile.kind} | hostile.headers
    answer = ward.admin.request(
        hostile.method, hostile.path, content=hostile.body, headers=headers, timeout=120
    )
    head = "\r\n".join(f"{name}: {value}" for name, value in answer.headers.items())
    return answer.status_code, head.lower(), answer.text


@pytest.mark.parametrize("hostile", [
    pytest.param(one, id=one.name, marks=[pytest.mark.slow] * one.is_slow) for one in CORPUS
])  # fmt: skip
def test_a_hostile_request_is_refused(ward, listening, hostile):
    before, modules = ward.admin.get(API).json()["head"], {*sys.modules}
    code, head, text = answer_to(ward, hostile)
    assert code in hostile.answers, (code, text[:500])
    assert hostile.says in text and len(text) < 100_000
    assert "set-cookie" not in head and "traceback" not in text.lower()
    if code >= 400 and not hostile.is_raw and hostile.path.startswith("/api"):
        assert "content-type: application/problem+json" in head
        assert json.loads(text)["detail"]
    if code >= 400:
        assert ward.admin.get(API).json()["head"] == before
    assert not any(MARK in name for name in {*sys.modules} - modules)
    assert not listening
    assert "root:" not in text  # of /etc/passwd


def test_the_corpus_is_large_and_names_are_unique():
    assert len(CORPUS) >= 60 and len({one.name for one in CORPUS}) == len(CORPUS)


# -- script in names ------------------------------------------------------------------------------

SCRIPT = "<script>alert(1)</script>"
ALL = [
    SCRIPT,
    '"><svg onload=alert(2)>',
    "' onmouseover='alert(3)",
    "</textarea></title><img src=x onerror=alert(4)>",
    "javascript:alert(5)",
    "{{7*7}}${7*7}",
    "]]><x onclick=alert(6)>",
    "=cmd|' /C calc'!A0",
]
NAME = f"{SCRIPT}\"'&amp;%3Cb%3E"
X, LATENT = f"X {SCRIPT}", f"Z {ALL[2]}"  # no double quotes, which end a name in a graph
REWARD, CONTEXT = f"Y {ALL[3]}", f"C {ALL[6]}"


def toml(text):
    return json.dumps(text)


def problem():
    """One in which every name and label is hostile."""
    x, z, y, c = map(toml, (X, LATENT, REWARD, CONTEXT))
    graph = f"{c} -> {x} -> {z} -> {y}; {c} -> {y}"
    return "\n".join(
        (
            f"name = {toml(ALL[0])}",
            f"description = {toml(ALL[3])}",
            f"graph = {toml(graph)}",
            f"reward = {y}",
            f"context = {c}",
            f"non_manipulable = {z}",
            "[domains]",
            f"{x} = {json.dumps(ALL[:2])}",
            f"{z} = {json.dumps(ALL[2:4])}",
            f"{y} = {json.dumps(ALL[4:6])}",
            f"{c} = {json.dumps(ALL[6:])}",
            "[reward_values]",
            f"{toml(ALL[4])} = 0",
            f"{toml(ALL[5])} = 1",
        )
    )


class Page(HTMLParser):
    """What a browser would make of a page: what runs, and where it leads."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.wrong, self.leads, self._tag = [], set(), None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self._tag = tag
        given = {name: value or "" for name, value in attrs}
        for name, value in given.items():
            if name.startswith(("on", "hx-on")) or name in ("style", "srcdoc"):
                self.wrong.append((tag, name, value))
            if name in ("href", "src", "action", "formaction", "xlink:href") and re.match(
                r"[\x00-\x20]*(javascript|data|vbscript)\s*:", value, re.IGNORECASE
            ):
                self.wrong.append((tag, name, value))
            if name in ("href", "src", "hx-get", "data-href"):
                self.leads.add(value)
        if tag in ("iframe", "object", "embed", "base") or (
            tag == "img" and given.get("src") == "x"
        ):
            self.wrong.append((tag, given))

    def handle_data(self, data):
        if self._tag == "script" and data.strip():
            self.wrong.append(("script", data))

    def handle_endtag(self, tag):  # noqa: ARG002 (whatever ends)
        self._tag = None


@pytest.fixture(scope="module")
def written(ward):
    """The same server, with an experiment in which everybody who may say something says script."""
    page = {
        "name": NAME,
        "problem": problem(),
        "policy": "ids",
        "options": {"samples": 20},
        "seed": 7,
    }
    made = ward.client("admin", f"admin {ALL[1]}").post("/api/experiments", json=page)
    assert made.status_code == 201, made.text
    at = f"/api/experiments/{quote(NAME, safe='')}"
    asker, teller = ward.client("ask", ALL[0]), ward.client("tell", ALL[3])
    for number, label in enumerate((ALL[6], ALL[7], ALL[6], ALL[7]), 1):
        asked = asker.post(
            f"{at}/ask", json={"context": {CONTEXT: label}},
            headers={"Idempotency-Key": f"{number} {ALL[2]}"},
        )  # fmt: skip
        assert asked.status_code == 200, asked.text
    values = {"values": {LATENT: ALL[2], REWARD: ALL[5]}}
    assert teller.post(f"{at}/tell/1", json=values).status_code == 200
    change = {"values": {REWARD: ALL[4]}, "reason": ALL[1]}
    assert teller.post(f"{at}/amend/1", json=change).status_code == 200
    assert teller.post(f"{at}/withdraw/2", json={"reason": ALL[3]}).status_code == 200
    assert ward.admin.post(f"{at}/erase/3", json={"reason": SCRIPT}).status_code == 200
    rows = {"records": [{X: ALL[0], REWARD: ALL[5], CONTEXT: ALL[6]}], "source": ALL[3]}
    assert ward.admin.post(f"{at}/import", json=rows).status_code == 200
    ward.at = at
    return ward


def test_no_page_runs_scripts_in_names(written):
    """Every page that can be reached by links, and what its parts load."""
    browser, home = written.browser(), f"/experiments/{quote(NAME, safe='/')}"
    left = {"/?all", "/new", "/login", "/enter", "/nothing%3Cscript%3E",
            *(f"{home}/{page}" for page in ("now", "known", "graph", "history")),
            f"{home}/history?search={quote(SCRIPT)}", f"{home}/now?wrong={quote(SCRIPT)}",
            f"/experiments/{quote(SCRIPT, safe='')}/now"}  # fmt: skip
    seen, shown = set(), 0
    while left:
        path = left.pop()
        seen.add(path)
        answer = browser.get(path)
        assert answer.status_code < 500, (path, answer.status_code)
        kind = answer.headers["content-type"].partition(";")[0]
        if kind == "text/html":
            page = Page(answer.text)
            assert not page.wrong, (path, page.wrong)
            assert "49$49" not in answer.text  # a template in a name
            shown += "&lt;script&gt;alert(1)" in answer.text
            for lead in page.leads:
                where = urlsplit(urljoin(f"http://here{path}", lead))
                to = f"{where.path}?{where.query}" if where.query else where.path
                if where.netloc == "here" and not to.startswith(("/static/", "/api/")):
                    left |= {to} - seen
        assert len(seen) < 200
    assert shown >= 5, seen


def test_error_pages_run_no_scripts_in_names(written):
    browser = written.browser()
    csrf = re.search(r'name="csrf" value="(\w+)"', browser.get("/?all").text)[1]
    home = f"/experiments/{quote(NAME, safe='/')}/now"
    for form in ("ask", "tell", "amend", "withdraw"):
        for field in ("id", "context." + SCRIPT, "seen." + SCRIPT, "reason", "played", "allowed"):
            data = {"csrf": csrf, field: f"={ALL[3]}"}
            answer = browser.post(f"{home}/{form}", data=data)
            assert answer.status_code < 500, (form, field)
            assert not Page(answer.text).wrong, (form, field)
    for path, data in (("/new", {"problem": problem(), "name": NAME}),
                       ("/new/preview", {"problem": f'graph = "{SCRIPT}"'}),
                       ("/new/look", {"problem": problem()})):  # fmt: skip
        answer = browser.post(path, data={"csrf": csrf} | data)
        assert answer.status_code < 500 and not Page(answer.text).wrong, (path, answer.status_code)


def test_pictures_are_xml_without_scripts(written):
    browser = written.browser()
    answer = browser.get(f"/experiments/{quote(NAME, safe='/')}/graph")
    pictures = re.findall(r"<svg\b.*?</svg>", answer.text, re.DOTALL)
    assert pictures
    api = written.admin.get(f"{written.at}/graph.svg")
    if api.status_code == 200:
        assert api.headers["content-type"].startswith("image/svg+xml")
        pictures.append(api.text)
    for picture in pictures:
        for element in ElementTree.fromstring(picture).iter():
            name = element.tag.rpartition("}")[2]
            assert name not in ("script", "foreignObject", "iframe"), picture[:300]
            assert not any(one.lower().startswith("on") or one == "style" for one in element.attrib)


def test_documents_are_json(written):
    for path in ("", "/status", "/decisions", "/decisions/1", "/explain/1", "/history", "/events",
                 "/audit", "/export?format=json", "/belief", "/counted",
                 f"/variable?variable={quote(X)}"):  # fmt: skip
        answer = written.admin.get(f"{written.at}{path}")
        assert answer.status_code == 200, (path, answer.text)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert json.loads(answer.text)
    assert json.loads(written.admin.get(written.at).text)["name"] == NAME


def test_exported_tables_have_no_formulas(written):
    answer = written.admin.get(f"{written.at}/export")
    assert answer.headers["content-disposition"].startswith('attachment; filename="')
    rows = [*csv.reader(io.StringIO(answer.text, newline=""))]
    assert len(rows) == 5 and any(ALL[7] in cell for row in rows for cell in row)
    assert not any(
        cell.startswith(("=", "+", "-", "@", "\t", "\r")) for row in rows for cell in row
    )
