"""Expected regret Δ and information gain g of arms, the ratio that IDS minimises, and bounds."""

from dowise.information.bounds import (
    Interval,
    Radii,
    corollary_1,
    corollary_2,
    delta_interval,
    gain_interval,
    gains_above_0,
    gamma_bracket,
    map_entropy,
    radii,
    theorem_1,
    theorem_2,
)
from dowise.information.estimates import (
    Estimate,
    estimate,
    estimate_from_draws,
    estimate_in_blocks,
    estimate_of,
)
from dowise.information.kl import minimise_kl, project_to_box
from dowise.information.ratio import IDSAction, information_ratio, least_ratio, minimise_ratio

__all__ = [
    "Estimate",
    "IDSAction",
    "Interval",
    "Radii",
    "corollary_1",
    "corollary_2",
    "delta_interval",
    "estimate",
    "estimate_from_draws",
    "estimate_in_blocks",
    "estimate_of",
    "gain_interval",
    "gains_above_0",
    "gamma_bracket",
    "information_ratio",
    "least_ratio",
    "map_entropy",
    "minimise_kl",
    "minimise_ratio",
    "project_to_box",
    "radii",
    "theorem_1",
    "theorem_2",
]
