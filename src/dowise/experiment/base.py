"""The verbs of an experiment, declared once for `Experiment`, `Client` and views of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dowise.errors import import_extra
from dowise.experiment.history import POINTS, History
from dowise.experiment.record_export import write_table
from dowise.plotting.figures import check_path
from dowise.problem import Problem
from dowise.problem.problem import ArmLike, Context

if TYPE_CHECKING:
    from dowise.belief import Belief
    from dowise.experiment.ask import LiveDecision
    from dowise.experiment.audit import Audit
    from dowise.experiment.case import Case
    from dowise.experiment.evaluation import Evaluation
    from dowise.experiment.evaluation.decision_log import TargetLike
    from dowise.experiment.event import Event, Head, TrackEvents
    from dowise.experiment.explanation import Explanation
    from dowise.experiment.record_usage import RecordUsage
    from dowise.experiment.status import Status
    from dowise.policies.value_of_continuing import Continuing


class ExperimentQueries(ABC):
    """Queries of an experiment: nothing here changes it."""

    # -- properties ---------------------------------------------------------------------------

    @property
    @abstractmethod
    def name(self) -> str:
        """The experiment's name in its store."""

    @property
    @abstractmethod
    def problem(self) -> Problem:
        """The decision problem."""

    @property
    @abstractmethod
    def policy(self) -> str:
        """The name of the policy that decides."""

    @property
    @abstractmethod
    def options(self) -> dict[str, Any]:
        """Options of the policy, the prior among them."""

    @property
    @abstractmethod
    def head(self) -> Head:
        """Number and hash of the last event.

        If `str(head)` is kept elsewhere, `audit` can tell whether the journal was cut or rewritten.
        """

    @property
    @abstractmethod
    def belief(self) -> Belief:
        """A copy of the belief about the problem, whatever the policy is."""

    # -- decisions ----------------------------------------------------------------------------

    @abstractmethod
    def pending(self) -> tuple[Case, ...]:
        """Return the decisions whose reward has not been told yet, oldest first.

        Returns
        -------
        tuple of Case
            The pending decisions.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> decision = experiment.ask()
        >>> [case.id for case in experiment.pending()]
        [1]
        """

    @abstractmethod
    def records(self) -> tuple[Case, ...]:
        """Return all decisions with the values that were told.

        Returns
        -------
        tuple of Case
            All decisions, oldest first.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> case = experiment.tell(experiment.ask().id, {"Y": 1})
        >>> [case.values for case in experiment.records()]
        [{'Y': '1'}]
        """

    @abstractmethod
    def case(self, id: int) -> Case:  # noqa: A002 (what decisions call it)
        """Return one decision with the values that were told.

        Parameters
        ----------
        id : int
            Number of the decision.

        Returns
        -------
        Case
            The decision.

        Raises
        ------
        NotFoundError
            If there is no decision with this number.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> decision = experiment.ask()
        >>> experiment.case(decision.id).status
        'pending'
        """

    @abstractmethod
    def decision(self, id: int) -> LiveDecision:  # noqa: A002
        """Return one decision as it was made: the arm, all probabilities, and the reason.

        Parameters
        ----------
        id : int
            Number of the decision.

        Returns
        -------
        LiveDecision
            The decision, as `ask` returned it.

        Raises
        ------
        NotFoundError
            If there is no decision with this number, or it was erased.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> decision = experiment.ask()
        >>> experiment.decision(decision.id).arm == decision.arm
        True
        """

    @abstractmethod
    def idle(self, id: int) -> list[str]:  # noqa: A002
        """Return a sentence for each value of a decision that does not count, with the reason.

        Parameters
        ----------
        id : int
            Number of the decision.

        Returns
        -------
        list of str
            The sentences; empty if all values count.

        Raises
        ------
        NotFoundError
            If there is no decision with this number.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> case = experiment.tell(experiment.ask().id, {"Y": 1})
        >>> experiment.idle(case.id)
        ['Y does not count yet for the graph: it depends on Z, which was not told']
        """

    @abstractmethod
    def events(self, after: int = 0, upto: int | None = None) -> list[Event]:
        """Return the events of the journal with numbers above `after`, up to `upto`.

        Over HTTP only admins see the seed and the salts, without which no hash can be verified.

        Parameters
        ----------
        after : int, default 0
            Return only events with a larger number.
        upto : int, optional
            Number of the last event to return; by default the last of the journal.

        Returns
        -------
        list of Event
            The events, oldest first.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> decision = experiment.ask()
        >>> [event.kind for event in experiment.events()]
        ['created', 'asked']
        """

    # -- results ------------------------------------------------------------------------------

    @abstractmethod
    def status(
        self, context: Context = None, evidence: bool | None = None, rounds: int | None = None
    ) -> Status:
        """Return the expected reward of each arm, its uncertainty, and the pending decisions.

        Parameters
        ----------
        context : mapping, optional
            Context to summarize; by default all of them, or the most frequent ones of many.
        evidence : bool, optional
            True adds the evidence against the graph, False leaves it out. By default it is added
            unless that would take more than about a second; a note says so then.
        rounds : int, optional
            If specified, also estimate the value of this number of further rounds.

        Returns
        -------
        Status
            The status; `str(status)` is a readable summary.

        Raises
        ------
        DowiseError
            If an argument is invalid, or if the evidence is requested and can't be computed.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> status = experiment.status(evidence=False)
        >>> status.contexts[0].mean.round(2).tolist()
        [0.5, 0.5, 0.5]
        """

    @abstractmethod
    def value_of_continuing(self, rounds: int, worlds: int | None = None) -> Continuing:
        """Estimate the gain of more rounds over always playing the arm that looks best now.

        The estimate is an average over all contexts, with the frequencies that the belief expects.
        `dowise.policies.value_of_continuing` describes the method.

        Parameters
        ----------
        rounds : int
            Number of rounds to continue for.
        worlds : int, optional
            Number of worlds to draw; by default as many as can be drawn in a second or two.

        Returns
        -------
        Continuing
            The value, with its standard error and an upper bound.

        Raises
        ------
        DowiseError
            If an argument is invalid, or if the belief is not a posterior of the graph.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> continuing = experiment.value_of_continuing(2, worlds=4)
        >>> continuing.rounds, continuing.worlds
        (2, 4)
        """

    @abstractmethod
    def counted(self) -> RecordUsage:
        """Return how many past records the policy learns from, and why not from the others.

        Returns
        -------
        RecordUsage
            Numbers of records, and of those that are left out, by reason.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> imported = experiment.import_records({name: [0, 1, 1] for name in "XYZ"})
        >>> usage = experiment.counted()
        >>> usage.all, usage.used
        (3, 3)
        """

    @abstractmethod
    def history(
        self, context: Context = None, points: int = POINTS, track: TrackEvents | None = None
    ) -> History:
        """Return the uncertainty of the experiment at some points of its journal.

        Parameters
        ----------
        context : mapping, optional
            Context to summarize; by default the four most frequent ones.
        points : int, default 30
            Number of points.
        track : callable, optional
            Takes the events and their number, returns the events, and may show progress.

        Returns
        -------
        History
            Arrays with a row for each point.

        Raises
        ------
        DowiseError
            If the context or the number of points is invalid.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> decision = experiment.ask()
        >>> experiment.history(points=2).best.shape  # points, contexts, arms
        (2, 1, 3)
        """

    @abstractmethod
    def explain(self, id: int, track: TrackEvents | None = None) -> Explanation:  # noqa: A002
        """Return what was known when a decision was made, and the reason for its arm.

        Parameters
        ----------
        id : int
            Number of the decision.
        track : callable, optional
            As in `history`.

        Returns
        -------
        Explanation
            The explanation; `str(explanation)` is a readable summary.

        Raises
        ------
        NotFoundError
            If there is no decision with this number, or it was erased.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> explanation = experiment.explain(experiment.ask().id)
        >>> explanation.records, explanation.is_complete
        (0, True)
        """

    @abstractmethod
    def evaluate(
        self,
        policy: TargetLike,
        options: Mapping[str, Any] | None = None,
        level: float = 0.9,
        track: TrackEvents | None = None,
    ) -> Evaluation:
        """Estimate what another policy, or a fixed arm, would have earned on the same decisions.

        Parameters
        ----------
        policy : str, Intervention or mapping
            Name of a policy, an arm such as "do(X=1)", or a mapping from contexts to arms.
        options : mapping, optional
            Options of a named policy.
        level : float, default 0.9
            Confidence level of the intervals.
        track : callable, optional
            As in `history`.

        Returns
        -------
        Evaluation
            Estimates with confidence intervals.

        Raises
        ------
        DowiseError
            If an argument is invalid, or if there is no decision to evaluate.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> case = experiment.tell(experiment.ask().id, {"Y": 1})
        >>> evaluation = experiment.evaluate("do(X=1)")
        >>> evaluation.decisions, evaluation.earned
        (1, 1.0)
        """

    @abstractmethod
    def table(self) -> dict[str, list[Any]]:
        """Return all decisions by column, as they are exported (`record_export`).

        Returns
        -------
        dict of str to list
            The values of each column, a row for each decision.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> case = experiment.tell(experiment.ask().id, {"Y": 1})
        >>> table = experiment.table()
        >>> table["id"], table["status"], table["Y"]
        ([1], ['done'], ['1'])
        """

    def frame(self) -> Any:
        """Return all decisions as a pandas DataFrame, with the columns of `table`.

        Returns
        -------
        pandas.DataFrame
            The table, a row for each decision.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> case = experiment.tell(experiment.ask().id, {"Y": 1})
        >>> experiment.frame()["status"].tolist()
        ['done']
        """
        pandas = import_extra("pandas", "simulate", "a table")
        return pandas.DataFrame(self.table())

    def export(self, path: str | Path) -> int:
        """Write all decisions to a .csv or .parquet file, and return the number of rows.

        Parameters
        ----------
        path : str or Path
            File name; its suffix determines the format. An earlier export is overwritten.

        Returns
        -------
        int
            Number of rows.

        Raises
        ------
        DowiseError
            If the suffix is unknown, or if the file can't be written or is not an earlier export.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> decision = experiment.ask()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     experiment.export(Path(folder) / "ward.csv")
        1
        """
        return write_table(self.table(), path)

    def figure(
        self,
        path: str | Path,
        context: Context = None,
        tolerance: float | None = None,
        track: TrackEvents | None = None,
    ) -> None:
        """Draw the status of the experiment, and its history, to a .png, .svg or .pdf file.

        Parameters
        ----------
        path : str or Path
            File name; its suffix determines the format.
        context : mapping, optional
            Context to draw; by default all of them.
        tolerance : float, optional
            Negligible loss per round, drawn as a line.
        track : callable, optional
            As in `history`.

        Raises
        ------
        DowiseError
            If the file can't be written, or if an argument is invalid.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "ward.svg"
        ...     experiment.figure(path)
        ...     path.exists()
        True
        """
        from dowise.experiment.plots import draw_status, status_chart

        check_path(path)
        status = self.status(context, evidence=False)
        past = self.history(context, track=track)
        draw_status(status_chart(status, past, self.records(), tolerance), path)


