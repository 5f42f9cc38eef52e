"""Hostile inputs, each with what it must be answered.

An entry is a request by an admin to a server with the experiment `ward 7` (task2). `is_raw`: its
path is sent as it stands, over a line of its own. `answers` are the statuses that will do; `says`
stands in the answer. Whatever is sent, nothing but a problem or a page comes back, nothing is
written, nothing is imported or opened that the request names, and the server goes on.
"""

import json
from dataclasses import dataclass, field

API = "/api/experiments/ward%207"
GRAPH = 'graph = "X -> Y"\nreward = "Y"\n'
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MARK = "hostile_marker"
"""In every file and module that a request names: nobody may ask the system for it."""


@dataclass(frozen=True)
class Hostile:
    """A request."""

    name: str
    path: str
    body: bytes | None = None
    answers: tuple[int, ...] = (422,)
    method: str = "POST"
    kind: str = JSON
    says: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    is_raw: bool = False
    is_slow: bool = False
    """Whether it takes the sandbox seconds to find out."""


def asks(name, body, answers=(422,), **more):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Hostile(name, f"{API}/ask", content, answers, **more)


def begins(name, problem=GRAPH, answers=(422,), says="", called="new", is_slow=False, **more):
    page = {"name": called, "problem": problem, "policy": "ucb"} | more
    body = json.dumps(page).encode()
    return Hostile(name, "/api/experiments", body, answers, says=says, is_slow=is_slow)


def looks(name, path, answers=(404,), **more):
    return Hostile(name, path, None, answers, "GET", **more)


def typed(name, target, answers=(400, 404), **more):
    return Hostile(name, target, None, answers, "GET", is_raw=True, **more)


