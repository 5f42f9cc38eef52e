"""A running server: health, a whole round, variables and formulas."""

import httpx2


def test_health_needs_no_token(ward):
    page = httpx2.get(f"{ward.address}/health").json()
    assert page["status"] == "ready" and page["kernels"] == "compiled"


def test_an_outcome_is_recorded_and_audited(ward):
    client = ward.client()
    at = "/api/experiments/ward%207"
    asked = client.post(f"{at}/ask", json={"context": {"C": 1}}).json()
    case = client.post(f"{at}/tell/{asked['id']}", json={"values": {"Z": 1, "Y": 1}}).json()
    assert case["status"] == "done" and case["values"] == {"Z": "1", "Y": "1"}
    assert client.get(f"{at}/status").json()["decisions"]["done"] >= 1
    assert client.get(f"{at}/audit").json()["ok"]


def test_variables_and_formulas_are_returned_unless_unknown(ward):
    client, at = ward.client("read"), "/api/experiments/ward%207"
    page = client.get(f"{at}/variable", params={"variable": "Y"}).json()
    assert page["name"] == "Y" and page["versions"]
    assert client.get(f"{at}/variable", params={"variable": "Q"}).status_code == 404
    assert "P(" in client.get(f"{at}/formula", params={"arm": "do(X1=1)"}).json()["text"]
    assert client.get(f"{at}/formula", params={"arm": "do(Z=1)"}).status_code == 422
