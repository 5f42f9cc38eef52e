"""Compiled kernels: their cache directory, and the notice while they compile."""

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
from numba import config

from dowise._core import kernels

CODE = """
import numpy as np
from dowise.belief.draw_kernels import count_record
from dowise.belief.posterior import SettledState
from dowise.problem import load_problem
from dowise.model import model_of

problem = load_problem("task1")
record = problem.record("do(X=1)", {"Z": 0, "Y": 1})
factors = model_of(problem).factors
counts = np.zeros(factors.entries, dtype=np.int64)
unused = np.zeros((3, 4), dtype=np.int64)
(under,) = factors.under_arms
state = SettledState(np.ones(factors.entries), counts, unused)
count_record(state, record.codes, record.fixed, under, factors.starts, factors.strides, 1)
print(counts.sum())
"""


def run(folder):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True
    )


@pytest.mark.slow
def test_the_first_compilation_is_announced(tmp_path):
    first, second = run(tmp_path), run(tmp_path)
    assert first.stdout == second.stdout == "2\n"
    assert first.stderr.count("dowise: compiling") == 1
    assert second.stderr == ""


def test_the_digest_covers_every_source_of_kernels(tmp_path, monkeypatch):
    """Functions that are inlined and constants count too; layers without kernels do not."""
    package = tmp_path / "dowise"
    shutil.copytree(kernels._PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(kernels, "_PACKAGE", package)
    digest = kernels.kernel_digest.__wrapped__
    digests = {digest()}
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
        digests.add(digest())
    assert len(digests) == 8
    for name in kernels._NO_KERNELS:
        (package / name / "__init__.py").write_text("# changed", "utf-8")
        assert digest() in digests


def test_layers_outside_the_digest_have_no_kernels():
    pattern = re.compile(r"njit|import kernel\b")
    for layer in kernels._NO_KERNELS:
        for path in (kernels._PACKAGE / layer).rglob("*.py"):
            assert not pattern.search(path.read_text("utf-8")), path


def cache_directory(monkeypatch, *bases):
    monkeypatch.setattr(kernels, "_bases", lambda: iter(bases))
    return kernels.cache_directory.__wrapped__()


def is_private(folder):
    status = folder.stat()
    return status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) == 0o700


def test_the_first_writable_candidate_is_used(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    folder = cache_directory(monkeypatch, tmp_path / "file", tmp_path / "a" / "b", tmp_path / "c")
    assert folder.parent == tmp_path / "a" / "b"
    assert folder.name == f"kernels-{kernels.kernel_digest()}"
    assert is_private(folder)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no such modes")
@pytest.mark.parametrize("kind", ["folder", "parent", "link"])
def test_a_directory_that_others_may_write_to_is_not_used(tmp_path, monkeypatch, kind):
    base, other = tmp_path / "shared", tmp_path / "private"
    folder = base / f"kernels-{kernels.kernel_digest()}"
    if kind == "link":
        base.mkdir(mode=0o700)
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir(mode=0o700, parents=True)
        base.chmod(0o700)
        (folder if kind == "folder" else base).chmod(0o777)
    assert cache_directory(monkeypatch, base, other).parent == other
    if kind == "parent":
        assert not list(folder.iterdir())


def test_a_private_temporary_directory_is_the_last_candidate(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    folder = cache_directory(monkeypatch, tmp_path / "file")
    try:
        assert folder.parent == Path(tempfile.gettempdir())
        assert is_private(folder)
    finally:
        folder.rmdir()


def test_there_is_no_cache_if_nothing_can_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: (_ for _ in ()).throw(OSError("full")))
    (tmp_path / "file").write_text("in the way")
    assert cache_directory(monkeypatch, tmp_path / "file") is None


def test_candidates_of_a_user_without_a_home(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)

    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    package, temporary = kernels._bases()
    assert package.name == "__pycache__"
    assert str(os.geteuid()) in temporary.name


def test_numba_keeps_its_own_cache_directory():
    before = config.CACHE_DIR
    kernels.kernel()(lambda x: x)
    assert before == config.CACHE_DIR


def test_caches_of_other_sources_are_removed_after_a_week(tmp_path, monkeypatch):
    base = tmp_path / "base"
    for name, days in (("kernels-old", 8), ("kernels-new", 1), ("something-else", 99)):
        (base / name / "inside").mkdir(parents=True)
        modified = time.time() - days * 24 * 3600
        os.utime(base / name, (modified, modified))
    folder = cache_directory(monkeypatch, base)
    assert {path.name for path in base.iterdir()} == {folder.name, "kernels-new", "something-else"}
    os.utime(folder, (0, 0))
    assert cache_directory(monkeypatch, base) == folder
    assert time.time() - folder.stat().st_mtime < 3600  # marked as used