BODIES = [
    asks("nothing", b""),
    asks("not JSON", b"{"),
    asks("a number", b"7"),
    asks("a list", b"[]"),
    asks("null", b"null"),
    asks("a text", b'"ask"'),
    asks("lists in lists, 100,000 deep", b"[" * 100_000, (400, 422)),
    asks("objects in objects, 50,000 deep", b'{"a":' * 50_000, (400, 422)),
    asks("a context 900 deep", b'{"context":' + b'{"C":' * 900 + b"1" + b"}" * 901, (400, 422)),
    asks("NaN", b'{"context": {"C": NaN}}'),
    asks("Infinity", b'{"context": {"C": Infinity}}'),
    asks("a number too large for a float", b'{"context": {"C": 1e999}}'),
    asks("a whole number of 4,000 digits", b'{"context": {"C": ' + b"9" * 4000 + b"}}"),
    asks("one of 100,000 digits", b'{"context": {"C": ' + b"9" * 100_000 + b"}}", (400,)),
    asks("half a character as a value", b'{"context": {"C": "\\ud800"}}'),
    asks("half a character as a name", b'{"context": {"\\udfff": "1"}}'),
    asks("half a character as a name of ours", b'{"\\ud800": "1"}'),
    asks("half a character where the kind is wrong too", b'{"context": {"\\ud800": [1]}}'),
    asks("half a character in an arm", b'{"context": {"C": 1}, "allowed": ["do(\\ud800=1)"]}'),
    asks("a NUL", b'{"context": {"C": "\\u0000"}}'),
    asks("a NUL in the name", b'{"context": {"C\\u0000": "1"}}'),
    asks("bytes that are no UTF-8", b'{"context": {"C": "\xff\xfe"}}', (400, 422)),
    asks("UTF-8 made longer", b'{"context": {"C": "\xc0\xaf"}}', (400, 422)),
    asks("the same name twice, the last one wrong", b'{"context": {"C": 1}, "context": {"C": 9}}'),
    asks("a context that is a list", {"context": ["C", 1]}),
    asks("a context that is a text", {"context": "C=1"}),
    asks("a value that is a list", {"context": {"C": [1]}}),
    asks("a value that is an object", {"context": {"C": {"$ne": None}}}),
    asks("a value that is an injection", {"context": {"C": "1' OR '1'='1"}}),
    asks("a value that is a template", {"context": {"C": "{{7*7}}"}}),
    asks("80,000 arms", {"context": {"C": 1}, "allowed": ["do(X1=0)"] * 80_000}, (200, 422)),
    asks("an arm of a megabyte", {"context": {"C": 1}, "allowed": ["do(" + "X" * 900_000]}),
    asks("an arm of 100,000 brackets", {"context": {"C": 1}, "forbid": ["do(" * 100_000]}),
    asks("a name of a megabyte", {"context": {"C" * 900_000: 1}}),
    asks("100,000 names", {"context": {f"C{i}": 1 for i in range(60_000)}}),
    asks("a field that is not ours", {"context": {"C": 1}, "__proto__": {"role": "admin"}}),
    asks("a field that Python has", {"context": {"C": 1}, "__class__": "x"}),
    asks("an id that is too long", {"context": {"C": 1}}, headers={"Idempotency-Key": "x" * 5000}),
    asks("more than may be sent", b" " * 1_100_000, (413,)),
    Hostile("10,000 contexts", f"{API}/ask-many", json.dumps({"contexts": [{}] * 10_000}).encode()),
    Hostile("1,000 contexts with 1,000 arms each", f"{API}/ask-many",
            json.dumps({"contexts": [{"C": 1}] * 1000, "allowed": ["do(X1=0)"] * 1000}).encode()),
    Hostile("no contexts", f"{API}/ask-many", b'{"contexts": []}'),
    Hostile("XML", f"{API}/ask", b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
            kind="application/xml", answers=(415, 422)),
    Hostile("a form where JSON belongs", f"{API}/ask", b"context=1", kind=FORM, answers=(415, 422)),
    Hostile("JSON that a page elsewhere could send", f"{API}/ask", b'{"context": {"C": 1}}',
            kind="text/plain", answers=(415, 422)),
    Hostile("gzip that nobody unpacks", f"{API}/ask", b"\x1f\x8b\x08" + b"\0" * 100,
            headers={"Content-Encoding": "gzip"}, answers=(400, 422)),
    Hostile("a tell that is wrong in kind", f"{API}/tell/1", b'{"values": 7}'),
    Hostile("a tell of NaN", f"{API}/tell/999", b'{"values": {"Y": NaN}}', (404, 422)),
    Hostile("a reason of a megabyte", f"{API}/withdraw/1",
            json.dumps({"reason": "x" * 900_000}).encode()),
    Hostile("half a character as a reason", f"{API}/withdraw/1", b'{"reason": "\\ud800"}'),
    Hostile("records that are no rows", f"{API}/import", b'{"records": [1, 2]}'),
    Hostile("records of NaN and lists", f"{API}/import", b'{"records": [{"Y": NaN, "X1": [1]}]}'),
    Hostile("half a character in records", f"{API}/import",
            b'{"records": [{"\\ud800": "\\udc00"}]}'),
    Hostile("a source that is a path is only a text, and of rows that are none",
            f"{API}/import", json.dumps({"records": [{"a": 1}], "source": f"/{MARK}"}).encode()),
    Hostile("a million empty rows", f"{API}/import",
            b'{"records": [' + b"{}," * 1_000_000 + b"{}]}", (200, 422)),
]  # fmt: skip

