"""Columns of an import: inverses, other problems, damage, size."""

import json
from base64 import b64decode, b64encode
from zlib import compress, decompress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_code
from support.strategies import cases, examples

from dowise import Belief, CausalGraph, DowiseError, Problem
from dowise.experiment.record_columns import MAX_ROWS, digest, pack, unpack
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


def json_copy(packed):
    return json.loads(json.dumps(packed))


def labels(batch):
    """Return each record as labels and the names of the variables that were set."""
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


def assert_equal_batches(one, other):
    np.testing.assert_array_equal(one.codes, other.codes)
    np.testing.assert_array_equal(one.was_set, other.was_set)


@given(cases(), st.integers(0, 2**32), st.integers(0, 40), st.integers(2, 400))
@examples(60)
def test_unpack_is_the_inverse_of_pack(case, seed, size, values):
    graph, reward, context, non_manipulable = case
    domains = {graph.variables[0]: [f"label {i}" for i in range(values)]}
    problem = Problem(graph, reward, context, non_manipulable, domains, arms=["do()"])
    batch = random_batch(problem, np.random.default_rng(seed), size)
    unpacked = unpack(json_copy(pack(batch)), problem)
    assert unpacked.left_out == {} and unpacked.batch.problem is problem
    assert_equal_batches(unpacked.batch, batch)


@pytest.mark.parametrize("values", [254, 255, 256, 257, 65_536])
def test_large_domains_are_packed(values):
    problem = Problem(
        CausalGraph.parse("X -> Y"), "Y", domains={"X": range(values)}, arms=["do(X=0)"]
    )
    codes = np.array([[*range(values), -1], [0] * (values + 1)])
    for set_too in (False, True)[: 1 if values > 1000 else 2]:
        was_set = np.array([(codes[0] >= 0) & set_too, codes[1] < 0])
        batch = RecordBatch(problem, codes, was_set)
        assert_equal_batches(unpack(pack(batch), problem).batch, batch)


def test_arms_of_many_variables_do_not_overflow():
    names = [f"X{i:02}" for i in range(70)]
    problem = Problem(CausalGraph([(name, "Y") for name in names]), "Y", arms=["do()"])
    batch = random_batch(problem, np.random.default_rng(0), 500)
    assert_equal_batches(unpack(pack(batch), problem).batch, batch)


def test_columns_and_digest_depend_on_the_records_only():
    batch = WARD.records(TABLE)
    turned = {name: list(reversed(domain)) for name, domain in WARD.domains.items()}
    graph = CausalGraph.parse("New; Age -> Dose -> Recovery; Diet -> Recovery")
    other = Problem(graph, "Recovery", domains=turned)
    assert pack(other.records(TABLE)) == pack(batch)
    packed = pack(batch)
    swapped = {name: [*column[:3], column[4], column[3]] for name, column in TABLE.items()}
    variants = [
        packed, pack(WARD.records(swapped)),
        pack(WARD.records(TABLE | {"Age": [0, 1, None, 1, 1]})),
        pack(WARD.records({name: column[:4] for name, column in TABLE.items()})),
        pack(WARD.records({**TABLE, "arm": ["do()", *["do(Dose=low)"] * 4], "Dose": [None] * 5})),
        pack(WARD.records({})),
    ]  # fmt: skip
    assert len({digest(one) for one in variants}) == len(variants)
    again = json_copy(packed)
    for column in (again["arms"], *again["columns"].values()):  # by another compressor
        raw = compress(decompress(b64decode(column["codes"])), 9)
        column["codes"] = b64encode(raw).decode()
    assert again != packed and digest(again) == digest(packed)
    assert_equal_batches(unpack(again, WARD).batch, batch)


def test_another_problem_reads_columns_by_label():
    packed = pack(WARD.records(TABLE))
    revised = Problem(
        CausalGraph.parse("Dose -> Recovery; Diet -> Recovery; Sleep -> Recovery"),
        "Recovery", non_manipulable=("Diet", "Dose"),
        domains={"Dose": ["none", "high", "mid", "low"], "Recovery": ["good", "bad"]},
    )  # fmt: skip
    unpacked = unpack(packed, revised)
    before = labels(WARD.records(TABLE))
    expected = [
        ({k: x for k, x in seen.items() if k != "Age"}, was_set) for seen, was_set in before
    ]
    assert labels(unpacked.batch) == expected and unpacked.left_out == {}
    belief = Belief(revised)
    belief.posterior.learn_many(unpacked.batch)
    assert belief.times_learned()["Dose"] == 2  # where it was seen, not set


