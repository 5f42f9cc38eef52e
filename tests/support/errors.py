"""Assertions about errors: by code and names, since wordings may change."""

from contextlib import contextmanager

import pytest

from dowise.errors import DowiseError


@contextmanager
def raises_code(code, *mentioned, error=DowiseError):
    """Expect an error with this code whose message mentions these texts."""
    with pytest.raises(error) as caught:
        yield caught
    assert caught.value.code == code, f"{caught.value.code}: {caught.value}"
    for text in mentioned:
        assert text in str(caught.value)
