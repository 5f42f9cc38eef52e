"""Parameters of which only some belong to the fast tests."""

import pytest


def one_in(number, values):
    """Mark all values as slow except one in `number`, beginning with the first."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=marks)
        for place, value in enumerate(values)
        for marks in [pytest.mark.slow if place % number else ()]
    ]
