"""Kernels: the folder they are kept in, and what is said while they compile."""

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from dowise._core import kernels as compiling

CODE = """
import numpy as np
from dowise.belief.draw_kernels import count_record
from dowise.problem import load_problem
from dowise.model import model_of

problem = load_problem("task1")
record = problem.record("do(X=1)", {"Z": 0, "Y": 1})
factors = model_of(problem).factors
counts = np.zeros(factors.entries, dtype=np.int64)
unused = np.zeros((3, 4), dtype=np.int64)
(under,) = factors.under_arms
count_record(
    counts, unused, record.codes, record.fixed, under, factors.starts, factors.strides, 1
)
print(counts.sum())
"""


def run(folder):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True
    )


@pytest.mark.slow
def test_the_first_compilation_says_so_also_without_a_terminal_and_the_next_start_does_not(
    tmp_path,
):
    first, second = run(tmp_path), run(tmp_path)
    assert first.stdout == second.stdout == "2\n"
    assert first.stderr.count("dowise: compiling") == 1
    assert second.stderr == ""


def test_every_file_that_kernels_are_made_of_is_in_the_digest(tmp_path, monkeypatch):
    """Functions that are inlined into a kernel, and constants that it takes from elsewhere, too."""
    package = tmp_path / "dowise"
    shutil.copytree(compiling._PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(compiling, "_PACKAGE", package)
    digest = compiling.kernel_digest.__wrapped__
    seen = {digest()}
    for name in (
        "belief/variates.py",
        "belief/draw_kernels.py",
        "model/circuit.py",
        "model/kernels.py",
        "belief/mixture_kernels.py",
        "policies/arm_rewards.py",
        "information/gains.py",
    ):
        (package / name).write_text((package / name).read_text("utf-8") + "\n# changed\n", "utf-8")
        seen.add(digest())
    assert len(seen) == 8
    for name in compiling._NO_KERNELS:  # whose words may change without compiling anything anew
        (package / name / "__init__.py").write_text("# changed", "utf-8")
        assert digest() in seen


def test_no_kernel_is_in_a_layer_that_the_digest_leaves_out():
    kernels = re.compile(r"njit|kernels_of|import kernel\b")
    for layer in compiling._NO_KERNELS:
        for path in (compiling._PACKAGE / layer).rglob("*.py"):
            assert not kernels.search(path.read_text("utf-8")), path


def folder_with(monkeypatch, *bases):
    monkeypatch.setattr(compiling, "_bases", lambda: iter(bases))
    return compiling.cache_directory.__wrapped__()


def is_private(folder):
    found = folder.stat()
    return found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == 0o700


def test_the_first_base_that_can_be_written_is_taken(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    found = folder_with(monkeypatch, tmp_path / "file", tmp_path / "a" / "b", tmp_path / "c")
    assert found.parent == tmp_path / "a" / "b"
    assert found.name == f"kernels-{compiling.kernel_digest()}"
    assert is_private(found)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no such modes")
@pytest.mark.parametrize("which", ["the folder", "its parent", "a link"])
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path, monkeypatch, which):
    base, other = tmp_path / "shared", tmp_path / "own"
    folder = base / f"kernels-{compiling.kernel_digest()}"
    if which == "a link":
        base.mkdir(mode=0o700)
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir(mode=0o700, parents=True)
        base.chmod(0o700)
        (folder if which == "the folder" else base).chmod(0o777)
    assert folder_with(monkeypatch, base, other).parent == other
    if which == "its parent":
        assert not list(folder.iterdir())  # nothing was put there


def test_where_nothing_else_will_do_it_is_a_fresh_folder_of_this_user_alone(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    found = folder_with(monkeypatch, tmp_path / "file")
    try:
        assert found.parent == Path(tempfile.gettempdir())
        assert is_private(found)
    finally:
        found.rmdir()


def test_a_machine_where_nothing_can_be_written_compiles_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: (_ for _ in ()).throw(OSError("full")))
    (tmp_path / "file").write_text("in the way")
    assert folder_with(monkeypatch, tmp_path / "file") is None


def test_a_machine_without_a_home_has_bases_left(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    package, temporary = compiling._bases()
    assert package.name == "__pycache__"
    assert str(os.geteuid()) in temporary.name


def test_numbas_own_setting_is_left_alone():
    from numba import config

    before = config.CACHE_DIR
    compiling.kernel()(lambda x: x)
    assert before == config.CACHE_DIR


def test_what_was_kept_of_other_sources_goes_after_a_week(tmp_path, monkeypatch):
    base = tmp_path / "base"
    for name, days in (("kernels-old", 8), ("kernels-new", 1), ("something-else", 99)):
        (base / name / "inside").mkdir(parents=True)
        then = time.time() - days * 24 * 3600
        os.utime(base / name, (then, then))
    found = folder_with(monkeypatch, base)
    assert {path.name for path in base.iterdir()} == {found.name, "kernels-new", "something-else"}
    os.utime(found, (0, 0))
    assert folder_with(monkeypatch, base) == found
    assert time.time() - found.stat().st_mtime < 3600  # a start marks it as used