NAMED = [
    begins("a graph in a file", f'graph_file = "/{MARK}.dot"\nreward = "Y"', says="graph_file"),
    begins("a graph in a file above", f'graph_file = "../../{MARK}.dot"\nreward = "Y"'),
    begins("a graph at a URL", f'graph_file = "http://127.0.0.1/{MARK}.dot"\nreward = "Y"'),
    begins("a graph from a device", 'graph_file = "/dev/zero"\nreward = "Y"'),
    begins("a prior in a file", f'{GRAPH}prior = "/{MARK}.toml"', says="prior"),
    begins("a prior in a file, by an option", options={"prior": f"/{MARK}.toml"}, says="prior"),
    begins("a prior in a file, in a list", options={"prior": [f"/{MARK}.toml"]}),
    begins("an option that is a path", options={"path": f"/{MARK}"}),
    begins("a policy to import", policy=f"{MARK}:Class"),
    begins("a policy of the system", policy="os:system"),
    begins("a policy in a file", policy=f"/{MARK}.py:Class"),
    begins("a policy with dots", policy=f"..{MARK}:Class"),
    begins("a problem that is a built-in's name", "task2"),
    begins("a problem that is a path", f"/{MARK}.toml"),
    begins("TOML that nests", "a = " + "[" * 50_000),
    begins("TOML with a number of 100,000 digits", "a = " + "9" * 100_000),
    begins("a problem that is too long", "#" * 300_000),
    begins("a graph of 20,000 variables",
           'graph = "' + "; ".join(f"V{i} -> Y" for i in range(20_000)) + '"\nreward = "Y"',
           is_slow=True),
    begins("tables of 10^12 rows", 'graph = "' + "; ".join(f"V{i} -> Y" for i in range(40))
           + '"\nreward = "Y"', is_slow=True),
    begins("a seed of 100 digits", seed="9" * 100),
    begins("a name that would end a header", called='x"\r\nSet-Cookie: a=b'),
    begins("a name of half a character", called="\ud800"),
    Hostile("another policy to import", f"{API}/revise",
            json.dumps({"policy": f"{MARK}:Class", "reason": "x"}).encode()),
    Hostile("another problem with a file", f"{API}/revise",
            json.dumps({"problem": f'graph_file = "/{MARK}"\nreward = "Y"',
                        "reason": "x"}).encode()),
    Hostile("a policy to evaluate that would be imported", f"{API}/evaluate",
            json.dumps({"policy": f"{MARK}:Class"}).encode()),
    Hostile("an arm to evaluate that is a module", f"{API}/evaluate",
            json.dumps({"policy": f" do({MARK}:Class)"}).encode()),
    Hostile("options to evaluate with a file", f"{API}/evaluate",
            json.dumps({"policy": "ids", "options": {"prior": f"/{MARK}"}}).encode()),
    Hostile("options 300 deep", f"{API}/evaluate",
            b'{"policy": "ids", "options": {"samples": ' + b'{"a":' * 300 + b"1" + b"}" * 302),
    Hostile("options of infinity", f"{API}/evaluate",
            b'{"policy": "ids", "options": {"samples": Infinity}}'),
    Hostile("options of half a character", f"{API}/evaluate",
            b'{"policy": "ids", "options": {"\\ud800": "\\ud800"}}'),
    Hostile("a billion samples", f"{API}/evaluate",
            b'{"policy": "ids", "options": {"samples": 1000000000000}}'),
    Hostile("a preview with a file", "/api/preview",
            json.dumps({"problem": f'graph_file = "/{MARK}"\nreward = "Y"'}).encode()),
    Hostile("a rehearsal without end", "/api/rehearse",
            json.dumps({"problem": GRAPH, "horizon": 10**12, "worlds": 10**9}).encode(),
            is_slow=True),
    Hostile("a rehearsal of a module", "/api/rehearse",
            json.dumps({"problem": GRAPH, "horizon": 2, "policy": f"{MARK}:Class"}).encode()),
    Hostile("a rehearsal with an endless tolerance", "/api/rehearse",
            b'{"problem": "' + GRAPH.encode("unicode_escape").replace(b'"', b'\\"')
            + b'", "horizon": 2, "tolerance": Infinity}'),
    Hostile("a token of no role", "/api/tokens", b'{"role": "root", "name": "x"}'),
    Hostile("a token of half a character", "/api/tokens", b'{"role": "read", "name": "\\ud800"}'),
    Hostile("a token whose name ends a line", "/api/tokens", b'{"role": "read", "name": "a\\nb"}'),
    Hostile("a token for ever", "/api/tokens", b'{"role": "read", "name": "x", "days": 1e999}'),
]  # fmt: skip

