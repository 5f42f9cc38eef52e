"""The International Stroke Trial by replay, for _worlds.py."""

from __future__ import annotations

import csv
import gzip
from functools import cache
from pathlib import Path

import numpy as np

from dowise import Problem, load_problem

STROKE_TRIAL = Path(__file__).parents[2] / "shared" / "data" / "ist"


class Replay:
    """Replay of a randomised trial: an outcome is that of a random patient of context and arm.

    The truth is a linear model of context and treatment, fitted to all patients.
    """

    def __init__(self, problem: Problem, rows: list[dict[str, str]], luck: list[str]) -> None:
        self.problem, names = problem, problem.graph.variables
        labels = {name: list(problem.domains[name]) for name in names}
        self._codes = np.array([[labels[name].index(row[name]) for name in names] for row in rows])
        contexts = self._codes[:, problem.context_positions]
        self.kinds, self._numbers = np.unique(contexts, axis=0, return_inverse=True)
        self._numbers = self._numbers.ravel()
        played = np.full(len(rows), -1)
        for a, arm in enumerate(problem.arms):
            fixed = problem.fixed(arm)
            is_set = fixed >= 0
            played[(self._codes[:, is_set] == fixed[is_set]).all(axis=1)] = a
        arms = range(len(problem.arms))
        self._cells = [
            [np.flatnonzero((self._numbers == c) & (played == a)) for a in arms]
            for c in range(len(self.kinds))
        ]
        design = np.concatenate(
            [np.eye(len(self.kinds))[self._numbers], np.eye(len(arms))[played][:, 1:]], axis=1
        )
        fitted = np.linalg.lstsq(design, self._codes[:, problem.reward_position], rcond=None)[0]
        by_context, by_arm = np.split(fitted, [len(self.kinds)])
        self.means = by_context[:, None] + np.append(0, by_arm)
        # The same arm has the same luck in whatever order labels are listed.
        self._ranks = [luck.index(text) for text in map(self.arm_text, problem.arms)]

    @staticmethod
    def arm_text(arm):
        """Return an arm as text that does not depend on the order of labels."""
        return ", ".join(f"{name}={value}" for name, value in sorted(arm.items()))

    def draw_contexts(self, rounds, rng):
        """Return the number of each round's context."""
        return self._numbers[rng.integers(len(self._numbers), size=rounds)]

    def outcomes(self, numbers, rng):
        """Return a function from round and arm to the codes of an outcome."""
        uniforms = rng.random((len(numbers), len(self._ranks)))

        def outcome(t, arm):
            cell = self._cells[numbers[t]][arm]
            return self._codes[cell[int(uniforms[t, self._ranks[arm]] * len(cell))]]

        return outcome


@cache
def stroke_replay(is_reversed):
    """Return the replay of the 14-day outcome, with labels as written or in reverse."""
    written = load_problem(STROKE_TRIAL / "ist-events.toml")
    domains = {name: tuple(labels) for name, labels in written.domains.items()}
    if is_reversed:
        domains |= {name: domains[name][::-1] for name in ("Aspirin", "Heparin")}
    problem = Problem(
        written.drawn,
        written.reward,
        written.context,
        manipulable=written.manipulable,
        domains=domains,
        name="stroke, reversed" if is_reversed else "stroke",
    )
    with gzip.open(STROKE_TRIAL / "ist.csv.gz", "rt", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if all(row[v] for v in problem.graph)]
    return Replay(problem, rows, sorted(map(Replay.arm_text, written.arms)))
