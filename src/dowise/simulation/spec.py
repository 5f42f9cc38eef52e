"""Specification of a simulation: worlds, policies and settings, validated and built once.

A policy is specified by name, by a factory, or with its own problem (`On`), to study wrong graphs:
the world has the true graph, and the policy decides in a problem with the same recorded variables
whose graph may lack an edge.

>>> from dowise.problem import load_problem
>>> drawn = On(load_problem("task1"), "ids", label="ids, drawn")
>>> [policy.label for policy in policy_specs(["ts", ("mine", "ucb"), drawn])]
['ts', 'mine', 'ids, drawn']
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numpy as np

import dowise
from dowise._core.kernels import source_digest
from dowise._core.validation import check_flag, check_integer
from dowise.belief import Belief
from dowise.environments import FixedWorld, World, WorldOptions, Worlds, resolve_worlds
from dowise.environments.sources import ChordalWorlds
from dowise.errors import (
    USER_CODE_ERRORS,
    DowiseError,
    UserCodeError,
    describe_error,
    join_names,
    suggestion,
    user_code_location,
)
from dowise.policies.base import MinimalPolicy
from dowise.policies.registry import import_named, make_checked, make_with_floor, policy_factory
from dowise.problem import Problem
from dowise.problem.problem_file import problem_text
from dowise.simulation.executors import pickle_task
from dowise.simulation.run_directory import Job, JobResult, digest_of_json
from dowise.simulation.source_fingerprint import is_builtin, source_fingerprint
from dowise.simulation.trial import (
    Trial,
    TrialCollector,
    TrialInputs,
    arm_positions,
    kept_rounds,
    make_world,
    prepare_trials,
    run_trial,
    seed_of,
)

MAX_ROUNDS = 10_000_000  # per trial, which is kept in memory
TRIALS_PER_JOB = 10
QUICK_TRIALS_PER_JOB = 50
"""Trials per job of policies whose trials take less time than the work around a job."""

PolicyFactory = str | Callable[..., MinimalPolicy]
ProblemOrWorld = str | Path | Problem | World
ProblemLike = ProblemOrWorld | tuple[str, ProblemOrWorld]


@dataclass(frozen=True)
class On:
    """A policy that decides in its own problem instead of the world's.

    Parameters
    ----------
    problem
        Problem of the policy, with the recorded variables, domains, context and reward of the
        world's problem, and arms that are among the world's (`arms="all"` allows any).
    policy
        Name or factory of the policy.
    label
        Name of the policy in the simulation. Defaults to the policy's name.

    Raises
    ------
    DowiseError
        If `problem` is not a Problem ("invalid-type").

    Examples
    --------
    >>> from dowise import load_problem
    >>> On(load_problem("task1"), "ts", label="as drawn").label
    'as drawn'
    """

    problem: Problem
    policy: PolicyFactory
    label: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.problem, Problem):
            raise DowiseError(
                f"On({self.problem!r}, …): pass a Problem first, then the policy",
                code="invalid-type",
            )


PolicyLike = PolicyFactory | On | tuple[str, PolicyFactory | On]


@dataclass(frozen=True)
class PolicySpec:
    """A policy in a simulation: its label, its factory and, if it has one, its own problem."""

    label: str
    factory: Callable[..., MinimalPolicy]
    problem: Problem | None = None

    @classmethod
    def from_user(cls, policy: PolicyLike) -> PolicySpec:
        """Resolve a name, a factory, `On`, or a pair (label, one of these)."""
        label, kind = policy if isinstance(policy, tuple) and len(policy) == 2 else (None, policy)
        problem = None
        if isinstance(kind, On):
            problem, label, kind = kind.problem, label or kind.label, kind.policy
        if isinstance(kind, str):
            import_named(kind)
        factory: Any = policy_factory(kind) if isinstance(kind, str) else kind
        if not hasattr(factory, "__qualname__"):
            raise DowiseError(
                f"{kind!r} is not a policy: pass a name, a class or function that makes one, a "
                "pair (label, policy), or On(problem, policy)",
                code="invalid-type",
            )
        name = label or kind
        return cls(name if isinstance(name, str) else factory.__name__, factory, problem)

    @cached_property
    def options(self) -> frozenset[str]:
        """Names of the options of the factory."""
        return frozenset(inspect.signature(self.factory).parameters)

    def make(self, problem: Problem, **options: Any) -> MinimalPolicy:
        """Make a fresh policy for a world of this problem."""
        return make_with_floor(self.factory, self.problem or problem, options)

    def check(self, problem: Problem, **options: Any) -> None:
        """Raise `DowiseError` if the policy can't be made or does not fit worlds of a problem."""
        make_checked(self.label, self.factory, self.problem or problem, **options)
        if self.problem is not None:
            try:
                arm_positions(problem, self.problem)
            except DowiseError as error:
                raise DowiseError(f"the policy {self.label!r}: {error}", code=error.code) from None

    @property
    def is_custom(self) -> bool:
        """True if the policy is user code, which may do anything."""
        return not is_builtin(self.factory)

    @property
    def is_quick(self) -> bool:
        """True if a trial of the policy is known to take hardly any time."""
        return not self.is_custom and getattr(self.factory, "is_quick", False) is True

    def to_json(self) -> dict[str, Any]:
        """Return the factory, the digest of its sources and the policy's own problem."""
        data = {
            "made by": f"{self.factory.__module__}:{self.factory.__qualname__}",
            "source": source_fingerprint(self.factory),
        }
        return data | ({} if self.problem is None else {"problem": problem_text(self.problem)})


