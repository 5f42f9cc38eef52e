"""Processor time of simulations outside and inside the kernel that plays the rounds."""

from time import process_time
from unittest.mock import patch

from dowise import simulate
from dowise.policies import baselines, thompson

MODULES = {"ucb": baselines, "bernoulli-ts": baselines, "ts": thompson}
"""Modules with the kernel that plays the rounds of a policy."""


def time_outside_and_inside_rounds(problem, policy, times, **options):
    """Return the least seconds outside and inside of the kernel among several simulations.

    The results are verified, read and summarised as in `dowise simulate`. A first simulation, which
    loads the kernels, is not counted.
    """
    inside, kernel = [0.0], MODULES[policy]._play_rounds

    def timed_kernel(*arguments):
        start = process_time()
        kernel(*arguments)
        inside[0] += process_time() - start

    def measure():
        inside[0], start = 0.0, process_time()
        simulate([problem], [policy], **options).as_dict()
        return process_time() - start - inside[0], inside[0]

    with patch.object(MODULES[policy], "_play_rounds", timed_kernel):
        measure()
        measured = [measure() for _ in range(times)]
    return tuple(map(min, zip(*measured, strict=True)))
