"""Which of many parameters `make test` takes; the rest are slow tests, for `make check`."""

import pytest


def one_in(number, values):
    """The first of every so many values is for `make test`."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=marks)
        for place, value in enumerate(values)
        for marks in [pytest.mark.slow if place % number else ()]
    ]
