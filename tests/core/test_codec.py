"""Conversion of results to JSON and back."""

import json
import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from support.errors import raises_code

from dowise import load_problem
from dowise._core.codec import JsonResult, float_from_json, from_json, in_json, to_json
from dowise._core.types import FloatArray
from dowise.information import Interval


def test_to_json_converts_numpy_values_and_dataclasses():
    values = {
        "array": np.array([[1.5, np.nan], [np.inf, -np.inf]]),
        "number": np.float32(0.5),
        "whole": np.int64(3),
        "truth": np.bool_(True),
        "interval": Interval(np.zeros(1), np.ones(1)),
        "arms": (load_problem("task1").arms[1],),
        "nothing": None,
        1: {"inner": math.inf},
    }
    expected = {
        "array": [[1.5, None], ["inf", "-inf"]],
        "number": 0.5,
        "whole": 3,
        "truth": True,
        "interval": {"low": [0.0], "high": [1.0]},
        "arms": [{"X": "0"}],
        "nothing": None,
        "1": {"inner": "inf"},
    }
    assert to_json(values) == expected
    assert json.loads(json.dumps(to_json(values), allow_nan=False)) == expected


@dataclass(frozen=True)
class Point:
    x: float
    label: str | None = None


@dataclass(frozen=True)
class Shape(JsonResult):
    points: tuple[Point, ...]
    area: float = field(metadata=in_json(key="size"))
    weights: FloatArray = field(default_factory=lambda: np.zeros(0))
    owner: str | None = field(default=None, metadata=in_json(omit_none=True))
    secret: str = field(default="", metadata=in_json(is_sent=False))

    json_extras = ("corners",)

    @property
    def corners(self):
        return len(self.points)


def test_from_json_inverts_to_json():
    shape = Shape((Point(1.0), Point(math.inf, "b")), 2.5, np.array([0.5, math.inf]), secret="s")
    data = shape.as_dict()
    assert data == {
        "points": [{"x": 1.0, "label": None}, {"x": "inf", "label": "b"}],
        "size": 2.5,
        "weights": [0.5, "inf"],
        "corners": 2,
    }
    again = Shape.from_dict(json.loads(json.dumps(data)))
    assert again.points == shape.points and again.area == 2.5 and again.secret == ""
    np.testing.assert_array_equal(again.weights, shape.weights)


@pytest.mark.parametrize("data", [{}, {"points": 3, "size": 1}, {"points": [], "size": "x"}, None])
def test_from_json_refuses_data_of_another_form(data):
    with raises_code("malformed-data", "Shape"):
        from_json(Shape, data)


def test_special_floats_round_trip():
    assert math.isnan(float_from_json(None)) and float_from_json("-inf") == -math.inf
