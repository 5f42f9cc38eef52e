"""A race: who plays in which worlds, and how the trials of a job are played."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dowise
from dowise.belief import Belief
from dowise.checks import true_or_false, whole_number
from dowise.compiling import source_digest
from dowise.environments import Manner, OneWorld, World, Worlds, worlds_of
from dowise.errors import FAILURES, DowiseError, OwnCodeError, described, own_place
from dowise.own_code import is_ours
from dowise.problem import Problem
from dowise.simulation.entrants import Entrant, Entry, entrants_of
from dowise.simulation.expectable import check_expectable
from dowise.simulation.jobs import Extent, Job, kept_rounds
from dowise.simulation.keeping import Keeper
from dowise.simulation.results import Rounds
from dowise.simulation.trial import Scene, Trial, make_world, prepared, run_trial, seed_of
from dowise.simulation.workers import check_sendable

__all__ = ["MOST_ROUNDS", "Race", "Raced", "checked_race"]

MOST_ROUNDS = 10_000_000  # of a trial, which is kept in memory

ProblemOrWorld = str | Path | Problem | World
Raced = ProblemOrWorld | tuple[str, ProblemOrWorld]


@dataclass(frozen=True)
class Race:
    """Everything that decides what comes out: the same race gives the same bits."""

    worlds: Mapping[str, Worlds]
    policies: Mapping[str, Entrant]
    options: Mapping[str, Mapping[str, Any]]
    horizon: int
    trials: int
    seed: int
    every: int
    observational: int
    expected: bool = False
    """Whether regret is also what the posterior expects (`dowise.simulation.expected`)."""

    @property
    def extent(self) -> Extent:
        """What it spans."""
        quick = tuple(label for label, entrant in self.policies.items() if entrant.is_quick)
        return Extent(tuple(self.worlds), tuple(self.policies), self.horizon, self.trials, quick)

    def spec(self) -> dict[str, Any]:
        """For the manifest: the worlds' own word, policies with what makes them, and how."""
        return {
            "dowise": dowise.__version__,
            "sources": source_digest(),
            "problems": {label: worlds.spec() for label, worlds in self.worlds.items()},
            "policies": {
                label: entrant.spec()
                | {"options": _plain(dict(self.options.get(label, {})), label)}
                for label, entrant in self.policies.items()
            },
            "seed": self.seed,
            "every": self.every,
            "observational": self.observational,
            "expected": self.expected,
        }

    def options_of(self, policy: str, trial: int) -> dict[str, Any]:
        """Those given, and the race's own seed and horizon for a policy that has such options."""
        entrant, own = self.policies[policy], dict[str, Any]()
        if entrant.takes("seed"):
            own["seed"] = seed_of(self.seed, trial)
        if entrant.takes("horizon"):
            own["horizon"] = self.horizon
        return own | dict(self.options.get(policy, {}))

    def heeds_horizon(self, policy: str) -> bool:
        """Whether the first rounds of a policy may depend on how many there are.

        They may where it gets its horizon from the race, unless it says that it decides without.
        """
        entrant = self.policies[policy]
        if not entrant.takes("horizon") or "horizon" in self.options.get(policy, {}):
            return False
        worlds = next(iter(self.worlds.values()))
        problem = make_world(worlds, self.seed, 0).problem
        made = entrant.make(problem, **self.options_of(policy, 0))
        return bool(getattr(made, "heeds_horizon", True))

    def check_sendable(self) -> None:
        """Raise if a world can't be pickled for other processes."""
        for label, worlds in self.worlds.items():
            if isinstance(worlds, OneWorld):
                check_sendable(f"the world {label!r}", worlds)

    def run(self, job: Job) -> Rounds:
        """Play the trials of one job."""
        trials = [*range(job.first, job.last + 1)]
        whole = self._keeper(trials, self.horizon)
        begun = None if job.known is None else self._keeper(trials, job.known[0])
        worlds = prepared(self.worlds[job.problem], self.horizon, self.seed, trials)
        for trial, (world, scene) in zip(trials, worlds, strict=True):
            played = self._played(job, world, scene, trial)
            whole.keep(played)
            if begun is not None:
                begun.keep(played)
        if begun is not None:
            self._check_begun(job, begun.found())
        return whole.found()

    def _keeper(self, trials: list[int], horizon: int) -> Keeper:
        return Keeper(trials, kept_rounds(horizon, self.every), self.expected)

    def _check_begun(self, job: Job, shorter: Rounds) -> None:
        """Raise unless the first rounds are those that a shorter race has found."""
        if job.known != (int(shorter.rounds[-1]), shorter.digest()):
            raise DowiseError(
                f"{job.policy} on {job.problem}, trials {job.first} to {job.last}: the first "
                f"{shorter.rounds[-1]:,} rounds came out otherwise than those that are there, so "
                "the policy depends on how many rounds there are, or this machine plays otherwise: "
                "name another folder as out"
            )

    def _played(self, job: Job, world: World, scene: Scene | None, trial: int) -> Trial:
        """A trial, every round of it."""
        make = partial(self.policies[job.policy].make, **self.options_of(job.policy, trial))
        try:
            return run_trial(
                world,
                make,
                self.horizon,
                self.seed,
                trial,
                self.observational,
                self.expected,
                scene,
            )
        except FAILURES as error:
            if isinstance(error, SystemExit) and not self._runs_own_code(job):
                raise  # a program's own signal handler may end it at any time
            kind = DowiseError if own_place(error) is None else OwnCodeError
            where = f"{job.policy} on {job.problem}, trial {trial}"
            raise kind(f"{where}: {described(error)}") from error

    def _runs_own_code(self, job: Job) -> bool:
        worlds = self.worlds[job.problem]
        own_world = isinstance(worlds, OneWorld) and not is_ours(type(worlds.world))
        return own_world or self.policies[job.policy].is_own


