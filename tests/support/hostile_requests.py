"""Hostile requests by an admin to a server with the experiment `ward 7` (task2).

Whatever is sent, the response is an error or a page, nothing is written, nothing that the request
names is imported or opened, and the server goes on.
"""

import json
from dataclasses import dataclass, field

API = "/api/experiments/ward%207"
GRAPH = 'graph = "X -> Y"\nreward = "Y"\n'
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MARK = "hostile_marker"
"""Part of every file and module that a request names; none of them may be opened."""


@dataclass(frozen=True)
class Hostile:
    """A request, and the statuses of acceptable responses."""

    name: str
    path: str
    body: bytes | None = None
    statuses: tuple[int, ...] = (422,)
    method: str = "POST"
    kind: str = JSON
    message: str = ""
    """Part of the response."""
    headers: dict[str, str] = field(default_factory=dict)
    is_raw: bool = False
    """True to send the path without encoding it."""


def ask(name, body, statuses=(422,), **more):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Hostile(name, f"{API}/ask", content, statuses, **more)


def create(name, problem=GRAPH, statuses=(422,), message="", called="new", **more):
    page = {"name": called, "problem": problem, "policy": "ucb"} | more
    body = json.dumps(page).encode()
    return Hostile(name, "/api/experiments", body, statuses, message=message)


def get(name, path, statuses=(404,), **more):
    return Hostile(name, path, None, statuses, "GET", **more)


def get_raw(name, target, statuses=(400, 404), **more):
    return Hostile(name, target, None, statuses, "GET", is_raw=True, **more)


