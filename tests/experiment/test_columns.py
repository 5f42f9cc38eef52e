"""The columns of an import: nothing is lost, other problems read them, damage is found."""

import json
from base64 import b64decode, b64encode
from zlib import compress, decompress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import cases, examples

from dowise import Belief, CausalGraph, DowiseError, Problem
from dowise.experiment.records import MAX_ROWS, digest, pack, unpack
from dowise.problem.record import RecordBatch

GRAPH = CausalGraph.parse("Age -> Dose -> Recovery; Diet -> Recovery")
DOMAINS = {"Dose": ["low", "mid", "high"], "Recovery": ["bad", "good"]}
WARD = Problem(GRAPH, "Recovery", "Age", domains=DOMAINS, arms="all")
TABLE = {
    "arm": ["do()", "do(Dose=low)", "do(Dose=high, Diet=1)", "do(Diet=0)", "do()"],
    "Age": [0, 1, None, 1, 0],
    "Dose": ["mid", None, "high", "low", None],
    "Recovery": ["good", "bad", "good", None, "bad"],
}


def through_json(page):
    return json.loads(json.dumps(page))


def labels(batch):
    """What each record says, by label: (values, what was set)."""
    domains = list(batch.problem.domains.items())
    return [
        (
            {name: domain[batch.codes[v, i]] for v, (name, domain) in enumerate(domains)
             if batch.codes[v, i] >= 0},
            {name for v, (name, _) in enumerate(domains) if batch.was_set[v, i]},
        )
        for i in range(len(batch))
    ]  # fmt: skip


def random_batch(problem, rng, size):
    codes = np.array([rng.integers(-1, len(d), size) for d in problem.domains.values()])
    settable = np.array([name in problem.manipulable for name in problem.graph.variables])
    was_set = (rng.random(codes.shape) < 0.3) & settable[:, None] & (codes >= 0)
    return RecordBatch(problem, codes.reshape(len(problem.graph), size), was_set)


def assert_same(one, other):
    np.testing.assert_array_equal(one.codes, other.codes)
    np.testing.assert_array_equal(one.was_set, other.was_set)


@given(cases(), st.integers(0, 2**32), st.integers(0, 40), st.integers(2, 400))
@examples(60)
def test_what_is_packed_comes_back(case, seed, size, values):
    graph, reward, context, non_manipulable = case
    domains = {graph.variables[0]: [f"label {i}" for i in range(values)]}
    problem = Problem(graph, reward, context, non_manipulable, domains, arms=["do()"])
    batch = random_batch(problem, np.random.default_rng(seed), size)
    found = unpack(through_json(pack(batch)), problem)
    assert found.left_out == {} and found.batch.problem is problem
    assert_same(found.batch, batch)


@pytest.mark.parametrize("values", [254, 255, 256, 257, 65_536])
def test_wide_domains(values):
    problem = Problem(
        CausalGraph.parse("X -> Y"), "Y", domains={"X": range(values)}, arms=["do(X=0)"]
    )
    codes = np.array([[*range(values), -1], [0] * (values + 1)])
    for set_too in (False, True)[: 1 if values > 1000 else 2]:
        was_set = np.array([(codes[0] >= 0) & set_too, codes[1] < 0])
        batch = RecordBatch(problem, codes, was_set)
        assert_same(unpack(pack(batch), problem).batch, batch)


def test_many_variables_set_at_once_do_not_overflow():
    names = [f"X{i:02}" for i in range(70)]
    problem = Problem(CausalGraph([(name, "Y") for name in names]), "Y", arms=["do()"])
    batch = random_batch(problem, np.random.default_rng(0), 500)
    assert_same(unpack(pack(batch), problem).batch, batch)


