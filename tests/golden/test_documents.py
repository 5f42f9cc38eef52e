"""The JSON documents of the commands are as recorded."""

import pytest
from golden.record import as_recorded, assert_close, content, recorded


@pytest.mark.parametrize("part", ["documents", "texts"])
def test_documents_are_as_recorded(part):
    assert_close(as_recorded(content(part)), recorded(part), part)


def test_every_command_with_json_has_a_document():
    commands = {key.split()[1] for key in recorded("documents") if key[0].isdigit()} | {"serve"}
    with_json = {
        name.split()[1]
        for name, options in recorded("options").items()
        if any("--json" in option["names"] for option in options)
    }
    assert commands == with_json