class ExperimentBase(ExperimentQueries):
    """An experiment that can be asked and told, wherever it is stored."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Close files and connections; later calls open them again.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> experiment.close()
        >>> experiment.ask().id
        1
        """

    @property
    @abstractmethod
    def store(self) -> str:
        """Location of the experiment, without a password."""

    @property
    @abstractmethod
    def is_one_of_many(self) -> bool:
        """True if the store holds other experiments too, so that a name is needed to open one."""

    @abstractmethod
    def ask(
        self,
        context: Context = None,
        request_id: str | None = None,
        allowed: Iterable[ArmLike] | None = None,
        forbid: Iterable[ArmLike] | None = None,
    ) -> LiveDecision:
        """Decide which arm to play; the decision is pending until its reward is told.

        Learning from restricted decisions is biased if the reason for the restriction affects the
        outcome and is not part of the context.

        Parameters
        ----------
        context : mapping, optional
            Value of every context variable.
        request_id : str, optional
            Id with which the call can be repeated, for example after a lost connection: it returns
            the same decision again.
        allowed : iterable of arms, optional
            The arms to choose from; by default all of them.
        forbid : iterable of arms, optional
            Forbidden settings, such as "do(X=1)"; excludes all arms that make these settings.

        Returns
        -------
        LiveDecision
            The arm to play, its probability and the reason.

        Raises
        ------
        ConflictError
            If another question was asked under the same `request_id`.
        DowiseError
            If the context or an arm is invalid, or if no arm is left.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task2", seed=1)
        >>> decision = experiment.ask({"C": 0}, "visit 17")
        >>> experiment.ask({"C": 0}, "visit 17").id == decision.id
        True
        """

    @abstractmethod
    def ask_many(
        self,
        contexts: Sequence[Context],
        request_id: str | None = None,
        allowed: Iterable[ArmLike] | None = None,
        forbid: Iterable[ArmLike] | None = None,
    ) -> list[LiveDecision]:
        """Decide for several contexts at once; later decisions take earlier ones into account.

        Parameters
        ----------
        contexts : sequence of mappings
            One context per decision, or a pandas table with one context per row.
        request_id, allowed, forbid
            As in `ask`, for all decisions.

        Returns
        -------
        list of LiveDecision
            One decision per context. All of them are recorded, or none.

        Raises
        ------
        ConflictError
            If another question was asked under the same `request_id`.
        DowiseError
            If a context or an arm is invalid, or if no arm is left.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task2", seed=1)
        >>> [decision.id for decision in experiment.ask_many([{"C": 0}, {"C": 1}])]
        [1, 2]
        """

    @abstractmethod
    def tell(
        self,
        id: int,  # noqa: A002
        values: Mapping[str, object] | None = None,
        *,
        played: ArmLike | None = None,
        unrelated: bool = False,
    ) -> Case:
        """Record values that were seen after a decision, in any number of calls and any order.

        Repeating a value changes nothing. Values of the context and settings of the arm are known
        already; they may be repeated if they agree.

        Parameters
        ----------
        id : int
            Number of the decision.
        values : mapping, optional
            Values by variable; None means that a value is missing for good.
        played : arm, optional
            The arm that was played instead of the one that was chosen. Such a decision has no
            propensity, and is learned from only if `unrelated` is true.
        unrelated : bool, default False
            The reason to play another arm had nothing to do with the unit.

        Returns
        -------
        Case
            The decision after the call; `changed` is true if the call changed it.

        Raises
        ------
        ConflictError
            If a different value was told before; correct it with `amend`.
        NotFoundError
            If there is no such decision.
        DowiseError
            If a variable, value or arm is invalid, or if nothing was told.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> decision = experiment.ask()
        >>> experiment.tell(decision.id, {"Y": 1}).changed
        True
        >>> experiment.tell(decision.id, {"Y": 1}).changed
        False
        """

    @abstractmethod
    def amend(
        self,
        id: int,  # noqa: A002
        values: Mapping[str, object] | None = None,
        reason: str = "",
        *,
        played: ArmLike | None = None,
        unrelated: bool = False,
    ) -> Case:
        """Correct values or the context; the journal keeps the earlier values.

        Parameters
        ----------
        id : int
            Number of the decision.
        values : mapping, optional
            Correct values by variable.
        reason : str
            Reason for the correction; required.
        played, unrelated
            As in `tell`.

        Returns
        -------
        Case
            The decision after the call; `previous` is the decision before it.

        Raises
        ------
        ConflictError
            If the decision was withdrawn or erased.
        NotFoundError
            If there is no such decision.
        DowiseError
            If a value was never told, if a variable, value or arm is invalid, or if the reason is
            missing.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> case = experiment.tell(experiment.ask().id, {"Y": 1})
        >>> experiment.amend(case.id, {"Y": 0}, "typing error").values
        {'Y': '0'}
        """

    @abstractmethod
    def withdraw(self, id: int, reason: str = "") -> Case:  # noqa: A002
        """Close a pending decision that will not get an outcome.

        Parameters
        ----------
        id : int
            Number of the decision.
        reason : str
            Reason why there is no outcome; required.

        Returns
        -------
        Case
            The decision after the call.

        Raises
        ------
        NotFoundError
            If there is no such decision.
        DowiseError
            If the decision has its outcome, or if the reason is missing.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> experiment.withdraw(experiment.ask().id, "the patient left").status
        'withdrawn'
        """

    @abstractmethod
    def revise(
        self,
        problem: Problem | str | Path | None = None,
        policy: str | None = None,
        options: Mapping[str, Any] | None = None,
        reason: str = "",
        *,
        learn_restricted: bool | None = None,
    ) -> bool:
        """Change the problem, the policy or its options for all later decisions.

        Past records are learned again under the new configuration, by label: new variables are
        missing in them, dropped variables are ignored.

        Parameters
        ----------
        problem : Problem, str or Path, optional
            The new problem.
        policy : str, optional
            The new policy.
        options : mapping, optional
            Options to change; with a new policy, all of its options.
        reason : str
            Reason for the revision; required.
        learn_restricted : bool, optional
            Learn from decisions for which some arms were not allowed.

        Returns
        -------
        bool
            True if anything changed.

        Raises
        ------
        DowiseError
            If an argument is invalid, if the reason is missing, or if a past record has a label
            that the new problem lacks; the message names the records.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", "ts", seed=1)
        >>> experiment.revise(policy="ids", reason="explore less"), experiment.policy
        (True, 'ids')
        """

    @abstractmethod
    def import_records(
        self,
        frame: Any,
        arm: ArmLike | None = None,
        *,
        source: str | None = None,
        skip_bad: bool = False,
        again: bool = False,
    ) -> int:
        """Import past records.

        Parameters
        ----------
        frame : table
            Records as `Belief.update_many` takes them, or the result of
            `Problem.checked_records` or `dowise.problem.tables.read_records`.
        arm : arm, optional
            The arm of all records, if the table does not contain it.
        source : str, optional
            Where the records are from.
        skip_bad : bool, default False
            Skip bad rows instead of refusing all of them.
        again : bool, default False
            Import a table that was imported before.

        Returns
        -------
        int
            Number of records imported.

        Raises
        ------
        ConflictError
            If the same table was imported before.
        DowiseError
            If rows are bad; the message lists them.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> variables = experiment.problem.domains
        >>> experiment.import_records({name: [0, 1, 1] for name in variables})
        3
        """

    @abstractmethod
    def erase(self, id: int, reason: str = "") -> bool:  # noqa: A002
        """Erase all recorded values of a decision permanently.

        An event records the erasure, and the hash chain stays valid. Whatever depended on the
        decision can no longer be derived again. Backups and exports are not erased.

        Parameters
        ----------
        id : int
            Number of the decision.
        reason : str
            Reason for the erasure; required.

        Returns
        -------
        bool
            True if the decision had not been erased before.

        Raises
        ------
        NotFoundError
            If there is no such decision.
        DowiseError
            If the reason is missing, or if old copies remain in the store's files: then erase the
            decision again.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> decision = experiment.ask()
        >>> experiment.erase(decision.id, "consent withdrawn")
        True
        """

    @abstractmethod
    def audit(self, head: object = None, track: TrackEvents | None = None) -> Audit:
        """Check that the journal is intact, and that each decision follows from what was known.

        Parameters
        ----------
        head : Head or str, optional
            A head that was kept elsewhere, to detect missing events. The first 12 digits of its
            hash are enough; the notes of the audit say what they prove.
        track : callable, optional
            As in `history`.

        Returns
        -------
        Audit
            Number of verified events, and the first fault, if any.

        Raises
        ------
        DowiseError
            If the head is malformed.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> head = str(experiment.head)
        >>> decision = experiment.ask()
        >>> experiment.audit(head).ok
        True
        """
