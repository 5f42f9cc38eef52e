"""The order of arrival: appended, corrected in place, removed, and the same from a list."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_code

from dowise import CausalGraph, Problem
from dowise.belief.arrivals import ALL, PLACES_PER_EVENT, Arrivals, Piece, pieces_of
from dowise.problem.domains import MISSING

PROBLEM = Problem(CausalGraph.parse("C -> X -> Z -> Y; C -> Y"), "Y", context="C")
C, X, Y, Z = (PROBLEM.positions[name] for name in "CXYZ")


def content(arrivals):
    """Return everything that a reader sees, as plain data."""
    return [
        (piece.codes.tolist(), piece.cut, piece.told, piece.continues)
        for piece in arrivals.pieces()
    ]


def record(x=0, z=0, y=0, arm="do()"):
    return PROBLEM.record(arm, {"C": 0, "X": x, "Z": z, "Y": y})


def test_a_batch_equals_its_records_one_by_one():
    frame = {"C": [0, 1, 0, 0], "X": [0, 1, 0, 1], "Z": [0, None, 0, 1], "Y": [1, 1, 1, 0]}
    batch = PROBLEM.records(frame | {"arm": ["do()", "do(X=1)", "do()", "do(X=1)"]})
    together, singly = Arrivals(PROBLEM), Arrivals(PROBLEM)
    together.extend(batch)
    for one in batch.each():
        singly.append(one)
    assert content(together) == content(singly) and len(together) == together.records == 4
    arrays = together.arrays(1, 3)
    assert arrays.codes.shape == (4, 2)
    assert [arrays.cuts[i] for i in arrays.order] == [1 << X, 0]


def test_the_last_of_equal_records_is_removed():
    arrivals = Arrivals(PROBLEM)
    for z in (0, 1, 0, 1):
        arrivals.append(record(z=z))
    arrivals.mark_read()
    arrivals.remove(record(z=0))
    assert [codes[Z] for codes, *_ in content(arrivals)] == [0, 1, 1]
    assert arrivals.changed_from == 2
    with raises_code("not-learned"):
        arrivals.remove(record(y=1))


def test_a_decision_told_in_two_tells_is_two_pieces():
    told = [(7, Z), (5, Y), (7, X)]
    (first, piece), (second, other) = pieces_of(record(1, 1, 1), told)
    assert (first, second) == (5 * PLACES_PER_EVENT, 7 * PLACES_PER_EVENT)
    assert piece.codes.tolist() == [0, MISSING, 1, MISSING] and not piece.continues
    assert other.codes.tolist() == [0, 1, 1, 1] and other.continues
    assert other.told == 1 << Z | 1 << X
    arrivals = Arrivals(PROBLEM)
    arrivals.place(1, pieces_of(record(1, 1, 1), told))
    pieces = [*arrivals.pieces()]
    assert pieces[0].told == ALL and arrivals.records == 1
    assert arrivals.earlier_codes(pieces[0]).tolist() == [0, MISSING, MISSING, MISSING]
    assert arrivals.earlier_codes(pieces[1]).tolist() == pieces[0].codes.tolist()


def test_a_value_known_before_the_decision_is_not_told():
    ((_, piece),) = pieces_of(record(1, 1, 1), [(5, Y), (5, Z)], known_before=1 << X)
    assert piece.told == 1 << Y | 1 << Z
    arrivals = Arrivals(PROBLEM)
    arrivals.place(1, [(5, piece)])
    assert arrivals.earlier_codes(piece).tolist() == [0, 1, MISSING, MISSING]


def test_places_order_what_is_told_late():
    arrivals = Arrivals(PROBLEM)
    arrivals.place(3, pieces_of(record(z=1), [(9, Z), (9, Y), (9, X)]))
    arrivals.extend(PROBLEM.records({name: [0, 1] for name in "CXZY"}), 6 * PLACES_PER_EVENT)
    arrivals.place(1, pieces_of(record(y=1), [(4, Y), (4, X), (12, Z)]))
    assert [codes[Z] for codes, *_ in content(arrivals)] == [MISSING, 0, 1, 1, 0]
    assert arrivals.records == 4 and arrivals.position(7 * PLACES_PER_EVENT) == 3
    arrivals.mark_read()
    arrivals.place(1, pieces_of(record(y=0), [(4, Y), (4, X)]))  # corrected, Z retracted
    assert [codes[Y] for codes, *_ in content(arrivals)] == [0, 0, 1, 0]
    assert arrivals.changed_from == 0
    arrivals.place(1, [])
    assert len(arrivals) == arrivals.records == 3


def test_a_copy_is_independent():
    arrivals = Arrivals(PROBLEM)
    arrivals.append(record())
    copied = arrivals.copy()
    copied.append(record(z=1))
    copied.remove(record())
    assert content(arrivals) == [(record().codes.tolist(), 0, ALL, False)]
    assert content(copied) == [(record(z=1).codes.tolist(), 0, ALL, False)]


def test_removed_values_do_not_stay_in_memory():
    arrivals = Arrivals(PROBLEM)
    arrivals.place(1, pieces_of(record(z=1), [(4, Y), (4, X), (12, Z)]))
    arrivals.place(1, [])
    assert not arrivals._slots and set(arrivals._keys) == {None}


@given(st.data())
@pytest.mark.filterwarnings("error")
def test_any_changes_leave_the_sequence_of_a_sorted_list(data):
    """The twin keeps a dictionary of pieces by place, and compares what was read before."""
    arrivals, twin, read = Arrivals(PROBLEM), {}, []
    places = st.integers(1, 12)
    for _ in range(data.draw(st.integers(1, 12))):
        number = data.draw(st.integers(1, 4))
        free = [*range(number, 60, 5)]  # an event tells a single decision
        chosen = sorted(data.draw(st.sets(places, max_size=3)))
        pieces = []
        for i, k in enumerate(chosen):
            codes = np.array([0, data.draw(st.integers(-1, 1)), 0, data.draw(st.integers(0, 1))])
            pieces.append((free[k - 1], Piece(codes, 0, ALL, i > 0)))
        arrivals.place(number, pieces)
        twin = {place: entry for place, entry in twin.items() if entry[0] != number}
        twin |= {place: (number, piece) for place, piece in pieces}
        expected = [
            (piece.codes.tolist(), piece.cut, piece.told, piece.continues)
            for _, (_, piece) in sorted(twin.items())
        ]
        assert content(arrivals) == expected
        assert arrivals.records == len({n for n, _ in twin.values()})
        assert read[: arrivals.changed_from] == expected[: arrivals.changed_from]
        if data.draw(st.booleans()):
            read = expected
            arrivals.mark_read()
            assert arrivals.changed_from == len(expected)
