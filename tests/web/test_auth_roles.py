"""Every endpoint of the API with every role, and without a token."""

import httpx2
import pytest

from dowise_web.tokens import ROLES

pytestmark = pytest.mark.slow  # a server, and every address of it

API = "/api/experiments/ward%207"
PROBLEM = 'graph = "X -> Y"\nreward = "Y"'

# Bodies are valid; the requests may be refused for other reasons (4xx).
REQUIRED_ROLES = {
    ("GET", "/api/me"): "read",
    ("GET", "/api/experiments"): "read",
    ("GET", API): "read",
    ("GET", f"{API}/status"): "read",
    ("GET", f"{API}/decisions"): "read",
    ("GET", f"{API}/decisions/1"): "read",
    ("GET", f"{API}/explain/1"): "read",
    ("GET", f"{API}/variable"): "read",
    ("GET", f"{API}/formula"): "read",
    ("GET", f"{API}/belief"): "read",
    ("GET", f"{API}/counted"): "read",
    ("GET", f"{API}/history"): "read",
    ("GET", f"{API}/events"): "read",
    ("GET", f"{API}/audit"): "read",
    ("GET", f"{API}/export"): "read",
    ("GET", f"{API}/stream"): "read",
    ("POST", f"{API}/evaluate"): "read",
    ("POST", f"{API}/tell/999"): "tell",
    ("POST", f"{API}/amend/999"): "tell",
    ("POST", f"{API}/withdraw/999"): "tell",
    ("POST", f"{API}/ask"): "ask",
    ("POST", f"{API}/ask-many"): "ask",
    ("POST", "/api/experiments"): "admin",
    ("POST", f"{API}/revise"): "admin",
    ("POST", f"{API}/import"): "admin",
    ("POST", f"{API}/erase/999"): "admin",
    ("POST", "/api/preview"): "admin",
    ("POST", "/api/rehearse"): "admin",
    ("GET", "/api/tokens"): "admin",
    ("POST", "/api/tokens"): "admin",
    ("DELETE", "/api/tokens/999"): "admin",
}
BODIES = {
    f"{API}/evaluate": {"policy": "do(X1=1)"},
    f"{API}/tell/999": {"values": {"Y": 1}},
    f"{API}/amend/999": {"values": {"Y": 1}, "reason": "a typing error"},
    f"{API}/withdraw/999": {"reason": "moved away"},
    f"{API}/ask": {"context": {"C": 1}},
    f"{API}/ask-many": {"contexts": [{"C": 1}]},
    "/api/experiments": {"name": "ward 7", "problem": PROBLEM, "policy": "ucb"},
    f"{API}/revise": {"reason": "none"},
    f"{API}/import": {"records": []},
    f"{API}/erase/999": {"reason": "asked to"},
    "/api/preview": {"problem": PROBLEM},
    "/api/rehearse": {"problem": PROBLEM, "horizon": 2, "worlds": 1},
    "/api/tokens": {"role": "read", "name": "a new one"},
}
OPEN = {"/health"}
CASES = [*REQUIRED_ROLES]


@pytest.fixture(scope="module")
def clients(ward):
    first = ward.client("ask").post(f"{API}/ask", json={"context": {"C": 1}})
    assert first.json()["id"] == 1
    return {role: ward.client(role) for role in ROLES}


def send(client, method, path, **options):
    """Send a request; of a stream only the head is read."""
    body = BODIES.get(path) if method == "POST" else None
    with client.stream(method, path, json=body, **options) as answer:
        if not answer.headers["content-type"].startswith("text/event-stream"):
            answer.read()
        return answer


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("method", "path"), CASES)
def test_endpoints_require_a_role(clients, method, path, role):
    answer = send(clients[role], method, path, timeout=120)  # rehearsals take long
    needed = REQUIRED_ROLES[method, path]
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
        existing = send(client, method, path)
        unknown = client.request(method, path.replace("ward%207", "ward%208"))
        garbage = client.request(
            method, path, content=b"{", headers={"Content-Type": "application/json"}
        )
    for answer in (existing, unknown, garbage):
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json() == existing.json()  # whether it exists and is valid or not


@pytest.mark.parametrize("path", ["/", "/new", "/experiments/ward%207/now", "/whatever", "/logout"])
def test_pages_redirect_to_the_login_page(ward, path):
    for method in ("GET", "POST"):
        answer = httpx2.request(method, f"{ward.address}{path}")
        assert answer.status_code == 303
        assert answer.headers["location"].partition("?next=")[0] == "/login"


def test_the_table_of_roles_is_complete(ward):
    description = httpx2.get(f"{ward.address}/api/openapi.json").json()
    described = {
        (method.upper(), path.replace("{name}", "ward%207").replace("{id}", "N"))
        for path, methods in description["paths"].items()
        for method in methods
        if path not in OPEN
    }
    tested = {
        (method, path.replace("/999", "/N").removesuffix("/1") + "/N" * path.endswith("/1"))
        for method, path in REQUIRED_ROLES
    }
    assert described == tested