PATHS = [
    looks("an experiment above", "/api/experiments/..%2f..%2fetc%2fpasswd"),
    looks("an experiment above, encoded twice", "/api/experiments/%252e%252e%252fetc%252fpasswd"),
    looks("a NUL in a name", "/api/experiments/ward%00"),
    looks("a name that is no UTF-8", "/api/experiments/%ff%fe"),
    looks("a name of 20,000 letters", f"/api/experiments/{'a' * 20_000}"),
    looks("a line break in a name", "/api/experiments/x%0d%0aSet-Cookie:%20a=b"),
    looks("a name that is an injection", "/api/experiments/x'%20OR%20'1'='1"),
    looks("an id below one", f"{API}/decisions/0", (422,)),
    looks("an id of 1,000 digits", f"{API}/decisions/{'9' * 1000}", (422,)),
    looks("an id that is a word", f"{API}/decisions/one", (422,)),
    looks("an id in another script", f"{API}/decisions/%D9%A1", (200, 404, 422)),
    looks("an id with a fraction", f"{API}/explain/1.5", (422,)),
    looks("a limit below zero", f"{API}/events?limit=-1", (422,)),
    looks("a limit of 10^30", f"{API}/events?limit={10**30}", (422,)),
    looks("a pattern without end", f"{API}/events?kind=" + "a|" * 3000, (422,)),
    looks("a context that nests", f"{API}/status?context=" + "[" * 5000, (422,)),
    looks("a context of NaN", f'{API}/status?context={{"C":NaN}}', (422,)),
    looks("a context of half a character", f'{API}/status?context={{"C":"\\ud800"}}', (422,)),
    looks("a tolerance of NaN", f"{API}/status?tolerance=nan", (422,)),
    looks("rounds without end", f"{API}/status?rounds=1000000000", (422,)),
    looks("points without end", f"{API}/history?points=1000000", (422,)),
    looks("a head that is none", f"{API}/audit?head=%00%ff", (200, 422)),
    looks("a variable that is none", f"{API}/variable?variable=%3Cscript%3E", (404, 422)),
    looks("a formula of brackets", f"{API}/formula?arm=" + "do(" * 3000, (404, 422)),
    looks("static files above", "/static/%2e%2e/app.py"),
    looks("static files above, by slashes", "/static/..%2f..%2fapp.py"),
    looks("static files above, encoded twice", "/static/%252e%252e/app.py"),
    looks("static files by a backslash", "/static/..%5capp.py"),
    looks("a static file of the system", "/static//etc/passwd"),
    looks("a NUL in a static file", "/static/dowise.css%00.png"),
    looks("a static file of 5,000 letters", f"/static/{'a' * 5000}"),
    looks("the folder of static files", "/static/"),
    typed("static files above, as typed", "/static/../app.py"),
    typed("static files far above, as typed", "/static/../../../../../../etc/passwd"),
    typed("no slash", "api/me"),
    typed("a bracket", "[x"),
    typed("a star", "*"),
    typed("another server's address", "http://evil.example/api/me"),
    typed("two slashes", "//evil.example/api/me"),
    typed("a letter that no address has", "/api/\xff", (400, 404)),
    typed("a percent sign alone", "/api/experiments/%"),
    typed("80,000 letters", "/" + "a" * 80_000, (400, 404, 414, 431)),
    Hostile("a method that is none", "/api/me", method="FROBNICATE", answers=(405,)),
    Hostile("a trace", "/api/me", method="TRACE", answers=(405,)),
    Hostile("options of another site", "/api/me", method="OPTIONS", answers=(403, 405),
            headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}),
]  # fmt: skip


def _part(charset, value):
    """A form in parts."""
    body = (
        b'--x\r\nContent-Disposition: form-data; name="secret"\r\n\r\n' + value + b"\r\n--x--\r\n"
    )
    kind = f"multipart/form-data; boundary=x; charset={charset}"
    return Hostile(f"a form in {charset}", "/login", body, (415,), kind=kind)


FORMS = [
    *(_part(charset, b"\\ud800\xff") for charset in
      ("undefined", "idna", "unicode_escape", "utf-7", "rot13", "base64", "zlib", "x" * 500)),
    Hostile("a form without a boundary", "/login", b"x", (415,), kind="multipart/form-data"),
    Hostile("a file where a text belongs", "/login",
            b'--x\r\nContent-Disposition: form-data; name="secret"; filename="/etc/passwd"\r\n\r\n'
            b"a\r\n--x--\r\n", (415,), kind="multipart/form-data; boundary=x"),
    Hostile("20,000 fields", "/login", b"a=1&" * 20_000, (400, 403, 422), kind=FORM),
    Hostile("a secret of 900,000 letters", "/login", b"secret=" + b"a" * 900_000, (403, 422),
            kind=FORM),
    Hostile("a secret of half characters", "/login", b"secret=%ed%a0%80", (403, 422), kind=FORM),
]  # fmt: skip

CORPUS = BODIES + NAMED + PATHS + FORMS
