"""The public surface is as recorded: names, signatures, the HTTP API, commands and their help."""

import pytest
from golden.record import as_recorded, content, recorded


@pytest.mark.parametrize("part", ["surface", "openapi", "options"])
def test_surface_is_as_recorded(part):
    current, expected = as_recorded(content(part)), recorded(part)
    assert current.keys() == expected.keys()
    for name in expected:
        assert current[name] == expected[name], name


def test_help_of_every_command_is_as_recorded():
    assert content("help") == recorded("help")
