"""An experiment on a server, by the methods of `Experiment`."""

from __future__ import annotations

import json
import secrets
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

from dowise._core.validation import check_flag, check_integer
from dowise.belief import Belief
from dowise.client.transport import LONG, Address, Transport, address_of, segment, unreadable
from dowise.errors import DowiseError, DowiseWarning, NotFoundError, suggestion
from dowise.experiment.advice import RecordUsage
from dowise.experiment.ask import LiveDecision, listed_arms, listed_contexts, validate_request_id
from dowise.experiment.audit import Audit, head_of
from dowise.experiment.base import Shown
from dowise.experiment.case import Case
from dowise.experiment.config import DEFAULT_POLICY
from dowise.experiment.evaluation import Evaluation
from dowise.experiment.evaluation.replay import TargetLike
from dowise.experiment.event import Event, Head
from dowise.experiment.experiment import validate_name
from dowise.experiment.explanation import Explanation
from dowise.experiment.history import POINTS, History
from dowise.experiment.progress import Track
from dowise.experiment.read_model import FORMAT, IndependentArmsBelief
from dowise.experiment.records import BadRowsError, checked_rows
from dowise.experiment.status import Status
from dowise.experiment.wire import (
    API,
    arm_page,
    arm_pages,
    options_page,
    records_page,
    target_page,
    values_page,
)
from dowise.policies.value_of_continuing import Continuing, value_of_continuing
from dowise.problem import Problem, load_problem
from dowise.problem.problem import ArmLike, Context
from dowise.problem.problem_file import parse_problem, problem_text
from dowise.problem.tables import EXPORT_COLUMNS

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

    def __init__(self, line: Transport, name: str) -> None:
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
        kind = IndependentArmsBelief if found.get("format") == FORMAT else Belief
        return self._read(kind.from_dict, found, self._problem(page))

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

    def decision(self, id: int) -> LiveDecision:  # noqa: A002 (what decisions call it)
        """One decision as it was made: how likely each arm was to be chosen, and why this one."""
        page = self._get(f"decisions/{self._number(id)}").get("decision")
        if page is None:
            raise NotFoundError(f"decision {id} was erased: there is nothing left to see")
        return self._read(LiveDecision.from_dict, page, self._problem(page))

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
            "status", LONG, context=_looks_context(context), evidence=wanted, rounds=rounds
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

    def counted(self) -> RecordUsage:
        """How many past records the policy that holds learns from, and why not from the others."""
        page = self._get("counted", LONG)
        return self._read(RecordUsage.from_dict, page)

    def history(
        self,
        context: Context = None,
        points: int = POINTS,
        track: Track | None = None,  # noqa: ARG002
    ) -> History:
        """How sure the experiment was along its journal, at so many points of it."""
        page = self._get("history", LONG, context=_looks_context(context), points=points)
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
        """All decisions by columns, as they are exported (`dowise.experiment.records`)."""
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


def _looks_context(context: Context) -> str | None:
    return None if context is None else json.dumps(values_page(context, "the context"))