def policy_specs(policies: Iterable[PolicyLike]) -> list[PolicySpec]:
    """Resolve policies, whose labels must be distinct."""
    specs: dict[str, PolicySpec] = {}
    for policy in policies:
        spec = PolicySpec.from_user(policy)
        if spec.label in specs:
            raise DowiseError(
                f"two policies are called {spec.label!r}: use different labels",
                code="duplicate-name",
            )
        specs[spec.label] = spec
    return list(specs.values())


@dataclass(frozen=True)
class SimulationSpec:
    """Everything that determines the results: equal specifications give equal bits.

    With `expected`, expected regret is computed too (`dowise.simulation.expected_regret`).
    """

    worlds: Mapping[str, Worlds]
    policies: Mapping[str, PolicySpec]
    options: Mapping[str, Mapping[str, Any]]
    horizon: int
    trials: int
    seed: int
    every: int
    observational: int
    expected: bool = False

    @classmethod
    def from_user(
        cls,
        problems: Iterable[ProblemLike],
        policies: Iterable[PolicyLike],
        *,
        horizon: int,
        trials: int,
        seed: int,
        options: Mapping[str, Mapping[str, Any]],
        every: int,
        observational: int,
        world_options: WorldOptions,
        expected: bool,
    ) -> SimulationSpec:
        """Validate all arguments, and build every world and policy once before anything runs."""
        horizon = check_integer("horizon", horizon, 1, MAX_ROUNDS)
        trials = check_integer("trials", trials, 1)
        every, seed = check_integer("every", every, 1), check_integer("seed", seed, 0)
        observational = check_integer("observational", observational, 0)
        for values in (problems, policies):
            if not isinstance(values, Iterable) or isinstance(values, str | Mapping):
                raise DowiseError(
                    'pass lists: simulate(["task1"], ["ids", "ts"], …)', code="invalid-type"
                )
        worlds = dict(
            _labelled_worlds(problems, None if world_options == WorldOptions() else world_options)
        )
        specs = {policy.label: policy for policy in policy_specs(policies)}
        if not worlds or not specs:
            raise DowiseError(
                "at least one problem and one policy are required", code="missing-value"
            )
        for label, values in options.items():
            if label not in specs:
                raise DowiseError(
                    f"options for {label!r}, which is not among the policies"
                    f"{suggestion(label, specs)}: {join_names(specs)}",
                    code="unknown-policy",
                )
            if not isinstance(values, Mapping):
                raise DowiseError(
                    f"options={options!r}: expected {{policy: {{option: value}}}}",
                    code="invalid-type",
                )
        spec = cls(
            worlds=worlds,
            policies=specs,
            options=options,
            horizon=horizon,
            trials=trials,
            seed=seed,
            every=every,
            observational=observational,
            expected=check_flag("expected", expected),
        )
        samples = [make_world(source, seed, 0).problem for source in worlds.values()]
        if spec.expected:
            for (label, source), problem in zip(worlds.items(), samples, strict=True):
                reason = _why_not_expected(source)
                if reason is not None:
                    raise DowiseError(
                        f"{label}: expected=True needs worlds that are drawn from a belief's "
                        f"prior, {reason}",
                        code="no-expected-regret",
                    )
                Belief(problem)
        for label, policy in specs.items():
            for problem in samples:
                policy.check(problem, **spec.policy_options(label, 0))
        return spec

    def to_json(self) -> dict[str, Any]:
        """Return everything that the results depend on, except trials and horizon."""
        problems = {}
        for label, worlds in self.worlds.items():
            problems[label] = worlds.spec()
            if isinstance(worlds, FixedWorld):
                problems[label]["source"] = source_fingerprint(type(worlds.world))
        return {
            "dowise": dowise.__version__,
            "sources": source_digest(),
            "problems": problems,
            "policies": {
                label: policy.to_json()
                | {"options": _to_json(dict(self.options.get(label, {})), label)}
                for label, policy in self.policies.items()
            },
            "seed": self.seed,
            "every": self.every,
            "observational": self.observational,
            "expected": self.expected,
        }

    def jobs(self, spec: Mapping[str, Any] | None = None) -> list[Job]:
        """Return all jobs by problem, the first trials of all policies before later trials.

        `spec` is `to_json()`, if the caller has it already.
        """
        spec = self.to_json() if spec is None else spec
        shared = {key: x for key, x in spec.items() if key not in ("problems", "policies")}
        jobs = []
        for problem in self.worlds:
            jobs_of_problem = []
            for label, policy in self.policies.items():
                pair = spec["problems"][problem], spec["policies"][label]
                source = digest_of_json([shared, problem, label, *pair])
                size = QUICK_TRIALS_PER_JOB if policy.is_quick else TRIALS_PER_JOB
                for first in range(0, self.trials, size):
                    last = min(first + size, self.trials) - 1
                    digest = sha256(f"{source} {first}-{last} {self.horizon}".encode()).hexdigest()
                    jobs_of_problem.append(Job(problem, label, first, last, self.horizon, digest))
            jobs += sorted(jobs_of_problem, key=lambda job: job.first)
        return jobs

    def policy_options(self, policy: str, trial: int) -> dict[str, Any]:
        """Return the user's options, with defaults for the options `seed` and `horizon`."""
        defaults: dict[str, Any] = {}
        if "seed" in self.policies[policy].options:
            defaults["seed"] = seed_of(self.seed, trial)
        if "horizon" in self.policies[policy].options:
            defaults["horizon"] = self.horizon
        return defaults | dict(self.options.get(policy, {}))

    def check_picklable(self) -> None:
        """Raise `DowiseError` if a world can't be pickled for other processes."""
        for label, worlds in self.worlds.items():
            if isinstance(worlds, FixedWorld):
                pickle_task(f"the world {label!r}", worlds)

    def run(self, job: Job) -> JobResult:
        """Run the trials of a job."""
        trials = [*job.trials]
        collector = TrialCollector(trials, kept_rounds(self.horizon, self.every), self.expected)
        prepared = prepare_trials(self.worlds[job.problem], self.horizon, self.seed, trials)
        for trial, (world, inputs) in zip(trials, prepared, strict=True):
            collector.add(self._run_trial(job, world, inputs, trial))
        return collector.result()

    def _run_trial(self, job: Job, world: World, inputs: TrialInputs | None, trial: int) -> Trial:
        policy = self.policies[job.policy]
        try:
            return run_trial(
                world,
                partial(policy.make, **self.policy_options(job.policy, trial)),
                self.horizon,
                self.seed,
                trial,
                observational=self.observational,
                expected=self.expected,
                inputs=inputs,
            )
        except USER_CODE_ERRORS as error:
            worlds = self.worlds[job.problem]
            is_custom_world = isinstance(worlds, FixedWorld) and not is_builtin(type(worlds.world))
            if isinstance(error, SystemExit) and not (is_custom_world or policy.is_custom):
                raise  # from a signal handler, which may end the program at any time
            message = f"{job.policy} on {job.problem}, trial {trial}: {describe_error(error)}"
            if user_code_location(error) is not None:
                raise UserCodeError(message) from error
            code = error.code if isinstance(error, DowiseError) else None
            raise DowiseError(message, code=code) from error


