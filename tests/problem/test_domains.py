"""Domains: how a value that a user passes becomes a label."""

import math

import numpy as np
import pytest
from support.errors import raises_code

from dowise.problem.domains import check_domain, label_of


@pytest.mark.parametrize(
    ("value", "domain", "label"),
    [
        ("1", ("0", "1"), "1"),
        (1, ("0", "1"), "1"),
        (1.0, ("0", "1"), "1"),
        (np.int64(1), ("0", "1"), "1"),
        (np.float32(0.0), ("0", "1"), "0"),
        (np.bool_(True), ("0", "1"), "1"),
        (True, ("0", "1"), "1"),
        (True, ("False", "True"), "True"),
        (False, ("TRUE", "FALSE"), "FALSE"),
        (0.5, ("0.5", "1.5"), "0.5"),
        (-0.0, ("0", "1"), "0"),
        (None, ("0", "1"), None),
        (math.nan, ("0", "1"), None),
        (np.float64("nan"), ("0", "1"), None),
        (np.str_("low"), ("low", "high"), "low"),
        (np.float32(0.1), ("0.1", "0.2"), "0.1"),
        ("1", ("no", "TRUE", "false"), "TRUE"),
        ("true", ("True", "False"), "True"),
        ("12.0", ("7", "12"), "12"),
        ("12.", ("7", "12"), "12"),
        (12, ("7.0", "12.0"), "12.0"),
        ("12", ("7.0", "12.0"), "12.0"),
        ("12.0", ("12", "12.0"), "12.0"),  # the label itself comes first
    ],
)
def test_values_become_labels(value, domain, label):
    result = label_of("X", value, domain)
    assert result == label and (result is None or type(result) is str)


@pytest.mark.parametrize("value", [2, "one", 0.5, math.inf, True, "12.5", "1.0", "+12", "true"])
def test_unknown_values_are_refused(value):
    with raises_code("unknown-value", "Dose", "low, 7, 12"):
        label_of("Dose", value, ("low", "7", "12"))


def test_a_misspelt_label_gets_a_suggestion():
    with raises_code("unknown-value", "did you mean 'high'"):
        label_of("Dose", "hihg", ("low", "high"))


@pytest.mark.parametrize("value", [[1], {"a": 1}, object(), np.array([1, 0])])
def test_objects_that_are_not_values_are_refused(value):
    with raises_code("invalid-type", "X: "):
        label_of("X", value, ("0", "1"))


def test_labels_may_be_numbers_and_bools():
    assert check_domain("X", [0, 1, 2.0]) == ("0", "1", "2")
    assert check_domain("X", [False, True]) == ("False", "True")
    assert check_domain("X", np.array([False, True])) == ("False", "True")
