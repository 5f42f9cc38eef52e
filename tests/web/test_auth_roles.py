"""Who may do what: every endpoint of the API with every role, and without any."""

import httpx2
import pytest

from dowise_web.tokens import ROLES

pytestmark = pytest.mark.slow  # a server, and every address of it

AT = "/api/experiments/ward%207"
PROBLEM = 'graph = "X -> Y"\nreward = "Y"'

# What each needs. Bodies are such that they are read; what they ask for may be refused (4xx).
NEEDS = {
    ("GET", "/api/me"): "read",
    ("GET", "/api/experiments"): "read",
    ("GET", AT): "read",
    ("GET", f"{AT}/status"): "read",
    ("GET", f"{AT}/decisions"): "read",
    ("GET", f"{AT}/decisions/1"): "read",
    ("GET", f"{AT}/explain/1"): "read",
    ("GET", f"{AT}/variable"): "read",
    ("GET", f"{AT}/formula"): "read",
    ("GET", f"{AT}/belief"): "read",
    ("GET", f"{AT}/counted"): "read",
    ("GET", f"{AT}/history"): "read",
    ("GET", f"{AT}/events"): "read",
    ("GET", f"{AT}/audit"): "read",
    ("GET", f"{AT}/export"): "read",
    ("GET", f"{AT}/stream"): "read",
    ("POST", f"{AT}/evaluate"): "read",
    ("POST", f"{AT}/tell/999"): "tell",
    ("POST", f"{AT}/amend/999"): "tell",
    ("POST", f"{AT}/withdraw/999"): "tell",
    ("POST", f"{AT}/ask"): "ask",
    ("POST", f"{AT}/ask-many"): "ask",
    ("POST", "/api/experiments"): "admin",
    ("POST", f"{AT}/revise"): "admin",
    ("POST", f"{AT}/import"): "admin",
    ("POST", f"{AT}/erase/999"): "admin",
    ("POST", "/api/preview"): "admin",
    ("POST", "/api/rehearse"): "admin",
    ("GET", "/api/tokens"): "admin",
    ("POST", "/api/tokens"): "admin",
    ("DELETE", "/api/tokens/999"): "admin",
}
BODIES = {
    f"{AT}/evaluate": {"policy": "do(X1=1)"},
    f"{AT}/tell/999": {"values": {"Y": 1}},
    f"{AT}/amend/999": {"values": {"Y": 1}, "reason": "a typing error"},
    f"{AT}/withdraw/999": {"reason": "moved away"},
    f"{AT}/ask": {"context": {"C": 1}},
    f"{AT}/ask-many": {"contexts": [{"C": 1}]},
    "/api/experiments": {"name": "ward 7", "problem": PROBLEM, "policy": "ucb"},
    f"{AT}/revise": {"reason": "none"},
    f"{AT}/import": {"records": []},
    f"{AT}/erase/999": {"reason": "asked to"},
    "/api/preview": {"problem": PROBLEM},
    "/api/rehearse": {"problem": PROBLEM, "horizon": 2, "worlds": 1},
    "/api/tokens": {"role": "read", "name": "a new one"},
}
OPEN = {"/health"}
CASES = [*NEEDS]


@pytest.fixture(scope="module")
def clients(ward):
    first = ward.client("ask").post(f"{AT}/ask", json={"context": {"C": 1}})
    assert first.json()["id"] == 1
    return {role: ward.client(role) for role in ROLES}


def sent(client, method, path, **more):
    """The answer; of a stream only its head."""
    body = BODIES.get(path) if method == "POST" else None
    with client.stream(method, path, json=body, **more) as answer:
        if not answer.headers["content-type"].startswith("text/event-stream"):
            answer.read()
        return answer


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("method", "path"), CASES)
def test_endpoints_require_a_role(clients, method, path, role):
    answer = sent(clients[role], method, path, timeout=120)  # rehearsals take long
    needed = NEEDS[method, path]
    if ROLES.index(role) >= ROLES.index(needed):
        assert answer.status_code not in (401, 403) and answer.status_code < 500, answer.text
    else:
        assert answer.status_code == 403
        assert answer.headers["content-type"] == "application/problem+json"
        assert repr(needed) in answer.json()["detail"]


@pytest.mark.parametrize(("method", "path"), CASES)
def test_requests_without_a_token_learn_nothing(ward, method, path):
    client = httpx2.Client(base_url=ward.address)
    with client:
        known = sent(client, method, path)
        unknown = client.request(method, path.replace("ward%207", "ward%208"))
        garbage = client.request(
            method, path, content=b"{", headers={"Content-Type": "application/json"}
        )
    for answer in (known, unknown, garbage):
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json() == known.json()  # whether it is there, and whether it can be read


@pytest.mark.parametrize("path", ["/", "/new", "/experiments/ward%207/now", "/whatever", "/logout"])
def test_pages_redirect_to_the_login_page(ward, path):
    for method in ("GET", "POST"):
        answer = httpx2.request(method, f"{ward.address}{path}")
        assert answer.status_code == 303
        assert answer.headers["location"].partition("?next=")[0] == "/login"


def test_the_table_of_roles_is_complete(ward):
    description = httpx2.get(f"{ward.address}/api/openapi.json").json()
    there = {
        (method.upper(), path.replace("{name}", "ward%207").replace("{id}", "N"))
        for path, methods in description["paths"].items()
        for method in methods
        if path not in OPEN
    }
    tested = {
        (method, path.replace("/999", "/N").removesuffix("/1") + "/N" * path.endswith("/1"))
        for method, path in NEEDS
    }
    assert there == tested
