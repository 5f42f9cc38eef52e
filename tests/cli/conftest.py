"""Fixtures of the tests of the command line."""

import pytest
from support.cli_runner import Desk


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path)