def test_numbers_match_labels_of_truth_values():
    packed = pack(WARD.records({"Age": [0, 1, None]}))
    revised = Problem(GRAPH, "Recovery", "Age", domains=DOMAINS | {"Age": ["True", "False"]})
    assert unpack(packed, revised).batch.codes[0].tolist() == [1, 0, -1]


def test_a_context_that_an_arm_had_set_still_counts():
    packed = pack(WARD.records(TABLE))
    revised = Problem(GRAPH, "Recovery", ("Age", "Diet"), domains=DOMAINS)
    unpacked = unpack(packed, revised)
    assert len(unpacked.batch) == 5 and unpacked.left_out == {}
    belief = Belief(revised)
    belief.posterior.learn_many(unpacked.batch)
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
def test_records_of_arms_that_are_invalid_now_are_left_out(change, word):
    options = {"graph": GRAPH, "reward": "Recovery", "context": "Age"} | change
    revised = Problem(**options, domains=DOMAINS)
    unpacked = unpack(pack(WARD.records(TABLE)), revised)
    assert unpacked.left_out == {f"the arm set Diet, which is {word} now": 2}
    usable = WARD.records({name: [column[i] for i in (0, 1, 4)] for name, column in TABLE.items()})
    assert labels(unpacked.batch) == labels(usable)


def test_a_missing_label_is_named_with_its_rows():
    packed = pack(WARD.records(TABLE))
    for labels_left, lost, rows in (
        (["low", "high"], "mid", "1 imported row has (0;"),
        (["mid", "high"], "low", "1 imported row has (3;"),
        (["mid", "low"], "high", "1 imported row has (2;"),
    ):
        revised = Problem(GRAPH, "Recovery", "Age", domains=DOMAINS | {"Dose": labels_left})
        with raises_code("unknown-value", f"'{lost}'", rows):
            unpack(packed, revised)
    many = pack(WARD.records({"Dose": ["low", "mid"] * 1000}))
    with raises_code("unknown-value", "(1, 3, 5, 7, 9, …;"):
        unpack(many, Problem(GRAPH, "Recovery", domains=DOMAINS | {"Dose": ["low", "high"]}))


def test_a_missing_label_in_unusable_records_is_ignored():
    packed = pack(WARD.records(TABLE))
    graph = CausalGraph.parse("Age -> Recovery; Dose -> Recovery")
    revised = Problem(graph, "Recovery", domains=DOMAINS | {"Dose": ["low", "mid"]})
    assert unpack(packed, revised).left_out == {"the arm set Diet, which is not a variable now": 2}


def changed(path, value):
    packed = json_copy(pack(WARD.records(TABLE)))
    place = packed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return packed


def codes(*values):
    return b64encode(compress(bytes(values))).decode()


@pytest.mark.parametrize(
    ("packed", "message"),
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
def test_damaged_columns_are_refused(packed, message):
    with pytest.raises(DowiseError, match=message):
        unpack(packed, WARD)


@given(st.data())
@examples(150)
def test_arbitrary_damage_is_an_error_or_other_records(data):
    text = json.dumps(pack(WARD.records(TABLE)))
    place = data.draw(st.integers(0, len(text) - 1))
    spoiled = text[:place] + data.draw(st.sampled_from('0aZ"[]{}=,-')) + text[place + 1 :]
    try:
        packed = json.loads(spoiled)
    except ValueError:
        return
    try:
        unpacked = unpack(packed, WARD)
    except DowiseError:
        return
    assert unpacked.batch.codes.shape == unpacked.batch.was_set.shape
    assert digest(packed)


def test_columns_are_small():
    rng = np.random.default_rng(0)
    names = [f"V{i}" for i in range(8)]
    problem = Problem(CausalGraph(variables=names), "V0", arms=["do()"])
    batch = RecordBatch(problem, rng.integers(0, 2, (8, 50_000)), np.zeros((8, 50_000), bool))
    assert len(json.dumps(pack(batch))) < 8 * 50_000 / 8 * 2.2  # random bits can't take less than 1


def test_too_many_records_are_refused(monkeypatch):
    monkeypatch.setattr("dowise.experiment.record_columns.MAX_ROWS", 4)
    with raises_code("too-large"):
        pack(WARD.records(TABLE))