BODIES = [
    ask("nothing", b""),
    ask("not JSON", b"{"),
    ask("a number", b"7"),
    ask("a list", b"[]"),
    ask("null", b"null"),
    ask("a text", b'"ask"'),
    ask("lists in lists, 100,000 deep", b"[" * 100_000, (400, 422)),
    ask("objects in objects, 50,000 deep", b'{"a":' * 50_000, (400, 422)),
    ask("a context 900 deep", b'{"context":' + b'{"C":' * 900 + b"1" + b"}" * 901, (400, 422)),
    ask("NaN", b'{"context": {"C": NaN}}'),
    ask("Infinity", b'{"context": {"C": Infinity}}'),
    ask("a number too large for a float", b'{"context": {"C": 1e999}}'),
    ask("a whole number of 4,000 digits", b'{"context": {"C": ' + b"9" * 4000 + b"}}"),
    ask("a whole number of 100,000 digits", b'{"context": {"C": ' + b"9" * 100_000 + b"}}", (400,)),
    ask("a lone surrogate as a value", b'{"context": {"C": "\\ud800"}}'),
    ask("a lone surrogate as a name", b'{"context": {"\\udfff": "1"}}'),
    ask("a lone surrogate as a name of ours", b'{"\\ud800": "1"}'),
    ask("a lone surrogate where the kind is wrong too", b'{"context": {"\\ud800": [1]}}'),
    ask("a lone surrogate in an arm", b'{"context": {"C": 1}, "allowed": ["do(\\ud800=1)"]}'),
    ask("a NUL", b'{"context": {"C": "\\u0000"}}'),
    ask("a NUL in the name", b'{"context": {"C\\u0000": "1"}}'),
    ask("bytes that are not UTF-8", b'{"context": {"C": "\xff\xfe"}}', (400, 422)),
    ask("overlong UTF-8", b'{"context": {"C": "\xc0\xaf"}}', (400, 422)),
    ask("the same name twice, the last one wrong", b'{"context": {"C": 1}, "context": {"C": 9}}'),
    ask("a context that is a list", {"context": ["C", 1]}),
    ask("a context that is a text", {"context": "C=1"}),
    ask("a value that is a list", {"context": {"C": [1]}}),
    ask("a value that is an object", {"context": {"C": {"$ne": None}}}),
    ask("a value that is an injection", {"context": {"C": "1' OR '1'='1"}}),
    ask("a value that is a template", {"context": {"C": "{{7*7}}"}}),
    ask("80,000 arms", {"context": {"C": 1}, "allowed": ["do(X1=0)"] * 80_000}, (200, 422)),
    ask("an arm of a megabyte", {"context": {"C": 1}, "allowed": ["do(" + "X" * 900_000]}),
    ask("an arm of 100,000 brackets", {"context": {"C": 1}, "forbid": ["do(" * 100_000]}),
    ask("a name of a megabyte", {"context": {"C" * 900_000: 1}}),
    ask("100,000 names", {"context": {f"C{i}": 1 for i in range(60_000)}}),
    ask("an unknown field", {"context": {"C": 1}, "__proto__": {"role": "admin"}}),
    ask("a field of Python", {"context": {"C": 1}, "__class__": "x"}),
    ask("an id that is too long", {"context": {"C": 1}}, headers={"Idempotency-Key": "x" * 5000}),
    ask("a body that is too large", b" " * 1_100_000, (413,)),
    Hostile("10,000 contexts", f"{API}/ask-many", json.dumps({"contexts": [{}] * 10_000}).encode()),
    Hostile(
        "1,000 contexts with 1,000 arms each",
        f"{API}/ask-many",
        json.dumps({"contexts": [{"C": 1}] * 1000, "allowed": ["do(X1=0)"] * 1000}).encode(),
    ),
    Hostile("no contexts", f"{API}/ask-many", b'{"contexts": []}'),
    Hostile(
        "XML",
        f"{API}/ask",
        b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
        kind="application/xml",
        statuses=(415, 422),
    ),
    Hostile("a form instead of JSON", f"{API}/ask", b"context=1", kind=FORM, statuses=(415, 422)),
    Hostile(
        "JSON as plain text, as from other sites",
        f"{API}/ask",
        b'{"context": {"C": 1}}',
        kind="text/plain",
        statuses=(415, 422),
    ),
    Hostile(
        "gzip",
        f"{API}/ask",
        b"\x1f\x8b\x08" + b"\0" * 100,
        headers={"Content-Encoding": "gzip"},
        statuses=(400, 422),
    ),
    Hostile("a tell of the wrong type", f"{API}/tell/1", b'{"values": 7}'),
    Hostile("a tell of NaN", f"{API}/tell/999", b'{"values": {"Y": NaN}}', (404, 422)),
    Hostile(
        "a reason of a megabyte",
        f"{API}/withdraw/1",
        json.dumps({"reason": "x" * 900_000}).encode(),
    ),
    Hostile("a lone surrogate as a reason", f"{API}/withdraw/1", b'{"reason": "\\ud800"}'),
    Hostile("records that are not rows", f"{API}/import", b'{"records": [1, 2]}'),
    Hostile("records of NaN and lists", f"{API}/import", b'{"records": [{"Y": NaN, "X1": [1]}]}'),
    Hostile(
        "a lone surrogate in records", f"{API}/import", b'{"records": [{"\\ud800": "\\udc00"}]}'
    ),
    Hostile(
        "a source that is a path, and an unknown column",
        f"{API}/import",
        json.dumps({"records": [{"a": 1}], "source": f"/{MARK}"}).encode(),
    ),
    Hostile(
        "a million empty rows",
        f"{API}/import",
        b'{"records": [' + b"{}," * 1_000_000 + b"{}]}",
        (200, 422),
    ),
]

