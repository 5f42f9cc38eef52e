"""Invalid requests get pydantic's messages, the name of the field, and a stable code."""

import json

import pytest

API = "/api/experiments/ward%207"
JSON = {"Content-Type": "application/json"}
INVALID = {
    "not an object": ("ask", [1], "body"),
    "not an object inside": ("ask", {"context": [1]}, "context"),
    "not a label": ("ask", {"context": {"a-b": [1]}}, "context.a-b"),
    "the label of an arm": ("ask", {"allowed": [{"X": [1]}]}, "allowed[0]"),
    "not an arm": ("ask", {"allowed": [3]}, "allowed[0]"),
    "not a list": ("ask", {"forbid": "do()"}, "forbid"),
    "a misspelt field": ("ask", {"contxt": {}}, "contxt"),
    "a missing field": ("ask-many", {}, "contexts"),
    "an empty list": ("ask-many", {"contexts": []}, "contexts"),
    "too many arms": ("ask-many", {"contexts": [None] * 1000, "allowed": ["do()"] * 101}, "body"),
    "not a boolean": ("tell/1", {"unrelated": "perhaps"}, "unrelated"),
    "not a number": ("tell/one", {}, "id"),
    "too large a number": ("evaluate", {"policy": "ts", "level": 2}, "level"),
    "too long a text": ("revise", {"policy": "x" * 300}, "policy"),
    "a lone surrogate": ("ask", {"\ud800": 1}, "body"),
}


@pytest.fixture(scope="module")
def admin(ward):
    return ward.client("admin")


@pytest.mark.parametrize(("verb", "body", "field"), INVALID.values(), ids=INVALID)
def test_an_invalid_body_names_the_field(admin, verb, body, field):
    response = admin.post(f"{API}/{verb}", content=json.dumps(body), headers=JSON)
    problem = response.json()
    assert response.status_code == 422 and problem["code"] == "invalid-request"
    assert problem["detail"].startswith(f"{field}: ") and problem["errors"][0]["code"]


def test_too_many_arms_name_their_number(admin):
    body = {"contexts": [None] * 1000, "allowed": ["do()"] * 101}
    detail = admin.post(f"{API}/ask-many", json=body).json()["detail"]
    assert detail == "body: 101 arms are too many for 1,000 contexts"


def test_a_body_that_is_not_json_is_refused(admin):
    response = admin.post(f"{API}/ask", content=b'{"context":', headers=JSON)
    assert response.json()["errors"][0]["code"] == "json_invalid"
    plain = {"Content-Type": "text/plain"}
    response = admin.post(f"{API}/ask", content=b"context=1", headers=plain)
    assert "Content-Type: application/json" in response.json()["detail"]


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("status?tolerance=much", "tolerance: input should be a valid number"),
        ("status?tolerance=-1", "tolerance: input should be greater than or equal to 0"),
        ("status?tolerance=nan", "tolerance: input should be"),
        ("variable", "variable: field required"),
        ("decisions?status=over", "status: input should be 'pending'"),
    ],
)
def test_an_invalid_query_names_the_parameter(admin, query, detail):
    problem = admin.get(f"{API}/{query}").json()
    assert problem["code"] == "invalid-request" and problem["detail"].startswith(detail)