def test_a_page_is_the_same_however_domains_are_ordered_and_the_digest_tells_tables_apart():
    batch = WARD.records(TABLE)
    turned = {name: list(reversed(domain)) for name, domain in WARD.domains.items()}
    graph = CausalGraph.parse("New; Age -> Dose -> Recovery; Diet -> Recovery")
    other = Problem(graph, "Recovery", domains=turned)
    assert pack(other.records(TABLE)) == pack(batch)
    page = pack(batch)
    swapped = {name: [*column[:3], column[4], column[3]] for name, column in TABLE.items()}
    pages = [
        page, pack(WARD.records(swapped)), pack(WARD.records(TABLE | {"Age": [0, 1, None, 1, 1]})),
        pack(WARD.records({name: column[:4] for name, column in TABLE.items()})),
        pack(WARD.records({**TABLE, "arm": ["do()", *["do(Dose=low)"] * 4], "Dose": [None] * 5})),
        pack(WARD.records({})),
    ]  # fmt: skip
    assert len({digest(one) for one in pages}) == len(pages)
    again = through_json(page)
    for column in (again["arms"], *again["columns"].values()):  # by another compressor
        raw = compress(decompress(b64decode(column["codes"])), 9)
        column["codes"] = b64encode(raw).decode()
    assert again != page and digest(again) == digest(page)
    assert_same(unpack(again, WARD).batch, batch)


def test_another_problem_reads_by_label():
    page = pack(WARD.records(TABLE))
    revised = Problem(
        CausalGraph.parse("Dose -> Recovery; Diet -> Recovery; Sleep -> Recovery"),
        "Recovery", non_manipulable=("Diet", "Dose"),
        domains={"Dose": ["none", "high", "mid", "low"], "Recovery": ["good", "bad"]},
    )  # fmt: skip
    found = unpack(page, revised)
    before = labels(WARD.records(TABLE))
    expected = [
        ({k: x for k, x in seen.items() if k != "Age"}, was_set) for seen, was_set in before
    ]
    assert labels(found.batch) == expected and found.left_out == {}
    belief = Belief(revised)
    belief.posterior.learn_many(found.batch)
    assert belief.times_learned()["Dose"] == 2  # where it was seen, not set


def test_truth_values_are_read_as_records_are():
    page = pack(WARD.records({"Age": [0, 1, None]}))
    revised = Problem(GRAPH, "Recovery", "Age", domains=DOMAINS | {"Age": ["True", "False"]})
    assert unpack(page, revised).batch.codes[0].tolist() == [1, 0, -1]


def test_a_context_that_an_arm_had_set_still_counts():
    page = pack(WARD.records(TABLE))
    revised = Problem(GRAPH, "Recovery", ("Age", "Diet"), domains=DOMAINS)
    found = unpack(page, revised)
    assert len(found.batch) == 5 and found.left_out == {}
    belief = Belief(revised)
    belief.posterior.learn_many(found.batch)
    assert belief.times_learned()["Recovery"] == 1  # the one row with Dose, Diet and Recovery


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"graph": CausalGraph.parse("Age -> Recovery; Dose -> Recovery")}, "not a variable"),
        ({"hidden": "Diet"}, "hidden"),
        ({"graph": CausalGraph.parse("Recovery -> Diet; Dose -> Diet; Age -> Dose"),
          "reward": "Diet"}, "the reward"),
    ],
)  # fmt: skip
def test_records_of_arms_that_mean_nothing_now_are_left_out_and_counted(change, word):
    options = {"graph": GRAPH, "reward": "Recovery", "context": "Age"} | change
    revised = Problem(**options, domains=DOMAINS)
    found = unpack(pack(WARD.records(TABLE)), revised)
    assert found.left_out == {f"the arm set Diet, which is {word} now": 2}
    kept = [0, 1, 4]
    rest = WARD.records({name: [column[i] for i in kept] for name, column in TABLE.items()})
    assert labels(found.batch) == labels(rest)


def test_a_label_that_is_gone_is_named_with_its_rows():
    page = pack(WARD.records(TABLE))
    for labels_left, lost, rows in (
        (["low", "high"], "mid", r"1 imported row has \(0;"),
        (["mid", "high"], "low", r"1 imported row has \([13];"),
        (["mid", "low"], "high", r"1 imported row has \(2;"),
    ):
        revised = Problem(GRAPH, "Recovery", "Age", domains=DOMAINS | {"Dose": labels_left})
        with pytest.raises(DowiseError, match=f"Dose has no value '{lost}' any more, which {rows}"):
            unpack(page, revised)
    many = pack(WARD.records({"Dose": ["low", "mid"] * 1000}))
    with pytest.raises(DowiseError, match=r"1,000 imported rows have \(1, 3, 5, 7, 9, …;"):
        unpack(many, Problem(GRAPH, "Recovery", domains=DOMAINS | {"Dose": ["low", "high"]}))


