"""Data as JSON has it, whole numbers, and names that can't be loaded."""

import json
import math
import sys

import numpy as np
import pytest

import dowise
from dowise import DowiseError, load_problem
from dowise._core.codec import to_json
from dowise._core.validation import check_fraction, check_integer, check_number
from dowise.information import Interval


def test_plain_data():
    arm = load_problem("task1").arms[1]
    given = {
        "array": np.array([[1.5, np.nan], [np.inf, -np.inf]]),
        "number": np.float32(0.5),
        "whole": np.int64(3),
        "truth": np.bool_(True),
        "interval": Interval(np.zeros(1), np.ones(1)),
        "arms": (arm,),
        "nothing": None,
        1: {"inner": math.inf},
    }
    expected = {
        "array": [[1.5, None], ["inf", "-inf"]], "number": 0.5, "whole": 3, "truth": True,
        "interval": {"low": [0.0], "high": [1.0]}, "arms": [{"X": "0"}], "nothing": None,
        "1": {"inner": "inf"},
    }  # fmt: skip
    assert to_json(given) == expected
    assert json.loads(json.dumps(to_json(given), allow_nan=False)) == expected


@pytest.mark.parametrize("number", [1, np.int32(1), np.uint8(200), 10**30])
def test_whole_numbers(number):
    assert check_integer("n", number, 1) == number
    assert type(check_integer("n", number, 1)) is int


@pytest.mark.parametrize("number", [0, -1, 1.0, True, None, "1", np.bool_(True), np.float64(1)])
def test_what_is_no_whole_number(number):
    with pytest.raises(DowiseError, match="n=.* must be a whole number, 1 or more"):
        check_integer("n", number, 1)


def test_limits():
    with pytest.raises(DowiseError, match="n=11 must be at most 10"):
        check_integer("n", 11, 1, 10)
    assert check_number("c", np.float32(0.5), 0) == 0.5
    for bad in (-1, math.nan, math.inf, True, "1", None):
        with pytest.raises(DowiseError, match="c=.* must be a number of at least 0"):
            check_number("c", bad, 0)
    assert check_fraction("level", 0.5) == 0.5
    for bad in (0, 1, -0.5, True, "0.5", math.nan):
        with pytest.raises(DowiseError, match="level=.* must be between 0 and 1"):
            check_fraction("level", bad)


def test_a_name_that_can_t_be_loaded_says_why(monkeypatch):
    """An AttributeError on the way would come out as "cannot import name", without the cause."""

    class Broken:
        def __getattr__(self, name):
            raise AttributeError("numba is too old for this NumPy")

    monkeypatch.setitem(sys.modules, "dowise.belief", Broken())
    with pytest.raises(ImportError, match=r"dowise\.Belief can't be loaded: numba is too old"):
        _ = dowise.Belief
    with pytest.raises(AttributeError, match="has no attribute 'Belieff'"):
        _ = dowise.Belieff
