"""What stands around the play of a race: processor time, both taken in one and the same run."""

from time import process_time
from unittest.mock import patch

from dowise import simulate
from dowise.policies import baselines as bernoulli
from dowise.policies import baselines as ucb
from dowise.policies import thompson

HOME = {"ucb": ucb, "bernoulli-ts": bernoulli, "ts": thompson}
"""Where the kernel is that plays the rounds of a policy."""


def rest_and_play(problem, policy, times, **race):
    """Seconds around the kernel that plays, and in it: the least of each in so many races.

    What comes out is read once, verified and summed up, as `dowise simulate` does. The first race,
    for which kernels are loaded, is not counted.
    """
    played, kernel = [0.0], HOME[policy]._play_rounds

    def timed(*given):
        start = process_time()
        kernel(*given)
        played[0] += process_time() - start

    def seconds():
        played[0], start = 0.0, process_time()
        simulate([problem], [policy], **race).as_dict()
        return process_time() - start - played[0], played[0]

    with patch.object(HOME[policy], "_play_rounds", timed):
        seconds()
        found = [seconds() for _ in range(times)]
    return tuple(map(min, zip(*found, strict=True)))
