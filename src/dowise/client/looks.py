"""What can be asked of an experiment on a server without changing it.

What takes long is worked out there: the arguments `track`, which show how far that is, are accepted
and not used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from numbers import Integral
from typing import Any, TypeVar

from dowise.belief import Belief
from dowise.client.answers import unreadable
from dowise.client.line import LONG, Line, segment
from dowise.errors import DowiseError, NotFoundError
from dowise.experiment.asking import Asked
from dowise.experiment.audit import Audit, head_of
from dowise.experiment.by_arm import FORMAT, ArmByArm
from dowise.experiment.case import Case
from dowise.experiment.counted import Counted
from dowise.experiment.documents import API
from dowise.experiment.evaluation import Evaluation
from dowise.experiment.evaluation.targets import TargetLike
from dowise.experiment.event import Event, Head
from dowise.experiment.explain import Explanation
from dowise.experiment.history import POINTS, History
from dowise.experiment.sent import options_page, target_page, values_page
from dowise.experiment.shown import Shown
from dowise.experiment.status import Status
from dowise.experiment.tracking import Track
from dowise.policies.continuing import Continuing, value_of_continuing
from dowise.problem import Problem
from dowise.problem.problem import Context
from dowise.problem.problem_file import parse_problem
from dowise.problem.tables import EXPORT_COLUMNS

__all__ = ["Looks", "check_api"]

Found = TypeVar("Found")
Document = dict[str, Any]

_AT_ONCE = 1000  # rows of a list, the most that a server gives in one answer

_OUTLINE = {
    "problem": str, "problem_id": str, "earlier_problems": dict, "policy": str, "options": dict,
    "head": str, "is_one_of_many": bool,
}  # fmt: skip
"""What of an experiment's document is read here."""