class Client(Looks):
    """An experiment that `dowise serve` keeps, with the methods of `dowise.Experiment`.

    `url` is that of the server, or of an experiment in it; the name may be left out where there is
    only one. The token is read from the variable DOWISE_TOKEN unless it is given, and sent
    unencrypted to this machine only, unless you say `insecure`. The server knows by the token who
    acts. Safe for threads. A broken connection is tried again where that can't do anything twice:
    one `ask` is one decision.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        name: str | None = None,
        *,
        insecure: bool = False,
    ) -> None:
        address = address_of(url)
        line = Transport(address.base, token, insecure)
        try:
            super().__init__(line, _found_name(line, address, name))
        except BaseException:
            line.close()
            raise

    @classmethod
    def create(
        cls,
        url: str,
        name: str | None,
        problem: Problem | str | Path,
        policy: str = DEFAULT_POLICY,
        options: Mapping[str, Any] | None = None,
        seed: int | None = None,
        *,
        learn_restricted: bool = True,
        records: Any = None,
        source: str | None = None,
        skip_bad: bool = False,
        token: str | None = None,
        insecure: bool = False,
    ) -> Client:
        """A new experiment on a server, which takes an admin's token; as `Experiment.create`.

        The problem is sent as a text, with all that it takes from files, and the records row by
        row. The name may stand in the URL instead.
        """
        address = address_of(url)
        chosen = validate_name(_one_name(address, name))
        about = load_problem(problem) if isinstance(problem, str | Path) else problem
        if not isinstance(about, Problem):
            raise DowiseError("an experiment is about a Problem, or the path of a problem file")
        body = {
            "name": chosen,
            "problem": problem_text(about),
            "policy": policy,
            "options": options_page(options),
            "seed": None if seed is None else check_integer("seed", seed, 0, 2**128 - 1),
            "learn_restricted": learn_restricted,
        }
        body |= _records(about, records, None, source, skip_bad)
        line = Transport(address.base, token, insecure)
        try:
            _warn_of(line.post("/api/experiments", body))
        finally:
            line.close()
        return cls(address.base, token, chosen, insecure=insecure)

    def close(self) -> None:
        """Let go of connections; whatever is asked afterwards opens them anew."""
        self._line.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    # -- asking -------------------------------------------------------------------------------

    def ask(
        self,
        context: Context = None,
        request_id: str | None = None,
        allowed: Iterable[ArmLike] | None = None,
        forbid: Iterable[ArmLike] | None = None,
    ) -> LiveDecision:
        """Which arm to play for this context. The decision is pending from then on.

        `allowed` lists the arms to choose from; `forbid` lists what must not be set, "do(X=1)",
        and rules out every arm that sets it. With a `request_id` the same call may be made again
        and gives the same decision; without one this call has one of its own.
        """
        return self._ask("ask", {"context": _context(context)}, request_id, allowed, forbid)[0]

    def ask_many(
        self,
        contexts: Sequence[Context],
        request_id: str | None = None,
        allowed: Iterable[ArmLike] | None = None,
        forbid: Iterable[ArmLike] | None = None,
    ) -> list[LiveDecision]:
        """A decision for each of these contexts, all in one step, without needless repeats."""
        asked = {"contexts": [_context(one) for one in listed_contexts(contexts)]}
        return self._ask("ask-many", asked, request_id, allowed, forbid)

    def _ask(
        self,
        verb: str,
        body: dict[str, Any],
        request_id: str | None,
        allowed: Iterable[ArmLike] | None,
        forbid: Iterable[ArmLike] | None,
    ) -> list[LiveDecision]:
        may, never = listed_arms("allowed", allowed), listed_arms("forbid", forbid)
        body |= {"allowed": arm_pages(may), "forbid": arm_pages(never)}
        key = validate_request_id(request_id) or secrets.token_hex(16)
        if not _fits_a_header(key):
            body["request_id"], key = key, secrets.token_hex(16)
        page = self._line.post(self._path(verb), body, key)
        found = self._part(page, "decisions", list) if verb == "ask-many" else [page]
        return [self._read(LiveDecision.from_dict, one, self._problem(one)) for one in found]

    # -- telling ------------------------------------------------------------------------------

    def tell(
        self,
        id: int,  # noqa: A002 (what decisions call it)
        values: Mapping[str, object] | None = None,
        *,
        played: ArmLike | None = None,
        unrelated: bool = False,
    ) -> Case:
        """What was seen after a decision: in pieces, at any time, in any order.

        The context and what the arm set are known, and may be told again if they agree. None says
        that a value is missing for good. Telling the same again changes nothing; other values for
        the same variable are an error: `amend` corrects. `played` says what was done instead of the
        arm that was decided on, and `unrelated` that this had nothing to do with the unit.
        """
        return self._say("tell", id, _told(values, "what was told", played, unrelated))

    def amend(
        self,
        id: int,  # noqa: A002
        values: Mapping[str, object] | None = None,
        reason: str = "",
        *,
        played: ArmLike | None = None,
        unrelated: bool = False,
    ) -> Case:
        """Correct what was told, or the context; the journal keeps what was said before."""
        body = _told(values, "an amendment", played, unrelated)
        return self._say("amend", id, body | {"reason": reason})

    def withdraw(self, id: int, reason: str = "") -> Case:  # noqa: A002
        """End a pending decision of which nothing more will be told."""
        return self._say("withdraw", id, {"reason": reason})

    def _say(self, verb: str, number: int, body: Mapping[str, Any]) -> Case:
        path = self._path(f"{verb}/{self._number(number)}")
        page = self._line.post(path, body, is_repeatable=True)
        return self._read(Case.from_dict, page)

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
        """A new graph, roles, prior or policy from here on; whether that changes anything.

        It takes an admin's token. Past records count again under it, read by label. Options are
        kept unless given, all of them new with a new policy.
        """
        about = load_problem(problem) if isinstance(problem, str | Path) else problem
        body = {
            "problem": None if about is None else problem_text(about),
            "policy": policy,
            "options": None if options is None else options_page(options),
            "reason": reason,
            "learn_restricted": learn_restricted,
        }
        page = self._line.post(self._path("revise"), body)
        _warn_of(page)
        return self._part(page, "changed", bool)

    def import_records(
        self,
        frame: Any,
        arm: ArmLike | None = None,
        *,
        source: str | None = None,
        skip_bad: bool = False,
        again: bool = False,
    ) -> int:
        """Past records, as `Belief.update_many` takes them; the number that was brought in.

        They are read here, and sent row by row; it takes an admin's token. A bad row is an error
        that lists the bad ones, and nothing is imported, unless `skip_bad`. The same table twice is
        an error too, unless `again`. `source` says where they are from, in the journal.
        """
        body = _records(self.problem, frame, arm, source, skip_bad)
        if not body:
            return 0
        page = self._line.post(self._path("import"), body | {"again": again})
        _warn_of(page)
        return self._part(page, "imported", int)

    def erase(self, id: int, reason: str = "") -> bool:  # noqa: A002
        """Blank all that was said of a decision, for good: a person's right.

        It takes an admin's token. An event says that this was done, and the chain of hashes still
        holds. Gives whether there was something to erase.
        """
        page = self._line.post(self._path(f"erase/{self._number(id)}"), {"reason": reason})
        return self._part(page, "changed", bool)


def _found_name(line: Transport, address: Address, name: str | None) -> str:
    """The name of the experiment, which may be left out where the server has only one."""
    given = (_one_name(address, name),) if name is not None else address.names
    if len(given) == 1:
        check_api(line.base, line.get(f"/api/experiments/{segment(given[0])}"))
        return given[0]
    page = line.get("/api/experiments")
    check_api(line.base, page)
    try:
        names = [str(one["name"]) for one in page["experiments"]]
    except (KeyError, TypeError):
        raise unreadable(line.base) from None
    if given:
        return next((one for one in given if one in names), given[0])
    if not names:
        raise NotFoundError(
            f"{line.base} holds no experiment: make one (dowise new {line.base} PROBLEM, or "
            "Client.create in Python)"
        )
    if len(names) > 1:
        raise DowiseError(f"{line.base} holds {', '.join(names)}: say which (`name`)")
    return names[0]


def _one_name(address: Address, name: str | None) -> str:
    """That of the URL, or the one that was given besides: they must not differ."""
    if name is None and address.name is None:
        raise DowiseError("say what the experiment is called: by its name, or in the URL")
    if name is not None and address.name is not None and name not in address.names:
        raise DowiseError(
            f"the URL names the experiment {address.name!r}, and the name besides it is {name!r}"
            f"{suggestion(name, address.names)}: leave one of them out"
        )
    return address.name or "" if name is None else name


def _context(context: Context) -> dict[str, str | None] | None:
    return None if context is None else values_page(context, "the context")


def _told(values: object, what: str, played: ArmLike | None, unrelated: bool) -> dict[str, Any]:
    done = None if played is None else arm_page(played)
    return {"values": values_page(values, what), "played": done, "unrelated": unrelated}


def _records(
    problem: Problem, frame: Any, arm: ArmLike | None, source: str | None, skip_bad: bool
) -> dict[str, Any]:
    """What is sent of a table that was checked here; nothing where no row of it is good."""
    if frame is None:
        return {}
    found = checked_rows(problem, frame, arm)
    if found.bad_count and not check_flag("skip_bad", skip_bad):
        raise BadRowsError(found)
    if not len(found.batch):
        return {}
    return {**records_page(found), "source": source, "skip_bad": skip_bad}


def _warn_of(page: Mapping[str, Any]) -> None:
    """Say what the server warned of, as it would have been said here."""
    for note in page.get("notes") or ():
        warnings.warn(str(note), DowiseWarning, stacklevel=3)


def _fits_a_header(text: str) -> bool:
    return text.isascii() and text.isprintable() and text == text.strip() and len(text) <= 200
