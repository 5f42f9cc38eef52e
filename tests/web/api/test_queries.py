"""Whoever may look may evaluate, and can't take all of the server by it."""

import pytest

AT = "/api/experiments/ward 7"


@pytest.mark.parametrize(
    ("policy", "options", "said"),
    [
        ("ids", {"samples": 10**12}, "samples=1e+12"),
        ("ids", {"samples": 1e300}, "samples=1e+300"),
        ("ts", {"propensity_samples": 10_001}, "propensity_samples=10001"),
        ("bayes-optimal", {"horizon": 14, "max_states": 10**9}, "max_states=1e+09"),
    ],
)
def test_evaluation_refuses_expensive_options(ward, policy, options, said):
    body = {"policy": policy, "options": options}
    answer = ward.client("read").post(f"{AT}/evaluate", json=body)
    assert answer.status_code == 422, answer.text
    assert said in answer.json()["detail"] and "10,000" in answer.json()["detail"]


def test_readers_may_evaluate(ward):
    admin = ward.client("admin")
    for _ in range(3):
        asked = admin.post(f"{AT}/ask", json={"context": {"C": "0"}}).json()
        seen = {"X1": "0", "Z": "0", "X2": "0", "Y": "1"}
        told = {name: label for name, label in seen.items() if name not in asked["arm"]}
        assert admin.post(f"{AT}/tell/{asked['id']}", json={"values": told}).status_code == 200
    body = {"policy": "ids", "options": {"samples": 10_000}}
    answer = ward.client("read").post(f"{AT}/evaluate", json=body)
    assert answer.status_code == 200, answer.text