class Looks(Shown):
    """An experiment on a server as one looks at it; every look asks the server."""

    def __init__(self, line: Line, name: str) -> None:
        self._line, self._name = line, name
        self._problems: dict[str, Problem] = {}  # by their ids

    def __repr__(self) -> str:
        return f"<Client of {self.name} at {self.store}>"

    # -- what holds ---------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The experiment's name in its store."""
        return self._name

    @property
    def store(self) -> str:
        """The URL of the server."""
        return self._line.base

    @property
    def is_one_of_many(self) -> bool:
        """Whether the server holds other experiments too, so that a name must be given."""
        return bool(self._outline()["is_one_of_many"])

    @property
    def problem(self) -> Problem:
        """What is decided, as of now."""
        page = self._outline()
        return self._kept(page["problem_id"], page["problem"])

    @property
    def policy(self) -> str:
        """The name of the policy that decides, as of now."""
        return str(self._outline()["policy"])

    @property
    def options(self) -> dict[str, Any]:
        """Those of the policy, the prior among them, as of now."""
        return deepcopy(dict(self._outline()["options"]))

    @property
    def head(self) -> Head:
        """Number and hash of the last event; kept elsewhere, they find a cut or rewritten journal.

        `str(head)` is what `audit` takes.
        """
        head = head_of(self._outline()["head"])
        assert head is not None
        return head

    @property
    def belief(self) -> Belief:
        """What is known as of now, whatever the policy makes of it: a copy, yours to play with."""
        page = self._get("belief", LONG)
        found = self._part(page, "belief", dict)
        kind = ArmByArm if found.get("format") == FORMAT else None
        return self._read(Belief.from_dict, found, self._problem(page), kind)

    # -- looking ------------------------------------------------------------------------------

    def pending(self) -> tuple[Case, ...]:
        """The decisions whose reward was not told yet, oldest first."""
        return tuple(self._cases("pending"))

    def records(self) -> tuple[Case, ...]:
        """All decisions, with what was told of them."""
        return tuple(self._cases())

    def case(self, id: int) -> Case:  # noqa: A002 (what decisions call it)
        """One decision, with what was told of it."""
        page = self._get(f"decisions/{self._number(id)}")
        return self._read(Case.from_dict, page)

    def decision(self, id: int) -> Asked:  # noqa: A002 (what decisions call it)
        """One decision as it was made: how likely each arm was to be chosen, and why this one."""
        page = self._get(f"decisions/{self._number(id)}").get("decision")
        if page is None:
            raise NotFoundError(f"decision {id} was erased: there is nothing left to see")
        return self._read(Asked.from_dict, page, self._problem(page))

    def idle(self, id: int) -> list[str]:  # noqa: A002 (what decisions call it)
        """What was told of a decision and does not count, or not yet, and why: sentences."""
        page = self._get(f"decisions/{self._number(id)}")
        return [str(line).removesuffix(".") for line in self._part(page, "notes", list)]

    def events(self, after: int = 0, upto: int | None = None) -> list[Event]:
        """The journal itself: what happened, event by event.

        Who is no admin sees neither the seed nor the salts, so that no hash can be verified.
        """
        found = []
        for row in self._rows("events", after):
            event = self._read(Event.from_row, row)
            if upto is not None and event.number > upto:
                break
            found.append(event)
        return found

    def status(
        self, context: Context = None, evidence: bool | None = None, rounds: int | None = None
    ) -> Status:
        """What each arm is expected to bring in a context, or in each of them, and what is lacking.

        `evidence` also looks at what the records say against the graph; where that would take more
        than about a second it is left out, with a note, unless you say True. With `rounds` it also
        says what so many rounds more are worth.
        """
        wanted = None if evidence is None else str(evidence).lower()
        page = self._get(
            "status", LONG, context=_context(context), evidence=wanted, rounds=rounds
        )  # fmt: skip
        return self._read(Status.from_dict, page, self._problem(page))

    def value_of_continuing(self, rounds: int, worlds: int | None = None) -> Continuing:
        """What so many rounds more are expected to gain over staying with what looks best now.

        In all contexts, as the belief expects them; with `worlds` it is worked out here.
        """
        if worlds is not None:
            return value_of_continuing(self.belief, rounds, worlds)
        status = self.status(evidence=False, rounds=rounds)
        if status.continuing is None:
            raise DowiseError(status.notes[-1] if status.notes else "it is not known")
        return status.continuing

    def counted(self) -> Counted:
        """How many past records the policy that holds learns from, and why not from the others."""
        page = self._get("counted", LONG)
        return self._read(Counted.from_dict, page)

    def history(
        self,
        context: Context = None,
        points: int = POINTS,
        track: Track | None = None,  # noqa: ARG002
    ) -> History:
        """How sure the experiment was along its journal, at so many points of it."""
        page = self._get("history", LONG, context=_context(context), points=points)
        return self._read(History.from_dict, page)

    def explain(
        self,
        id: int,  # noqa: A002 (what decisions call it)
        track: Track | None = None,  # noqa: ARG002
    ) -> Explanation:
        """What was known when a decision was made, and why it came out as it did."""
        page = self._get(f"explain/{self._number(id)}", LONG)
        return self._read(Explanation.from_dict, page, self._problem(page))

    def evaluate(
        self,
        policy: TargetLike,
        options: Mapping[str, Any] | None = None,
        level: float = 0.9,
        track: Track | None = None,  # noqa: ARG002
    ) -> Evaluation:
        """What another policy, or always the same arm, would have earned on the same decisions.

        `options` are those of a policy that is given by its name, which the server must know. The
        rows that it was worked out from stay there.
        """
        body = {"policy": target_page(policy), "options": options_page(options), "level": level}
        page = self._line.post(self._path("evaluate"), body, is_repeatable=True, patience=LONG)
        return self._read(Evaluation.from_dict, page, self._problem(page))

    def table(self) -> dict[str, list[Any]]:
        """All decisions by columns, as they are exported (`dowise.experiment.export`)."""
        page = self._get("export", LONG, format="json")
        for name in EXPORT_COLUMNS:
            self._part(page, name, list)
        return page

    def audit(self, head: object = None, track: Track | None = None) -> Audit:  # noqa: ARG002
        """Whether the journal is whole, and every decision follows from what was known then.

        `head` is one that was kept elsewhere, `experiment.head` or its text, of whose hash the
        first 12 digits will do (see the audit's notes for what these prove).
        """
        kept = head_of(head)
        page = self._get("audit", LONG, head=None if kept is None else str(kept))
        return self._read(Audit.from_dict, page)

    # -- asking the server --------------------------------------------------------------------

    def _path(self, what: str = "") -> str:
        return f"/api/experiments/{segment(self._name)}" + (f"/{what}" if what else "")

    def _get(self, what: str, patience: float | None = None, **query: Any) -> Document:
        more = {} if patience is None else {"patience": patience}
        return self._line.get(self._path(what), **more, **query)

    def _outline(self) -> Document:
        """The document of the experiment."""
        page = self._get("")
        check_api(self.store, page)
        for name, kind in _OUTLINE.items():
            self._part(page, name, kind)
        return page

    def _cases(self, status: str | None = None) -> Iterator[Case]:
        for row in self._rows("decisions", status=status):
            yield self._read(Case.from_dict, row)

    def _rows(self, what: str, after: int | None = 0, **query: Any) -> Iterator[Document]:
        """A list to its end, answer by answer."""
        while after is not None:
            page = self._get(what, LONG, after=after, limit=_AT_ONCE, **query)
            yield from self._part(page, what, list)
            last = page.get("next")
            if not (last is None or (isinstance(last, int) and last > after)):
                raise unreadable(self.store)
            after = last

    def _problem(self, page: Mapping[str, Any]) -> Problem:
        """The problem that a document is to be read under."""
        key = self._part(page, "problem_id", str)
        if key not in self._problems:
            now = self._outline()
            texts = {**now["earlier_problems"], now["problem_id"]: now["problem"]}
            return self._kept(key, self._part(texts, key, str))
        return self._problems[key]

    def _kept(self, key: str, text: str) -> Problem:
        if key not in self._problems:
            self._problems[key] = parse_problem(text)
        return self._problems[key]

    def _part(self, page: Mapping[str, Any], name: str, kind: type[Found]) -> Found:
        """A part of a document, which must be there."""
        found = page.get(name)
        if not isinstance(found, kind):
            raise unreadable(self.store)
        return found

    def _read(self, read: Callable[..., Found], *page: Any) -> Found:
        """What a document says; one that says it otherwise than we know is an error in words."""
        try:
            return read(*page)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise unreadable(self.store) from error

    def _number(self, number: object) -> int:
        if not isinstance(number, Integral) or isinstance(number, bool) or number < 0:
            raise NotFoundError(f"there is no decision {number!r} in {self.name}")
        return int(number)


def check_api(base: str, page: Mapping[str, Any]) -> None:
    """Raise unless the documents of a server are those that we know."""
    version = page.get("api")
    if not isinstance(version, int):
        raise DowiseError(f"{base} is no dowise server, by what it answers: is the address right?")
    if version > API:
        raise DowiseError(
            f"{base} speaks version {version} of the API, and this dowise knows {API}: update it"
        )


def _context(context: Context) -> str | None:
    return None if context is None else json.dumps(values_page(context, "the context"))
