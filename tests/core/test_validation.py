"""Validation of numbers and flags."""

import math

import numpy as np
import pytest
from support.errors import raises_code

from dowise._core.validation import (
    check_flag,
    check_fraction,
    check_fraction_or_zero,
    check_integer,
    check_number,
    check_optional_text,
)


@pytest.mark.parametrize("number", [1, np.int32(1), np.uint8(200), 10**30])
def test_whole_numbers_become_ints(number):
    assert check_integer("n", number, 1) == number
    assert type(check_integer("n", number, 1)) is int


@pytest.mark.parametrize("number", [0, -1, 1.0, True, None, "1", np.bool_(True), np.float64(1)])
def test_values_that_are_not_whole_numbers_are_refused(number):
    with raises_code("invalid-number", f"n={number!r}"):
        check_integer("n", number, 1)


def test_whole_numbers_above_the_maximum_are_refused():
    with raises_code("invalid-number", "n=11", "10"):
        check_integer("n", 11, 1, 10)


@pytest.mark.parametrize(
    ("check", "valid", "invalid"),
    [
        (lambda x: check_number("x", x, 0), [0, np.float32(0.5)], [-1, math.nan, math.inf]),
        (lambda x: check_fraction("x", x), [0.5], [0, 1, -0.5, math.nan]),
        (lambda x: check_fraction_or_zero("x", x), [0, 0.5], [1, -0.5, math.nan]),
    ],
)
def test_numbers_outside_a_range_are_refused(check, valid, invalid):
    for number in valid:
        assert check(number) == number and type(check(number)) is float
    for value in (*invalid, True, "1", None):
        with raises_code("invalid-number", f"x={value!r}"):
            check(value)


def test_numpy_flags_become_bools():
    assert check_flag("x", np.bool_(True)) is True


def test_an_optional_text_may_be_none():
    assert check_optional_text("x", None) is None


@pytest.mark.parametrize("check", [check_flag, check_optional_text])
def test_numbers_are_neither_flags_nor_texts(check):
    with raises_code("invalid-type", "x=1"):
        check("x", 1)
