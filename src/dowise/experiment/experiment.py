"""A live experiment: ask which arm to play, do it, tell what was seen.

Everything that is said goes into a journal, event by event, and what is known is the fold of that
journal. So nothing is lost when the program stops, and every past decision can be explained and
derived again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from dowise._core.validation import check_integer
from dowise.belief import Belief
from dowise.belief.evidence import Evidence
from dowise.errors import ConflictError, DowiseError, NotFoundError, suggestion
from dowise.experiment import tell as telling
from dowise.experiment.advice import RecordUsage
from dowise.experiment.ask import (
    AskRequest,
    LiveDecision,
    as_asked,
    decide,
    listed_arms,
    listed_contexts,
    validate_request_id,
)
from dowise.experiment.audit import Audit, audit, head_of
from dowise.experiment.base import ExperimentBase
from dowise.experiment.case import Case
from dowise.experiment.case import Status as CaseStatus
from dowise.experiment.config import DEFAULT_POLICY, ExperimentConfig
from dowise.experiment.evaluation import Evaluation
from dowise.experiment.evaluation.replay import TargetLike
from dowise.experiment.event import DamagedEventError, Event, Head, Track, build_info, resolve_actor
from dowise.experiment.explanation import Explanation
from dowise.experiment.history import POINTS, History
from dowise.experiment.journal import Journal, prepare_snapshot
from dowise.experiment.records import (
    check_readable,
    checked_import,
    checked_rows,
    refuse_twice,
    warn_of_forbidden,
)
from dowise.experiment.state import FORMAT, ExperimentState
from dowise.experiment.status import Status
from dowise.experiment.storage import MemoryStorage, open_storage
from dowise.experiment.storage.base import HOW_TO_MAKE, WITHOUT_WAL, Storage
from dowise.experiment.view import StateView, take_view
from dowise.policies.value_of_continuing import Continuing
from dowise.problem import Problem
from dowise.problem.problem import ArmLike, Context


def play_a_round(experiment: Experiment) -> None:
    """Ask, tell in two pieces, amend, import, ask for several and look, where nothing was yet."""
    problem = experiment.problem
    first = {name: domain[0] for name, domain in problem.domains.items()}
    asked = experiment.ask({name: first[name] for name in problem.context})
    seen = {
        name: label
        for name, label in first.items()
        if name not in (*asked.context, *asked.arm, problem.reward)
    }
    if seen:
        experiment.tell(asked.id, seen)
    experiment.tell(asked.id, {problem.reward: first[problem.reward]})
    experiment.amend(asked.id, {problem.reward: problem.domains[problem.reward][-1]}, "a try")
    experiment.import_records({name: [label] for name, label in first.items()})
    experiment.ask_many([asked.context] * 2)
    with suppress(DowiseError):  # of a graph that is too large for some look, the others serve
        experiment.status()
        experiment.history(points=2)
        experiment.explain(asked.id)
        experiment.value_of_continuing(2, worlds=4)


Store = str | Path | Storage


@contextmanager
def opened(store: Store, create: bool = False) -> Iterator[Storage]:
    """Open a store, and close it again if the block fails."""
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
            f"{storage} holds no experiment: make one ({HOW_TO_MAKE})"
            f"{f'; or {WITHOUT_WAL}' if is_file else ''}"
        )
    if name is None and len(names) > 1:
        raise DowiseError(f"{storage} holds {', '.join(names)}: say which (`name`)")
    if name is not None and name not in names:
        raise NotFoundError(
            f"{storage} has no experiment {name!r}{suggestion(str(name), names)}: it holds "
            f"{', '.join(names)}"
        )
    return names[0] if name is None else name


def validate_name(name: object) -> str:
    """Validate the name of an experiment, and strip it."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > 200:
        raise DowiseError(f"{name!r:.80} is no name for an experiment: use a short text")
    return name.strip()


