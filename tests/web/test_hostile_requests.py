"""Hostile requests, and scripts in every name on every page that shows it."""

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
from support.sandboxes import use_in_process_sandbox
from support.servers import running
from web.test_security import send_raw, status

from dowise import Experiment, load_problem

pytestmark = pytest.mark.slow  # a corpus, and a crawl of all pages

_WATCHED_EVENTS = ("open", "import", "subprocess.Popen", "socket.getaddrinfo")
_suspicious_events = []
_is_watching = False


def _watch(event, arguments):
    """Record files, modules, programs and addresses that hostile requests name."""
    if _is_watching and event in _WATCHED_EVENTS and MARK in repr(arguments):
        _suspicious_events.append((event, repr(arguments)[:200]))


@pytest.fixture(scope="module")
def suspicious_events():
    """Events recorded during these tests; an audit hook can't be removed, only disabled."""
    global _is_watching
    sys.addaudithook(_watch)
    _is_watching = True
    yield _suspicious_events
    _is_watching = False


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    store = tmp_path_factory.mktemp("hostile") / "ward.db"
    with Experiment.create(
        store, "ward 7", load_problem("task2"), "ids", {"samples": 50}, 7
    ) as experiment:
        experiment.tell(experiment.ask({"C": 1}).id, {"Y": 1, "Z": 1})
    with running(store, failures=1000.0, rate=1000.0) as server:
        server.admin = server.client()
        use_in_process_sandbox(server)
        yield server


def send(ward, hostile):
    """Send a hostile request, and return status, headers and text."""
    if hostile.is_raw:
        token = ward.admin.headers["Authorization"]
        host = ward.address.removeprefix("http://")
        lines = (
            f"GET {hostile.path} HTTP/1.1",
            f"Host: {host}",
            f"Authorization: {token}",
            "Connection: close",
            "",
            "",
        )
        response = send_raw(ward, "\r\n".join(lines).encode("latin-1"))
        head, _, body = response.partition(b"\r\n\r\n")
        return status(response), head.decode("latin-1").lower(), body.decode(errors="replace")
    headers = {"Content-Type": hostile.kind} | hostile.headers
    answer = ward.admin.request(
        hostile.method, hostile.path, content=hostile.body, headers=headers, timeout=120
    )
    head = "\r\n".join(f"{name}: {value}" for name, value in answer.headers.items())
    return answer.status_code, head.lower(), answer.text


@pytest.mark.parametrize("hostile", [pytest.param(hostile, id=hostile.name) for hostile in CORPUS])
def test_a_hostile_request_is_refused(ward, suspicious_events, hostile):
    before, modules = ward.admin.get(API).json()["head"], {*sys.modules}
    code, head, text = send(ward, hostile)
    assert code in hostile.statuses, (code, text[:500])
    assert hostile.message in text and len(text) < 100_000
    assert "set-cookie" not in head and "traceback" not in text.lower()
    if code >= 400 and not hostile.is_raw and hostile.path.startswith("/api"):
        assert "content-type: application/problem+json" in head
        assert json.loads(text)["detail"]
    if code >= 400:
        assert ward.admin.get(API).json()["head"] == before
    assert not any(MARK in name for name in {*sys.modules} - modules)
    assert not suspicious_events
    assert "root:" not in text  # of /etc/passwd


def test_the_corpus_is_large_and_names_are_unique():
    assert len(CORPUS) >= 60 and len({hostile.name for hostile in CORPUS}) == len(CORPUS)


# -- script in names ------------------------------------------------------------------------------