def _to_json(value: Any, label: str) -> Any:
    """Convert an option to JSON data, so that equal options have equal digests."""
    if isinstance(value, Mapping):
        return {str(key): _to_json(part, label) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(part, label) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return _to_json(value.tolist(), label)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Path):
        return str(value)
    raise DowiseError(
        f"option of {label!r}: {value!r} can't identify a run (expected numbers, strings, lists or "
        "mappings of them)",
        code="invalid-type",
    )


def _labelled_worlds(
    problems: Iterable[ProblemLike], world_options: WorldOptions | None
) -> Iterator[tuple[str, Worlds]]:
    labels: set[str] = set()
    for problem in problems:
        is_pair = isinstance(problem, tuple) and len(problem) == 2
        name, source = cast(Any, problem) if is_pair else (None, cast(Any, problem))
        worlds = resolve_worlds(source, world_options)
        label = str(name or worlds.label or f"problem {len(labels) + 1}")
        if label in labels:
            raise DowiseError(
                f'two problems are called {label!r}: use different names (name = "…" in a problem '
                "file), in Python pairs (label, problem or world)",
                code="duplicate-name",
            )
        labels.add(label)
        yield label, worlds


# -- expected regret -------------------------------------------------------------------------------


def has_expected_regret(worlds: Worlds) -> bool:
    """Return True if worlds are drawn from the prior of a belief, as `expected` requires."""
    return _why_not_expected(worlds) is None


def _why_not_expected(worlds: Worlds) -> str | None:
    """Return the reason why expected regret would not have the mean of the regret, if any."""
    if isinstance(worlds, FixedWorld):
        return "but this world has fixed CPTs: pass its problem, or leave expected out"
    if worlds.options.strong:
        return "but strong worlds have another prior: leave strong or expected out"
    if isinstance(worlds, ChordalWorlds):
        return None
    problem = worlds.problem
    if problem.hidden or problem.possible.bidirected_edges:
        return (
            "but with hidden causes worlds draw CPTs of hidden variables, which beliefs do not "
            "have (docs/hidden.md): leave expected out"
        )
    if problem.edge_priors and worlds.options.edges == "all":
        doubtful = ", ".join(problem.edge_priors)
        return f"but these have all doubtful edges ({doubtful}): draw the edges (edges='prior')"
    return None