NAMED = [
    create("a graph in a file", f'graph_file = "/{MARK}.dot"\nreward = "Y"', message="graph_file"),
    create("a graph in a file above", f'graph_file = "../../{MARK}.dot"\nreward = "Y"'),
    create("a graph at a URL", f'graph_file = "http://127.0.0.1/{MARK}.dot"\nreward = "Y"'),
    create("a graph from a device", 'graph_file = "/dev/zero"\nreward = "Y"'),
    create("a prior in a file", f'{GRAPH}prior = "/{MARK}.toml"', message="prior"),
    create("a prior in a file, by an option", options={"prior": f"/{MARK}.toml"}, message="prior"),
    create("a prior in a file, in a list", options={"prior": [f"/{MARK}.toml"]}),
    create("an option that is a path", options={"path": f"/{MARK}"}),
    create("a policy to import", policy=f"{MARK}:Class"),
    create("a policy of the system", policy="os:system"),
    create("a policy in a file", policy=f"/{MARK}.py:Class"),
    create("a policy with dots", policy=f"..{MARK}:Class"),
    create("a problem that is a built-in's name", "task2"),
    create("a problem that is a path", f"/{MARK}.toml"),
    create("TOML that nests", "a = " + "[" * 50_000),
    create("TOML with a number of 100,000 digits", "a = " + "9" * 100_000),
    create("a problem that is too long", "#" * 300_000),
    create(
        "a graph of 20,000 variables",
        'graph = "' + "; ".join(f"V{i} -> Y" for i in range(20_000)) + '"\nreward = "Y"',
    ),
    create(
        "tables of 10^12 rows",
        'graph = "' + "; ".join(f"V{i} -> Y" for i in range(40)) + '"\nreward = "Y"',
    ),
    create("a seed of 100 digits", seed="9" * 100),
    create("a name that would end a header", called='x"\r\nSet-Cookie: a=b'),
    create("a name of a lone surrogate", called="\ud800"),
    Hostile(
        "another policy to import",
        f"{API}/revise",
        json.dumps({"policy": f"{MARK}:Class", "reason": "x"}).encode(),
    ),
    Hostile(
        "another problem with a file",
        f"{API}/revise",
        json.dumps({"problem": f'graph_file = "/{MARK}"\nreward = "Y"', "reason": "x"}).encode(),
    ),
    Hostile(
        "a policy to evaluate that would be imported",
        f"{API}/evaluate",
        json.dumps({"policy": f"{MARK}:Class"}).encode(),
    ),
    Hostile(
        "an arm to evaluate that is a module",
        f"{API}/evaluate",
        json.dumps({"policy": f" do({MARK}:Class)"}).encode(),
    ),
    Hostile(
        "options to evaluate with a file",
        f"{API}/evaluate",
        json.dumps({"policy": "ids", "options": {"prior": f"/{MARK}"}}).encode(),
    ),
    Hostile(
        "options 300 deep",
        f"{API}/evaluate",
        b'{"policy": "ids", "options": {"samples": ' + b'{"a":' * 300 + b"1" + b"}" * 302,
    ),
    Hostile(
        "options of infinity",
        f"{API}/evaluate",
        b'{"policy": "ids", "options": {"samples": Infinity}}',
    ),
    Hostile(
        "options of a lone surrogate",
        f"{API}/evaluate",
        b'{"policy": "ids", "options": {"\\ud800": "\\ud800"}}',
    ),
    Hostile(
        "a billion samples",
        f"{API}/evaluate",
        b'{"policy": "ids", "options": {"samples": 1000000000000}}',
    ),
    Hostile(
        "a preview with a file",
        "/api/preview",
        json.dumps({"problem": f'graph_file = "/{MARK}"\nreward = "Y"'}).encode(),
    ),
    Hostile(
        "an endless rehearsal",
        "/api/rehearse",
        json.dumps({"problem": GRAPH, "horizon": 10**12, "worlds": 10**9}).encode(),
    ),
    Hostile(
        "a rehearsal of a module",
        "/api/rehearse",
        json.dumps({"problem": GRAPH, "horizon": 2, "policy": f"{MARK}:Class"}).encode(),
    ),
    Hostile(
        "a rehearsal with an endless tolerance",
        "/api/rehearse",
        b'{"problem": "'
        + GRAPH.encode("unicode_escape").replace(b'"', b'\\"')
        + b'", "horizon": 2, "tolerance": Infinity}',
    ),
    Hostile("a token with an unknown role", "/api/tokens", b'{"role": "root", "name": "x"}'),
    Hostile("a token of a lone surrogate", "/api/tokens", b'{"role": "read", "name": "\\ud800"}'),
    Hostile("a token whose name ends a line", "/api/tokens", b'{"role": "read", "name": "a\\nb"}'),
    Hostile("an endless token", "/api/tokens", b'{"role": "read", "name": "x", "days": 1e999}'),
]

