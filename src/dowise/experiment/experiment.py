"""A live experiment: ask which arm to play, play it, tell what was seen.

Every change is an event in a journal, and the state of the experiment is folded from that journal.
So nothing is lost when the program stops, and every past decision can be explained and derived
again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from dowise._core.validation import check_integer
from dowise.belief import Belief
from dowise.belief.evidence import Evidence
from dowise.errors import DowiseError, NotFoundError, suggestion
from dowise.experiment.ask import AskRequest, LiveDecision, decide_batch, find_answer
from dowise.experiment.audit import Audit, audit, parse_head
from dowise.experiment.base import ExperimentBase
from dowise.experiment.case import Case, CaseStatus
from dowise.experiment.config import DEFAULT_POLICY, ExperimentConfig
from dowise.experiment.evaluation import Evaluation
from dowise.experiment.evaluation.decision_log import TargetLike
from dowise.experiment.event import (
    DamagedEventError,
    Event,
    EventDraft,
    Head,
    TrackEvents,
    build_info,
    resolve_actor,
)
from dowise.experiment.explanation import Explanation
from dowise.experiment.history import POINTS, History
from dowise.experiment.journal import Journal
from dowise.experiment.record_import import (
    as_checked_records,
    check_readable,
    import_payload,
    refuse_repetition,
    warn_of_forbidden,
)
from dowise.experiment.record_usage import RecordUsage
from dowise.experiment.state import FORMAT
from dowise.experiment.status import Status
from dowise.experiment.storage import MemoryStorage, open_storage
from dowise.experiment.storage.base import HOW_TO_CREATE, WITHOUT_WAL, Storage
from dowise.experiment.tell import amend, tell, validate_reason, withdraw
from dowise.experiment.view import StateView, take_view
from dowise.policies.value_of_continuing import Continuing
from dowise.problem import Problem
from dowise.problem.problem import ArmLike, Context

MAX_NAME_LENGTH = 200  # characters
Store = str | Path | Storage


class Experiment(ExperimentBase):
    """A live experiment in a store.

    Create one with `create`, continue with `open`. Experiments are safe for threads, and any number
    of processes may have the same one open: each call first reads what others have written. What a
    call has recorded is durable when it returns.

    Parameters
    ----------
    journal : Journal
        The journal of the experiment; use `create` or `open` instead of the constructor.
    actor : str
        Name recorded with every event.

    Raises
    ------
    DowiseError
        By the methods, if an argument is invalid, or if the store can't be read or written.

    Examples
    --------
    >>> from dowise import Experiment
    >>> from dowise.experiment.storage import MemoryStorage
    >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
    >>> decision = experiment.ask()
    >>> experiment.tell(decision.id, {"Y": 1}).status
    'done'
    """

    def __init__(self, journal: Journal, actor: str) -> None:
        self._journal, self._actor = journal, actor

    def __repr__(self) -> str:
        return f"<Experiment {self.name} in {self._journal.storage}>"

    # -- creating and opening -----------------------------------------------------------------

    @classmethod
    def create(
        cls,
        store: Store,
        name: str,
        problem: Problem | str | Path,
        policy: str = DEFAULT_POLICY,
        options: Mapping[str, Any] | None = None,
        seed: int | None = None,
        *,
        learn_restricted: bool = True,
        records: Any = None,
        source: str | None = None,
        skip_bad: bool = False,
        actor: str | None = None,
        accept_clock: bool = False,
    ) -> Experiment:
        """Create an experiment; the store is created if it does not exist.

        Parameters
        ----------
        store : str, Path or Storage
            File name, URL (`sqlite:///ward.db`, `postgresql://…`) or a `Storage`.
        name : str
            Name of the experiment in its store.
        problem : Problem, str or Path
            The decision problem, the path of a problem file or the name of a built-in problem.
        policy : str, default "best"
            Name of the policy.
        options : mapping, optional
            Options of the policy, the prior among them. With "best" also `try_all`: play every
            arm once before the policy chooses; by default with at most twelve arms.
        seed : int, optional
            Random seed below 2**128; by default 128 random bits of the operating system, so that
            no arm can be predicted. It is stored in the journal.
        learn_restricted : bool, default True
            Learn from decisions for which some arms were not allowed.
        records : table, optional
            Past records to import, as in `import_records`. If they are refused, nothing is
            created.
        source : str, optional
            Where the records are from.
        skip_bad : bool, default False
            Skip bad rows of the records instead of refusing all of them.
        actor : str, optional
            Name recorded with every event; by default the user of the operating system.
        accept_clock : bool, default False
            Continue although the clock of this machine is behind the last event.

        Returns
        -------
        Experiment
            The new experiment.

        Raises
        ------
        ConflictError
            If the store has an experiment of this name.
        DowiseError
            If an argument is invalid.

        Examples
        --------
        >>> from dowise.experiment.storage import MemoryStorage
        >>> Experiment.create(MemoryStorage(), "ward", "task1", "ids", {"samples": 50}).policy
        'ids'
        """
        config = ExperimentConfig.from_user(problem, policy, options, learn_restricted)
        if seed is None:
            seed = secrets.randbits(128)
        else:
            seed = check_integer("seed", seed, 0, 2**128 - 1)
        name, actor = validate_name(name), resolve_actor(actor)
        imported = None
        if records is not None:
            imported = import_payload(
                as_checked_records(config.problem, records, None), source, skip_bad
            )
        created = {"format": FORMAT, "seed": str(seed), "maker": build_info(), **config.to_json()}
        with _open_store(store, create=True) as storage:
            journal = Journal(storage, name, accept_clock)
            with journal.transaction(actor, is_new=True) as tx:
                tx.append("created", created)
                if imported is not None:
                    tx.append("imported", imported)
            return cls(journal, actor)

    @classmethod
    def open(
        cls,
        store: Store,
        name: str | None = None,
        *,
        actor: str | None = None,
        accept_clock: bool = False,
    ) -> Experiment:
        """Open an existing experiment.

        A journal that was tampered with can be opened, for its `audit`; other calls raise.

        Parameters
        ----------
        store : str, Path or Storage
            File name, URL or a `Storage`, as in `create`.
        name : str, optional
            Name of the experiment; optional if the store has only one.
        actor : str, optional
            Name recorded with every event; by default the user of the operating system.
        accept_clock : bool, default False
            Continue although the clock of this machine is behind the last event.

        Returns
        -------
        Experiment
            The experiment.

        Raises
        ------
        NotFoundError
            If the store has no experiment of this name.
        DowiseError
            If the store can't be opened, or if a name is needed.

        Examples
        --------
        >>> from dowise.experiment.storage import MemoryStorage
        >>> store = MemoryStorage()
        >>> created = Experiment.create(store, "ward", "task1")
        >>> Experiment.open(store).name
        'ward'
        """
        with _open_store(store) as storage:
            name, actor = resolve_name(storage, name), resolve_actor(actor)
            journal = Journal(storage, name, accept_clock)
            with suppress(DamagedEventError):
                journal.read()
            return cls(journal, actor)

    def acting_as(self, actor: str) -> Experiment:
        """Return the same experiment with another actor.

        Nothing is read or learned again: any number of actors, in any threads, share one journal
        and its policy. Closing one of them closes all.

        Parameters
        ----------
        actor : str
            Name recorded with every event.

        Returns
        -------
        Experiment
            The experiment for this actor.

        Raises
        ------
        DowiseError
            If the name is empty, too long or not printable.

        Examples
        --------
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", actor="ann")
        >>> decision = experiment.acting_as("bob").ask()
        >>> [event.actor for event in experiment.events()]
        ['ann', 'bob']
        """
        return type(self)(self._journal, resolve_actor(actor))

    def close(self) -> None:
        self._journal.storage.close()

    # -- asking -------------------------------------------------------------------------------

    def ask(
        self,
        context: Context = None,
        request_id: str | None = None,
        allowed: Iterable[ArmLike] | None = None,
        forbid: Iterable[ArmLike] | None = None,
    ) -> LiveDecision:
        return self.ask_many([context], request_id, allowed, forbid)[0]

    def ask_many(
        self,
        contexts: Sequence[Context],
        request_id: str | None = None,
        allowed: Iterable[ArmLike] | None = None,
        forbid: Iterable[ArmLike] | None = None,
    ) -> list[LiveDecision]:
        request = AskRequest.from_user(contexts, request_id, allowed, forbid)
        journal = self._journal
        while True:
            with journal.transaction(self._actor) as tx:
                if answered := find_answer(tx.state, request, journal.event):
                    return answered
                if journal.compiled is tx.state.config:
                    return decide_batch(tx, request)
            # Outside the transaction, since compiling takes seconds; then try again, because the
            # configuration may have changed in the meantime.
            journal.compile_policy()

    def warm_up(self) -> None:
        """Compile and load what asking, telling and queries need, so that no user waits for it.

        Plays a round in a temporary experiment with the same configuration.

        Examples
        --------
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> experiment.warm_up()
        >>> len(experiment.records())
        0
        """
        self._journal.compile_policy()
        config, store = self.view().config, MemoryStorage()
        _play_round(
            Experiment.create(store, self.name, config.problem, config.policy, config.options, 0)
        )

    # -- telling ------------------------------------------------------------------------------

    def tell(
        self,
        id: int,  # noqa: A002 (the name in the documented interface)
        values: Mapping[str, object] | None = None,
        *,
        played: ArmLike | None = None,
        unrelated: bool = False,
    ) -> Case:
        return self._change(id, partial(tell, values=values, played=played, unrelated=unrelated))

    def amend(
        self,
        id: int,  # noqa: A002
        values: Mapping[str, object] | None = None,
        reason: str = "",
        *,
        played: ArmLike | None = None,
        unrelated: bool = False,
    ) -> Case:
        return self._change(
            id, partial(amend, values=values, reason=reason, played=played, unrelated=unrelated)
        )

    def withdraw(self, id: int, reason: str = "") -> Case:  # noqa: A002
        return self._change(id, lambda case, _: withdraw(case, reason))

    def _change(self, number: int, draft: Callable[[Case, Problem], EventDraft | None]) -> Case:
        """Append the event that `draft` returns for a decision, if any; return the decision."""
        with self._journal.transaction(self._actor) as tx:
            before = tx.state.case(number)
            event = draft(before, tx.state.config.problem)
            if event is None:
                return before.copy()
            tx.append(*event)
            after = tx.state.cases[before.id].copy()
            after.previous, after.changed = before.copy(), True
            return after

    # -- changing the experiment itself -------------------------------------------------------

    def revise(
        self,
        problem: Problem | str | Path | None = None,
        policy: str | None = None,
        options: Mapping[str, Any] | None = None,
        reason: str = "",
        *,
        learn_restricted: bool | None = None,
    ) -> bool:
        reason = validate_reason(reason, "revise an experiment")
        with self._journal.transaction(self._actor) as tx:
            state = tx.state
            config = state.config.with_changes(
                problem=problem, policy=policy, options=options, learn_restricted=learn_restricted
            )
            if config.to_json() == state.config.to_json():
                return False
            check_readable(state, config.problem, self._journal.read_import)
            tx.append("revised", {**config.to_json(), "reason": reason})
            pending = [*state.pending.values()]
        warn_of_forbidden(pending, config.problem)
        return True

    def import_records(
        self,
        frame: Any,
        arm: ArmLike | None = None,
        *,
        source: str | None = None,
        skip_bad: bool = False,
        again: bool = False,
    ) -> int:
        config = self.view().config
        checked = as_checked_records(config.problem, frame, arm)
        payload = import_payload(checked, source, skip_bad)
        if payload is None:
            return 0
        with self._journal.transaction(self._actor) as tx:
            if tx.state.config.to_json() != config.to_json():
                raise DowiseError(
                    "the experiment was revised during the import: import the records again",
                    code="conflict",
                )
            refuse_repetition(tx.state, payload, checked, again)
            tx.append("imported", payload)
        return int(payload["records"])

    def erase(self, id: int, reason: str = "") -> bool:  # noqa: A002
        return self._journal.erase(id, self._actor, validate_reason(reason, "erase a decision"))

    # -- queries ------------------------------------------------------------------------------

    def view(self, recent: int = 0) -> StateView:
        """Return an immutable view of the experiment, from one read of the store.

        Each query below takes a view for itself. Take one explicitly if several results should
        belong to the same moment.

        Parameters
        ----------
        recent : int, default 0
            Number of last events to read along, for `StateView.events`.

        Returns
        -------
        StateView
            The view.

        Raises
        ------
        DowiseError
            If the store can't be read.

        Examples
        --------
        >>> from dowise.experiment.storage import MemoryStorage
        >>> view = Experiment.create(MemoryStorage(), "ward", "task1").view()
        >>> view.head.number, view.counts()["asked"]
        (1, 0)
        """
        return take_view(self._journal, recent)

    @property
    def name(self) -> str:
        return self._journal.name

    @property
    def store(self) -> str:
        return str(self._journal.storage)

    @property
    def is_one_of_many(self) -> bool:
        return len(self._journal.storage.experiments()) > 1

    @property
    def problem(self) -> Problem:
        return self.view().problem

    @property
    def policy(self) -> str:
        return self.view().policy

    @property
    def options(self) -> dict[str, Any]:
        return self.view().options

    @property
    def learn_restricted(self) -> bool:
        """True if the policy learns from decisions for which some arms were not allowed."""
        return self.view().learn_restricted

    @property
    def head(self) -> Head:
        return self.view().head

    @property
    def belief(self) -> Belief:
        return self.view().belief

    def counts(self) -> dict[str, int]:
        """Return the number of decisions of each kind.

        Returns
        -------
        dict of str to int
            Number of all decisions ("asked"), of those that are "pending", "done", "withdrawn" and
            "erased", and of those that were "restricted" or "played_otherwise".

        Examples
        --------
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> decision = experiment.ask()
        >>> counts = experiment.counts()
        >>> counts["asked"], counts["pending"], counts["done"]
        (1, 1, 0)
        """
        return self.view().counts()

    def pending(self) -> tuple[Case, ...]:
        return self.view().pending()

    def records(self) -> tuple[Case, ...]:
        return self.view().records()

    def decisions(
        self, after: int = 0, limit: int | None = None, status: CaseStatus | None = None
    ) -> tuple[Case, ...]:
        """Return decisions in the order of their numbers.

        Parameters
        ----------
        after : int, default 0
            Return only decisions with a larger number.
        limit : int, optional
            Maximum number of decisions; all by default.
        status : str, optional
            Return only decisions that are "pending", "done", "withdrawn" or "erased".

        Returns
        -------
        tuple of Case
            The decisions.

        Examples
        --------
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> decisions = experiment.ask_many([None] * 3)
        >>> [case.id for case in experiment.decisions(after=1, limit=1)]
        [2]
        """
        return self.view().decisions(after, limit, status)

    def case(self, id: int) -> Case:  # noqa: A002
        return self.view().case(id)

    def decision(self, id: int) -> LiveDecision:  # noqa: A002
        return self.view().decision(id)

    def idle(self, id: int) -> list[str]:  # noqa: A002
        return self.view().idle(id)

    def events(self, after: int = 0, upto: int | None = None) -> list[Event]:
        return self._journal.storage.read(self.name, after, upto)

    def status(
        self, context: Context = None, evidence: bool | None = None, rounds: int | None = None
    ) -> Status:
        return self.view().status(context, evidence, rounds)

    def judged(self, evidence: bool | None = None) -> tuple[Belief, Evidence | None, str]:
        """Return the belief and the evidence against the graph, or why that was not computed.

        Parameters
        ----------
        evidence : bool, optional
            As in `status`.

        Returns
        -------
        belief : Belief
            A copy of the belief.
        evidence : Evidence or None
            The evidence; None if it was not computed.
        note : str
            The reason why it was not computed, or an empty string.

        Raises
        ------
        DowiseError
            If the evidence is requested and can't be computed.

        Examples
        --------
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> belief, evidence, note = experiment.judged(evidence=False)
        >>> evidence, note
        (None, '')
        """
        return self.view().judged(evidence)

    def value_of_continuing(self, rounds: int, worlds: int | None = None) -> Continuing:
        return self.view().value_of_continuing(rounds, worlds)

    def counted(self) -> RecordUsage:
        return self.view().counted()

    def history(
        self, context: Context = None, points: int = POINTS, track: TrackEvents | None = None
    ) -> History:
        return self.view().history(context, points, track)

    def explain(self, id: int, track: TrackEvents | None = None) -> Explanation:  # noqa: A002
        return self.view().explain(id, track)

    def evaluate(
        self,
        policy: TargetLike,
        options: Mapping[str, Any] | None = None,
        level: float = 0.9,
        track: TrackEvents | None = None,
    ) -> Evaluation:
        return self.view().evaluate(policy, options, level, track)

    def table(self) -> dict[str, list[Any]]:
        return self.view().table()

    def audit(self, head: object = None, track: TrackEvents | None = None) -> Audit:
        return audit(self._journal.storage, self.name, parse_head(head), track)


# -- opening ------------------------------------------------------------------------------------


@contextmanager
def _open_store(store: Store, create: bool = False) -> Iterator[Storage]:
    """Open a store, and close it if the block fails."""
    storage = open_storage(store, create=create)
    try:
        yield storage
    except BaseException:
        if storage is not store:
            storage.close()
        raise


def resolve_name(storage: Storage, name: str | None) -> str:
    """Return the name of an experiment in a store; it is optional if there is only one."""
    names = storage.experiments()
    if not names:
        is_file = not str(storage).startswith("postgresql")
        raise DowiseError(
            f"{storage} has no experiment: create one ({HOW_TO_CREATE})"
            f"{f'; or {WITHOUT_WAL}' if is_file else ''}",
            code="not-found",
        )
    if name is None and len(names) > 1:
        raise DowiseError(
            f"{storage} has several experiments, so a name is needed: {', '.join(names)}",
            code="missing-value",
        )
    if name is not None and name not in names:
        raise NotFoundError(
            f"{storage} has no experiment {name!r}{suggestion(str(name), names)}: it has "
            f"{', '.join(names)}",
            code="unknown-experiment",
        )
    return names[0] if name is None else name


def validate_name(name: object) -> str:
    """Validate the name of an experiment, and strip it."""
    if (
        not isinstance(name, str)
        or not name.strip()
        or not name.isprintable()
        or len(name) > MAX_NAME_LENGTH
    ):
        raise DowiseError(
            f"{name!r:.80} is not a name for an experiment: use 1 to {MAX_NAME_LENGTH} printable "
            "characters",
            code="invalid-input",
        )
    return name.strip()


def _play_round(experiment: Experiment) -> None:
    """Call the verbs of a new experiment once."""
    problem = experiment.problem
    first = {name: domain[0] for name, domain in problem.domains.items()}
    decision = experiment.ask({name: first[name] for name in problem.context})
    settled = (*decision.context, *decision.arm, problem.reward)
    if values := {name: label for name, label in first.items() if name not in settled}:
        experiment.tell(decision.id, values)
    experiment.tell(decision.id, {problem.reward: first[problem.reward]})
    experiment.amend(decision.id, {problem.reward: problem.domains[problem.reward][-1]}, "warm-up")
    experiment.import_records({name: [label] for name, label in first.items()})
    experiment.ask_many([decision.context] * 2)
    with suppress(DowiseError):  # a graph may be too large for some queries
        experiment.status()
        experiment.history(points=2)
        experiment.explain(decision.id)
        experiment.value_of_continuing(2, worlds=4)
