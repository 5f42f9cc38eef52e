"""Fixtures of the tests of the command line."""

import pytest
from support.cli_runner import CommandLine


@pytest.fixture
def cli(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return CommandLine(tmp_path)