PATHS = [
    get("an experiment above", "/api/experiments/..%2f..%2fetc%2fpasswd"),
    get("an experiment above, encoded twice", "/api/experiments/%252e%252e%252fetc%252fpasswd"),
    get("a NUL in a name", "/api/experiments/ward%00"),
    get("a name that is not UTF-8", "/api/experiments/%ff%fe"),
    get("a name of 20,000 letters", f"/api/experiments/{'a' * 20_000}"),
    get("a line break in a name", "/api/experiments/x%0d%0aSet-Cookie:%20a=b"),
    get("a name that is an injection", "/api/experiments/x'%20OR%20'1'='1"),
    get("an id below one", f"{API}/decisions/0", (422,)),
    get("an id of 1,000 digits", f"{API}/decisions/{'9' * 1000}", (422,)),
    get("an id that is a word", f"{API}/decisions/one", (422,)),
    get("an id in another script", f"{API}/decisions/%D9%A1", (200, 404, 422)),
    get("an id with a fraction", f"{API}/explain/1.5", (422,)),
    get("a limit below zero", f"{API}/events?limit=-1", (422,)),
    get("a limit of 10^30", f"{API}/events?limit={10**30}", (422,)),
    get("an endless pattern", f"{API}/events?kind=" + "a|" * 3000, (422,)),
    get("a context that nests", f"{API}/status?context=" + "[" * 5000, (422,)),
    get("a context of NaN", f'{API}/status?context={{"C":NaN}}', (422,)),
    get("a context of a lone surrogate", f'{API}/status?context={{"C":"\\ud800"}}', (422,)),
    get("a tolerance of NaN", f"{API}/status?tolerance=nan", (422,)),
    get("endless rounds", f"{API}/status?rounds=1000000000", (422,)),
    get("endless points", f"{API}/history?points=1000000", (422,)),
    get("an invalid head", f"{API}/audit?head=%00%ff", (200, 422)),
    get("an unknown variable", f"{API}/variable?variable=%3Cscript%3E", (404, 422)),
    get("a formula of brackets", f"{API}/formula?arm=" + "do(" * 3000, (404, 422)),
    get("static files above", "/static/%2e%2e/app.py"),
    get("static files above, by slashes", "/static/..%2f..%2fapp.py"),
    get("static files above, encoded twice", "/static/%252e%252e/app.py"),
    get("static files by a backslash", "/static/..%5capp.py"),
    get("a static file of the system", "/static//etc/passwd"),
    get("a NUL in a static file", "/static/dowise.css%00.png"),
    get("a static file of 5,000 letters", f"/static/{'a' * 5000}"),
    get("the folder of static files", "/static/"),
    get_raw("static files above, as typed", "/static/../app.py"),
    get_raw("static files far above, as typed", "/static/../../../../../../etc/passwd"),
    get_raw("no slash", "api/me"),
    get_raw("a bracket", "[x"),
    get_raw("a star", "*"),
    get_raw("another server's address", "http://evil.example/api/me"),
    get_raw("two slashes", "//evil.example/api/me"),
    get_raw("a character that URLs can't have", "/api/\xff", (400, 404)),
    get_raw("a percent sign alone", "/api/experiments/%"),
    get_raw("80,000 letters", "/" + "a" * 80_000, (400, 404, 414, 431)),
    Hostile("an unknown method", "/api/me", method="FROBNICATE", statuses=(405,)),
    Hostile("a trace", "/api/me", method="TRACE", statuses=(405,)),
    Hostile(
        "options of another site",
        "/api/me",
        method="OPTIONS",
        statuses=(403, 405),
        headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"},
    ),
]


def _multipart(charset, value):
    body = (
        b'--x\r\nContent-Disposition: form-data; name="secret"\r\n\r\n' + value + b"\r\n--x--\r\n"
    )
    kind = f"multipart/form-data; boundary=x; charset={charset}"
    return Hostile(f"a multipart form in {charset}", "/login", body, (415,), kind=kind)


FORMS = [
    *(
        _multipart(charset, b"\\ud800\xff")
        for charset in (
            "undefined",
            "idna",
            "unicode_escape",
            "utf-7",
            "rot13",
            "base64",
            "zlib",
            "x" * 500,
        )
    ),
    Hostile("a form without a boundary", "/login", b"x", (415,), kind="multipart/form-data"),
    Hostile(
        "a file where a text belongs",
        "/login",
        b'--x\r\nContent-Disposition: form-data; name="secret"; filename="/etc/passwd"\r\n\r\n'
        b"a\r\n--x--\r\n",
        (415,),
        kind="multipart/form-data; boundary=x",
    ),
    Hostile("20,000 fields", "/login", b"a=1&" * 20_000, (400, 403, 422), kind=FORM),
    Hostile(
        "a secret of 900,000 letters", "/login", b"secret=" + b"a" * 900_000, (403, 422), kind=FORM
    ),
    Hostile("a secret of half characters", "/login", b"secret=%ed%a0%80", (403, 422), kind=FORM),
]

CORPUS = BODIES + NAMED + PATHS + FORMS
