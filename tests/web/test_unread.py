"""What is said of requests that can't be read: the field, and what would be right."""

import json

import pytest

AT = "/api/experiments/ward%207"
LABEL = "must be a text in quotes or a whole number or a number or true or false"
OBJECT = 'must be an object, as in {"name": "value"}'
WRONG = {
    "no object": ("ask", [1], f"the body {OBJECT}"),
    "no object inside": ("ask", {"context": [1]}, f"context {OBJECT}"),
    "no label": ("ask", {"context": {"a-b": [1]}}, f"context.a-b {LABEL}"),
    "a label of an arm": ("ask", {"allowed": [{"X": [1]}]}, f"allowed[0].X {LABEL}"),
    "no arm": ("ask", {"allowed": [3]}, "allowed[0] must be a text in quotes or an object, as in"),
    "no list": ("ask", {"forbid": "do()"}, "forbid must be a list, as in [1, 2]"),
    "a misspelt field": ("ask", {"contxt": {}}, "contxt is no field here: correct its name"),
    "a field that is lacking": ("ask-many", {}, "contexts is lacking: give it"),
    "no entries": ("ask-many", {"contexts": []}, "contexts has too few entries: it needs 1"),
    "too much work": (
        "ask-many", {"contexts": [None] * 1000, "allowed": ["do()"] * 101},
        "101 arms are too many for so many contexts: ask for fewer",
    ),
    "no truth": ("tell/1", {"unrelated": "perhaps"}, "unrelated must be true or false"),
    "no number": ("tell/one", {}, "id must be a whole number"),
    "a large number": ("evaluate", {"policy": "ts", "level": 2}, "level must be below 1"),
    "a long text": ("revise", {"policy": "x" * 300}, "policy is too long: it may have 200 char"),
    "half a character": ("ask", {"\ud800": 1}, "the body can't be read"),
}  # fmt: skip


@pytest.fixture(scope="module")
def admin(ward):
    return ward.client("admin")


@pytest.mark.parametrize(("verb", "body", "said"), WRONG.values(), ids=WRONG)
def test_a_bad_body_gets_one_plain_sentence(admin, verb, body, said):
    headers = {"Content-Type": "application/json"}
    answer = admin.post(f"{AT}/{verb}", content=json.dumps(body), headers=headers)
    page = answer.json()
    assert answer.status_code == 422 and page["detail"].startswith(said)
    assert not any(word in answer.text for word in ("Input should", "Field required", "valid "))


def test_a_body_that_is_no_json(admin):
    headers = {"Content-Type": "application/json"}
    answer = admin.post(f"{AT}/ask", content=b'{"context":', headers=headers)
    assert answer.json()["detail"] == "the body is no JSON, by character 11: expecting value"
    headers = {"Content-Type": "text/plain"}
    answer = admin.post(f"{AT}/ask", content=b"context=1", headers=headers)
    assert answer.json()["detail"].startswith("send a JSON object, with the header Content-Type")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("status?tolerance=much", "tolerance must be a number"),
        ("status?tolerance=-1", "tolerance must be at least 0"),
        ("status?tolerance=nan", "tolerance must be a finite number"),
        ("variable", "variable is lacking: give it"),
        ("decisions?status=over", "status must be 'pending', 'done', 'withdrawn' or 'erased'"),
    ],
)
def test_what_an_address_asks_for_is_told_likewise(admin, query, said):
    assert admin.get(f"{AT}/{query}").json()["detail"] == said
