"""Matplotlib where it has no folder of its own."""

import os
import subprocess
import sys

import pytest

CODE = """\
import os
from dowise.plotting.figures import matplotlib_part
matplotlib_part("figure").Figure().savefig(os.devnull, format="png")
print(os.environ.get("MPLCONFIGDIR", "its own"))
"""


@pytest.fixture
def drawn(tmp_path):
    def draw(**settings):
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("XDG_", "MPL", "NUMBA_"))
        }
        settings = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")} | settings
        done = subprocess.run(
            [sys.executable, "-c", CODE], env=kept | settings, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        return done.stdout.strip(), done.stderr

    return draw


@pytest.mark.slow
def test_an_account_without_a_home_gets_a_folder_and_no_warning(drawn, tmp_path):
    place = tmp_path / "kernels" / "dowise" / "matplotlib"
    assert drawn(HOME=os.devnull) == (str(place), "")
    assert [*place.iterdir()]


@pytest.mark.slow
def test_who_has_a_folder_keeps_it(drawn, tmp_path):
    assert drawn(HOME=str(tmp_path))[0] == "its own"
    given = str(tmp_path / "given")
    assert drawn(HOME=os.devnull, MPLCONFIGDIR=given)[0] == given
