"""What a plain round of ids makes numba compile or load, and what it leaves alone."""

import subprocess
import sys

import pytest

ROUND = """
from dowise import make_policy, load_problem
make_policy("ids", load_problem("task1"), samples=10).decide(None, 0)
from dowise.information import estimates, kl, ratio
kernels = [x for x in vars(kl).values() if hasattr(x, "signatures") and x.__module__ == kl.__name__]
assert kl.gain_bounds in kernels and kl.box_divergence in kernels
assert not any(kernel.signatures for kernel in kernels)
assert [str(types[0].dtype) for types in estimates.summarise.signatures] == ["float32"]
assert ratio.best_pair.signatures and not ratio.best_pair_on_hull.signatures
"""


@pytest.mark.slow
def test_a_plain_round_leaves_lemma_4_and_double_precision_alone():
    subprocess.run([sys.executable, "-c", ROUND], check=True)