SCRIPT = "<script>alert(1)</script>"
HOSTILE = [
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
X, LATENT = f"X {SCRIPT}", f"Z {HOSTILE[2]}"  # no double quotes, which end a name in a graph
REWARD, CONTEXT = f"Y {HOSTILE[3]}", f"C {HOSTILE[6]}"


def toml(text):
    return json.dumps(text)


def problem():
    """Return a problem in which every name and label is hostile."""
    x, z, y, c = map(toml, (X, LATENT, REWARD, CONTEXT))
    graph = f"{c} -> {x} -> {z} -> {y}; {c} -> {y}"
    return "\n".join(
        (
            f"name = {toml(HOSTILE[0])}",
            f"description = {toml(HOSTILE[3])}",
            f"graph = {toml(graph)}",
            f"reward = {y}",
            f"context = {c}",
            f"non_manipulable = {z}",
            "[domains]",
            f"{x} = {json.dumps(HOSTILE[:2])}",
            f"{z} = {json.dumps(HOSTILE[2:4])}",
            f"{y} = {json.dumps(HOSTILE[4:6])}",
            f"{c} = {json.dumps(HOSTILE[6:])}",
            "[reward_values]",
            f"{toml(HOSTILE[4])} = 0",
            f"{toml(HOSTILE[5])} = 1",
        )
    )


class Page(HTMLParser):
    """Code that a browser would run in a page, and links of the page."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.scripts, self.links, self._tag = [], set(), None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self._tag = tag
        attributes = {name: value or "" for name, value in attrs}
        for name, value in attributes.items():
            if name.startswith(("on", "hx-on")) or name in ("style", "srcdoc"):
                self.scripts.append((tag, name, value))
            if name in ("href", "src", "action", "formaction", "xlink:href") and re.match(
                r"[\x00-\x20]*(javascript|data|vbscript)\s*:", value, re.IGNORECASE
            ):
                self.scripts.append((tag, name, value))
            if name in ("href", "src", "hx-get", "data-href"):
                self.links.add(value)
        if tag in ("iframe", "object", "embed", "base") or (
            tag == "img" and attributes.get("src") == "x"
        ):
            self.scripts.append((tag, attributes))

    def handle_data(self, data):
        if self._tag == "script" and data.strip():
            self.scripts.append(("script", data))

    def handle_endtag(self, tag):  # noqa: ARG002
        self._tag = None


@pytest.fixture(scope="module")
def written(ward):
    """The server with an experiment in which every name and text is a script."""
    page = {
        "name": NAME,
        "problem": problem(),
        "policy": "ids",
        "options": {"samples": 20},
        "seed": 7,
    }
    response = ward.client("admin", f"admin {HOSTILE[1]}").post("/api/experiments", json=page)
    assert response.status_code == 201, response.text
    at = f"/api/experiments/{quote(NAME, safe='')}"
    asker, teller = ward.client("ask", HOSTILE[0]), ward.client("tell", HOSTILE[3])
    for number, label in enumerate((HOSTILE[6], HOSTILE[7], HOSTILE[6], HOSTILE[7]), 1):
        asked = asker.post(
            f"{at}/ask",
            json={"context": {CONTEXT: label}},
            headers={"Idempotency-Key": f"{number} {HOSTILE[2]}"},
        )
        assert asked.status_code == 200, asked.text
    values = {"values": {LATENT: HOSTILE[2], REWARD: HOSTILE[5]}}
    assert teller.post(f"{at}/tell/1", json=values).status_code == 200
    change = {"values": {REWARD: HOSTILE[4]}, "reason": HOSTILE[1]}
    assert teller.post(f"{at}/amend/1", json=change).status_code == 200
    assert teller.post(f"{at}/withdraw/2", json={"reason": HOSTILE[3]}).status_code == 200
    assert ward.admin.post(f"{at}/erase/3", json={"reason": SCRIPT}).status_code == 200
    rows = {
        "records": [{X: HOSTILE[0], REWARD: HOSTILE[5], CONTEXT: HOSTILE[6]}],
        "source": HOSTILE[3],
    }
    assert ward.admin.post(f"{at}/import", json=rows).status_code == 200
    ward.at = at
    return ward


def test_no_page_runs_scripts_in_names(written):
    """Crawls all pages that links lead to, and their parts."""
    browser, home = written.browser(), f"/experiments/{quote(NAME, safe='/')}"
    urls = {
        "/?all",
        "/new",
        "/login",
        "/enter",
        "/nothing%3Cscript%3E",
        *(f"{home}/{page}" for page in ("now", "known", "graph", "history")),
        f"{home}/history?search={quote(SCRIPT)}",
        f"{home}/now?wrong={quote(SCRIPT)}",
        f"/experiments/{quote(SCRIPT, safe='')}/now",
    }
    visited, escaped = set(), 0
    while urls:
        path = urls.pop()
        visited.add(path)
        answer = browser.get(path)
        assert answer.status_code < 500, (path, answer.status_code)
        kind = answer.headers["content-type"].partition(";")[0]
        if kind == "text/html":
            page = Page(answer.text)
            assert not page.scripts, (path, page.scripts)
            assert "49$49" not in answer.text  # a template in a name
            escaped += "&lt;script&gt;alert(1)" in answer.text
            for link in page.links:
                target = urlsplit(urljoin(f"http://here{path}", link))
                url = f"{target.path}?{target.query}" if target.query else target.path
                if target.netloc == "here" and not url.startswith(("/static/", "/api/")):
                    urls |= {url} - visited
        assert len(visited) < 200
    assert escaped >= 5, visited


def test_error_pages_run_no_scripts_in_names(written):
    browser = written.browser()
    csrf = re.search(r'name="csrf" value="(\w+)"', browser.get("/?all").text)[1]
    home = f"/experiments/{quote(NAME, safe='/')}/now"
    for form in ("ask", "tell", "amend", "withdraw"):
        for field in ("id", "context." + SCRIPT, "seen." + SCRIPT, "reason", "played", "allowed"):
            data = {"csrf": csrf, field: f"={HOSTILE[3]}"}
            answer = browser.post(f"{home}/{form}", data=data)
            assert answer.status_code < 500, (form, field)
            assert not Page(answer.text).scripts, (form, field)
    for path, data in (
        ("/new", {"problem": problem(), "name": NAME}),
        ("/new/preview", {"problem": f'graph = "{SCRIPT}"'}),
        ("/new/look", {"problem": problem()}),
    ):
        answer = browser.post(path, data={"csrf": csrf} | data)
        assert answer.status_code < 500 and not Page(answer.text).scripts, (
            path,
            answer.status_code,
        )


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
            assert not any(key.lower().startswith("on") or key == "style" for key in element.attrib)


def test_documents_are_json(written):
    for path in (
        "",
        "/status",
        "/decisions",
        "/decisions/1",
        "/explain/1",
        "/history",
        "/events",
        "/audit",
        "/export?format=json",
        "/belief",
        "/counted",
        f"/variable?variable={quote(X)}",
    ):
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
    assert len(rows) == 5 and any(HOSTILE[7] in cell for row in rows for cell in row)
    assert not any(
        cell.startswith(("=", "+", "-", "@", "\t", "\r")) for row in rows for cell in row
    )