def checked_race(
    problems: Iterable[Raced],
    policies: Iterable[Entry],
    horizon: int,
    trials: int,
    seed: int,
    options: Mapping[str, Mapping[str, Any]],
    every: int,
    observational: int,
    manner: Manner,
    expected: bool,
) -> Race:
    """A race of what was given, with everything checked before anything is run."""
    horizon, trials = (
        whole_number("horizon", horizon, 1, MOST_ROUNDS),
        whole_number("trials", trials, 1),
    )
    every, seed = whole_number("every", every, 1), whole_number("seed", seed, 0)
    observational = whole_number("observational", observational, 0)
    if not all(
        isinstance(given, Iterable) and not isinstance(given, str | Mapping)
        for given in (problems, policies)
    ):
        raise DowiseError('give lists: simulate(["task1"], ["ids", "ts"], …)')
    raced = dict(_labelled_worlds(problems, None if manner == Manner() else manner))
    makers = {entrant.label: entrant for entrant in entrants_of(policies)}
    if not raced or not makers:
        raise DowiseError("name at least one problem and one policy")
    for label, own in options.items():
        if label not in makers:
            raise DowiseError(f"options for {label!r}, which is not among the policies")
        if not isinstance(own, Mapping):
            raise DowiseError(f"options={options!r}: give {{policy: {{option: value}}}}")
    expected = true_or_false("expected", expected)
    race = Race(raced, makers, options, horizon, trials, seed, every, observational, expected)
    first = [make_world(worlds, seed, 0).problem for worlds in raced.values()]
    if expected:
        for (label, worlds), problem in zip(raced.items(), first, strict=True):
            check_expectable(label, worlds)
            Belief(problem)
    for label, entrant in makers.items():  # whatever is wrong shows here, before anything is run
        for problem in first:
            entrant.check(problem, **race.options_of(label, 0))
    return race


def _plain(value: Any, label: str) -> Any:
    """An option as JSON has it, so that a manifest can be compared; refused where it can't be."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part, label) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part, label) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Path):
        return str(value)
    raise DowiseError(
        f"an option of {label!r} is {value!r}: give numbers, texts, lists or mappings of them, so "
        "that the run can be told from others"
    )


def _labelled_worlds(
    problems: Iterable[Raced], manner: Manner | None
) -> Iterator[tuple[str, Worlds]]:
    seen: set[str] = set()
    for given in problems:
        own, place = given if isinstance(given, tuple) and len(given) == 2 else (None, given)
        worlds = worlds_of(place, manner)
        label = str(own or worlds.label or f"problem {len(seen) + 1}")
        if label in seen:
            raise DowiseError(
                f'two problems are called {label!r}: give them different names (name = "…" in a '
                "problem file), in Python in pairs (name in this race, problem or world)"
            )
        seen.add(label)
        yield label, worlds