def test_a_label_that_is_gone_only_from_records_left_out_is_no_error():
    page = pack(WARD.records(TABLE))
    graph = CausalGraph.parse("Age -> Recovery; Dose -> Recovery")
    revised = Problem(graph, "Recovery", domains=DOMAINS | {"Dose": ["low", "mid"]})
    assert unpack(page, revised).left_out == {"the arm set Diet, which is not a variable now": 2}


def changed(path, value):
    page = through_json(pack(WARD.records(TABLE)))
    place = page
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return page


def codes(*values):
    return b64encode(compress(bytes(values))).decode()


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (changed(["rows"], -1), "can't have -1 rows"),
        (changed(["rows"], 4), "are not those of 4 bytes"),
        (changed(["rows"], 6), "are not those of 6 bytes"),
        (changed(["rows"], True), "can't have True rows"),
        (changed(["rows"], "5"), "can't have '5' rows"),
        (changed(["rows"], MAX_ROWS), "can't be those of 100,000,000 bytes"),
        (changed(["rows"], MAX_ROWS + 1), "can't have 100000001 rows"),
        (changed(["format"], 2), "of format 2, which this version of dowise can't read"),
        (changed(["columns"], []), "they are not columns"),
        (changed(["arms"], None), "the arms has no list of texts"),
        (changed(["arms", "texts"], ["do()"] * 4), "the arms has a text twice"),
        (changed(["arms", "texts", 1], "do(X"), "do.X"),
        (changed(["arms", "codes"], codes(0, 1, 2, 3, 4)), "a row has no arm"),
        (changed(["columns", "Age", "codes"], codes(0, 1, 2, 3, 0)), "Age has a code without a"),
        (changed(["columns", "Age", "codes"], "=="), "Age: the codes are not base64"),
        (changed(["columns", "Age", "codes"], "aé"), "Age: the codes are not base64"),
        (changed(["columns", "Age", "codes"], "AAAA"), "Age: the codes can't be decompressed"),
        (changed(["columns", "Age", "codes"], codes(0, 1, 2, 1, 0)[:-8]), "not those of 5 bytes"),
        (changed(["columns", "Age", "codes"], codes(*bytes(10**6))), "not those of 5 bytes"),
        (changed(["columns", "Age", "codes"], None), "the codes are not a text"),
        (changed(["columns", "Age", "texts"], [0, 1]), "Age has no list of texts"),
        (changed(["columns", "Age"], "?"), "Age has no list of texts"),
        (changed(["columns", "Dose", "codes"], codes(*[0] * 5)), "Dose was both set and seen"),
        (changed(["arms", "texts", 1], 'do(Diet="")'), "Diet has no value '' any more"),
        ([], "they are not columns"),
        (None, "they are not columns"),
    ],
)  # fmt: skip
def test_damage_is_found(page, message):
    with pytest.raises(DowiseError, match=message):
        unpack(page, WARD)


@given(st.data())
@examples(150)
def test_any_damage_is_an_error_or_other_records(data):
    """Never anything but a DowiseError, whatever one character of the page becomes."""
    text = json.dumps(pack(WARD.records(TABLE)))
    place = data.draw(st.integers(0, len(text) - 1))
    spoiled = text[:place] + data.draw(st.sampled_from('0aZ"[]{}=,-')) + text[place + 1 :]
    try:
        page = json.loads(spoiled)
    except ValueError:
        return
    try:
        found = unpack(page, WARD)
    except DowiseError:
        return
    assert found.batch.codes.shape == found.batch.was_set.shape
    assert digest(page)


def test_a_page_is_small():
    rng = np.random.default_rng(0)
    names = [f"V{i}" for i in range(8)]
    problem = Problem(CausalGraph(variables=names), "V0", arms=["do()"])
    batch = RecordBatch(problem, rng.integers(0, 2, (8, 50_000)), np.zeros((8, 50_000), bool))
    assert len(json.dumps(pack(batch))) < 8 * 50_000 / 8 * 2.2  # fair bits can't take less than 1


def test_too_many_records_are_refused(monkeypatch):
    monkeypatch.setattr("dowise.experiment.records.MAX_ROWS", 4)
    with pytest.raises(DowiseError, match="5 records are too many for one import"):
        pack(WARD.records(TABLE))
