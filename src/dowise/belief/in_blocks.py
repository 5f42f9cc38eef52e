"""Many draws, some at a time: a moment's work and little memory each, so that Python gets a word in
(a bar moves, Ctrl-C ends it) and no number of draws is too much to hold."""

from __future__ import annotations

from collections.abc import Iterator

from dowise.belief.belief import Belief
from dowise.belief.dirichlet import Dirichlet
from dowise.belief.mixture import Mixture
from dowise.model import Codes
from dowise.model.draws import Draws
from dowise.randomness import Random, generator, key_of

__all__ = ["draw_in_blocks"]

_WORK = 1e8  # multiplications of a block: less than a tenth of a second
_ROW = 20  # so many multiplications take as long as drawing one entry of a row
_WHOLE_ROW = 60  # the same in double precision
_NUMBERS = 2**24  # of a block: 64 MB, or twice as much in double precision


def draw_in_blocks(belief: Belief, codes: Codes, samples: int, rng: Random) -> Iterator[Draws]:
    """The same draws that `belief.draw` makes, block by block.

    A posterior of one's own makes them all at once.
    """
    posterior = belief.posterior
    if not isinstance(posterior, Dirichlet | Mixture):
        yield belief.draw(codes, samples, rng)
        return
    circuit, draw, row = posterior.model.circuit, posterior.draw_lanes, _ROW
    if not posterior.is_fine_in(codes):
        circuit, draw, row = posterior.model.whole_circuit, posterior.draw_whole_lanes, _WHOLE_ROW
    key = key_of(generator(rng))
    work = circuit.multiplications + row * int(circuit.block_sizes.sum())
    lanes = int(min(_WORK / work, _NUMBERS / circuit.results.size))
    lanes = max(lanes // posterior.block, 1) * posterior.block
    for first in range(0, samples, lanes):
        yield draw(key, codes, first, min(lanes, samples - first))