class Experiment(ExperimentBase):
    """An experiment in a store; make one with `create`, go on with `open`.

    `store` is a file name, a URL (`sqlite:///ward.db`, `postgresql://…`) or a `Storage`. Safe for
    threads, and any number of processes may have the same experiment open: each call first takes in
    what others have written. What a call has said is durable when it returns.
    """

    def __init__(self, journal: Journal, actor: str) -> None:
        self._journal, self._actor = journal, actor

    def __repr__(self) -> str:
        return f"<Experiment {self.name} in {self._journal.storage}>"

    # -- making and opening -------------------------------------------------------------------

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
        """A new experiment; the store is made if it is not there.

        `options` are the policy's, with the prior among them. The seed is 128 bits of the system's
        where none is given, so that nobody can foresee an arm; it is kept in the journal. With
        `learn_restricted=False` nothing is learned from decisions among fewer than all arms.
        `records` are past ones to begin with, as `import_records` takes them: where they are
        refused nothing is made.
        """
        config = ExperimentConfig.from_user(problem, policy, options, learn_restricted)
        chosen = (
            secrets.randbits(128) if seed is None else check_integer("seed", seed, 0, 2**128 - 1)
        )
        checked, who = validate_name(name), resolve_actor(actor)
        past = None
        if records is not None:
            past = checked_import(checked_rows(config.problem, records, None), source, skip_bad)
        page = {"format": FORMAT, "seed": str(chosen), "maker": build_info(), **config.to_json()}
        with opened(store, create=True) as storage:
            journal = Journal(storage, checked, accept_clock)
            with journal.transaction(who, is_new=True) as step:
                step.write("created", page)
                if past is not None:
                    step.write("imported", past)
            return cls(journal, who)

    @classmethod
    def open(
        cls,
        store: Store,
        name: str | None = None,
        *,
        actor: str | None = None,
        accept_clock: bool = False,
    ) -> Experiment:
        """Go on with an experiment; the name may be left out where the store has only one.

        `accept_clock` goes on although this machine's clock is behind the last event. A journal
        that was changed can be opened, for its `audit`; whatever else is asked of it is an error.
        """
        with opened(store) as storage:
            chosen, who = resolve_name(storage, name), resolve_actor(actor)
            journal = Journal(storage, chosen, accept_clock)
            with suppress(DamagedEventError):
                journal.state()
            return cls(journal, who)

    def acting_as(self, actor: str) -> Experiment:
        """The same experiment with another actor in what it writes.

        Nothing is read or learned again: any number of actors share what is known, each perhaps in
        a thread of its own. To close one is to close all of them.
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
        request = validate_request_id(request_id)
        may, never = listed_arms("allowed", allowed), listed_arms("forbid", forbid)
        contexts, journal = listed_contexts(contexts), self._journal
        with journal.turn():
            journal.warm_up()
            with journal.transaction(self._actor) as step:
                state, draft = step.state, None
                events = self._answered(state, request, contexts, may, never)
                if not events:
                    draft, problem = prepare_snapshot(state), state.config.problem
                    questions = [AskRequest(problem, c, may, never) for c in contexts]
                    for before, question in enumerate(questions):
                        page = decide(state, step.learner(), question, before)
                        page = as_asked(page, state, question, request, len(questions))
                        events.append(step.write("asked", page))
                asked = [
                    LiveDecision(event, state.config_at(event.number).problem) for event in events
                ]
        journal.keep(draft)
        return asked

    def _answered(
        self,
        state: ExperimentState,
        request: str | None,
        contexts: Sequence[Context],
        *restriction: Any,
    ) -> list[Event]:
        """The decisions that a request had before, if it had any."""
        ids = [] if request is None else state.requests.get(request, [])
        if not ids:
            return []
        events = [self._journal.event(state.cases[i].event) for i in ids]
        if events[0].payload["batch"] > len(ids):
            raise DowiseError(
                f"of the request {request!r} some decisions were erased, so it can't be repeated: "
                f"{', '.join(map(str, ids))} are left"
            )
        problem = state.config_at(events[0].number).problem
        asked = [AskRequest(problem, context, *restriction) for context in contexts]
        if len(ids) != len(asked):
            other = f"for {len(ids)} at once, and now for {len(asked)}"
        elif not all(
            one.is_that_of(event.payload) for one, event in zip(asked, events, strict=True)
        ):
            other = "with another context or restriction"
        else:
            return events
        raise ConflictError(
            f"the request {request!r} was made before, as decision {', '.join(map(str, ids))}, "
            f"{other}: another question needs another `request_id`"
        )

    def warm_up(self) -> None:
        """Compile and load what asking, telling and looking need, before anybody has to wait.

        A round is played in an experiment of the same config that nobody keeps.
        """
        with self._journal.turn():
            self._journal.warm_up()
        config, store = self.view().config, MemoryStorage()
        play_a_round(
            Experiment.create(store, self.name, config.problem, config.policy, config.options, 0)
        )

    # -- telling ------------------------------------------------------------------------------

    def tell(
        self,
        id: int,  # noqa: A002 (what decisions call it)
        values: Mapping[str, object] | None = None,
        *,
        played: ArmLike | None = None,
        unrelated: bool = False,
    ) -> Case:
        return self._say(
            "told", id, lambda case, p: telling.told(case, p, values, played, unrelated)
        )

    def amend(
        self,
        id: int,  # noqa: A002
        values: Mapping[str, object] | None = None,
        reason: str = "",
        *,
        played: ArmLike | None = None,
        unrelated: bool = False,
    ) -> Case:
        return self._say(
            "amended",
            id,
            lambda case, p: telling.amended(case, p, values, reason, played, unrelated),
        )

    def withdraw(self, id: int, reason: str = "") -> Case:  # noqa: A002
        return self._say("withdrawn", id, lambda case, _: telling.withdrawn(case, reason))

    def _say(
        self, kind: str, number: int, body: Callable[[Case, Problem], dict[str, Any] | None]
    ) -> Case:
        with self._journal.transaction(self._actor) as step:
            state = step.state
            before = state.case(number)
            page = body(before, state.config.problem)
            if page is None:
                return before.copy()
            step.write(kind, page)
            return replace(state.case(number).copy(), previous=before.copy(), changed=True)

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
        why = telling.checked_reason(reason, "revise")
        with self._journal.transaction(self._actor) as step:
            state = step.state
            config = state.config.with_changes(
                problem=problem, policy=policy, options=options, learn_restricted=learn_restricted
            )
            if config.to_json() == state.config.to_json():
                return False
            check_readable(state, config.problem, self._journal.columns)
            step.write("revised", {**config.to_json(), "reason": why})
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
        found = checked_rows(config.problem, frame, arm)
        page = checked_import(found, source, skip_bad)
        if page is None:
            return 0
        with self._journal.transaction(self._actor) as step:
            if step.state.config.to_json() != config.to_json():
                raise DowiseError("the experiment was revised meanwhile: import the records again")
            refuse_twice(step.state, page, found, again)
            step.write("imported", page)
        return int(page["records"])

    def erase(self, id: int, reason: str = "") -> bool:  # noqa: A002
        return self._journal.erase(id, self._actor, telling.checked_reason(reason, "erase"))

    # -- queries ------------------------------------------------------------------------------

    def view(self, recent: int = 0) -> StateView:
        """Return an immutable view of the experiment, from one read of the store.

        Every query below is one of a view that is taken for it. Take a view yourself where several
        answers should be of the same moment.

        Parameters
        ----------
        recent
            The number of last events to read along, for `StateView.events`.
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
        """True if decisions among fewer than all arms are learned from, as of now."""
        return self.view().learn_restricted

    @property
    def head(self) -> Head:
        return self.view().head

    @property
    def belief(self) -> Belief:
        return self.view().belief

    def counts(self) -> dict[str, int]:
        """Return the number of decisions of each kind."""
        return self.view().counts()

    def pending(self) -> tuple[Case, ...]:
        return self.view().pending()

    def records(self) -> tuple[Case, ...]:
        return self.view().records()

    def decisions(
        self, after: int = 0, limit: int | None = None, status: CaseStatus | None = None
    ) -> tuple[Case, ...]:
        """Return at most `limit` decisions with a number above `after`, of one status if given."""
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
        """Return the belief and the evidence against the graph, or why that was not computed."""
        return self.view().judged(evidence)

    def value_of_continuing(self, rounds: int, worlds: int | None = None) -> Continuing:
        return self.view().value_of_continuing(rounds, worlds)

    def counted(self) -> RecordUsage:
        return self.view().counted()

    def history(
        self, context: Context = None, points: int = POINTS, track: Track | None = None
    ) -> History:
        return self.view().history(context, points, track)

    def explain(self, id: int, track: Track | None = None) -> Explanation:  # noqa: A002
        return self.view().explain(id, track)

    def evaluate(
        self,
        policy: TargetLike,
        options: Mapping[str, Any] | None = None,
        level: float = 0.9,
        track: Track | None = None,
    ) -> Evaluation:
        return self.view().evaluate(policy, options, level, track)

    def table(self) -> dict[str, list[Any]]:
        return self.view().table()

    def audit(self, head: object = None, track: Track | None = None) -> Audit:
        return audit(self._journal.storage, self.name, head_of(head), track)
