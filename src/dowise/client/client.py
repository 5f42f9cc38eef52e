"""An experiment on a server, with the methods of `Experiment`."""

from __future__ import annotations

import json
import secrets
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

from dowise._core.validation import check_flag, check_integer
from dowise.belief import Belief
from dowise.client.transport import (
    LONG_TIMEOUT,
    Address,
    Transport,
    parse_address,
    quote_segment,
    unreadable_document,
)
from dowise.errors import DowiseError, DowiseWarning, NotFoundError, suggestion
from dowise.experiment.ask import AskRequest, LiveDecision
from dowise.experiment.audit import Audit, parse_head
from dowise.experiment.base import ExperimentBase
from dowise.experiment.case import Case
from dowise.experiment.config import DEFAULT_POLICY
from dowise.experiment.evaluation import Evaluation
from dowise.experiment.evaluation.decision_log import TargetLike
from dowise.experiment.event import Event, Head, TrackEvents
from dowise.experiment.experiment import validate_name
from dowise.experiment.explanation import Explanation
from dowise.experiment.history import POINTS, History
from dowise.experiment.record_import import BadRowsError, as_checked_records
from dowise.experiment.record_usage import RecordUsage
from dowise.experiment.status import Status
from dowise.experiment.wire import (
    API,
    arm_to_json,
    arms_to_json,
    options_to_json,
    records_to_json,
    target_to_json,
    values_to_json,
)
from dowise.policies.independent_arms import FORMAT, IndependentArmsBelief
from dowise.policies.value_of_continuing import Continuing, value_of_continuing
from dowise.problem import Problem, load_problem
from dowise.problem.problem import ArmLike, Context
from dowise.problem.problem_file import parse_problem, problem_text
from dowise.problem.tables import EXPORT_COLUMNS

ResultT = TypeVar("ResultT")
Json = dict[str, Any]

MAX_ROWS = 1000  # of a list in one response
MAX_HEADER = 200  # characters of a request id that is sent as a header

_CONFIG = {
    "problem": str,
    "problem_id": str,
    "earlier_problems": dict,
    "policy": str,
    "options": dict,
    "head": str,
    "is_one_of_many": bool,
}
"""Keys of an experiment's document that are read, with their types."""


class Client(ExperimentBase):
    """An experiment on a server (`dowise serve`), with the methods of `Experiment`.

    Safe for threads. After a broken connection a request is repeated only if nothing can happen
    twice: one `ask` is one decision. The token tells the server who acts.

    Parameters
    ----------
    url : str
        URL of the server, or of an experiment on it.
    token : str, optional
        Access token; by default the environment variable DOWISE_TOKEN.
    name : str, optional
        Name of the experiment, if it is not in the URL and the server has several.
    insecure : bool, default False
        Send the token unencrypted to other machines too.

    Raises
    ------
    NotFoundError
        If the server has no such experiment.
    UnavailableError
        If the server can't be reached.
    DowiseError
        If the URL or the token is invalid, or if the server has several experiments and no name is
        passed.

    Examples
    --------
    >>> from dowise import Client
    >>> with Client("http://127.0.0.1:8000", name="ward") as ward:  # doctest: +SKIP
    ...     decision = ward.ask({"C": 1})
    ...     ward.tell(decision.id, {"Y": 1})
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        name: str | None = None,
        *,
        insecure: bool = False,
    ) -> None:
        address = parse_address(url)
        self._transport = Transport(address.base, token, insecure)
        self._problems: dict[str, Problem] = {}  # by id
        try:
            self._name = _resolve_name(self._transport, address, name)
        except BaseException:
            self._transport.close()
            raise

    def __repr__(self) -> str:
        return f"<Client of {self.name} at {self.store}>"

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
        """Create an experiment on a server, with an admin's token; see `Experiment.create`.

        The problem is sent as text, with all that it takes from files, and the records row by row.

        Parameters
        ----------
        url : str
            URL of the server, or of the new experiment on it.
        name : str or None
            Name of the experiment; None if it is part of the URL.
        problem, policy, options, seed, learn_restricted, records, source, skip_bad
            As for `Experiment.create`.
        token : str, optional
            An admin's access token; by default the environment variable DOWISE_TOKEN.
        insecure : bool, default False
            Send the token unencrypted to other machines too.

        Returns
        -------
        Client
            A client of the new experiment.

        Raises
        ------
        DowiseError
            If an argument is invalid, if the server has an experiment of this name, or if the token
            is not an admin's.

        Examples
        --------
        >>> from dowise import Client
        >>> ward = Client.create("http://127.0.0.1:8000", "ward", "task1")  # doctest: +SKIP
        """
        address = parse_address(url)
        name = validate_name(_single_name(address, name))
        problem = _as_problem(problem)
        body = {
            "name": name,
            "problem": problem_text(problem),
            "policy": policy,
            "options": options_to_json(options),
            "seed": None if seed is None else check_integer("seed", seed, 0, 2**128 - 1),
            "learn_restricted": learn_restricted,
        }
        body |= _table_to_json(problem, records, None, source, skip_bad)
        transport = Transport(address.base, token, insecure)
        try:
            _warn(transport.post("/api/experiments", body))
        finally:
            transport.close()
        return cls(address.base, token, name, insecure=insecure)

    def close(self) -> None:
        self._transport.close()

    # -- verbs --------------------------------------------------------------------------------

    def ask(
        self,
        context: Context = None,
        request_id: str | None = None,
        allowed: Iterable[ArmLike] | None = None,
        forbid: Iterable[ArmLike] | None = None,
    ) -> LiveDecision:
        request = AskRequest.from_user([context], request_id, allowed, forbid)
        return self._ask("ask", {"context": _context_to_json(context)}, request)[0]

    def ask_many(
        self,
        contexts: Sequence[Context],
        request_id: str | None = None,
        allowed: Iterable[ArmLike] | None = None,
        forbid: Iterable[ArmLike] | None = None,
    ) -> list[LiveDecision]:
        request = AskRequest.from_user(contexts, request_id, allowed, forbid)
        body = {"contexts": [_context_to_json(context) for context in request.contexts]}
        return self._ask("ask-many", body, request)

    def _ask(self, verb: str, body: Json, request: AskRequest) -> list[LiveDecision]:
        body["allowed"] = arms_to_json(request.allowed)
        body["forbid"] = arms_to_json(request.forbid)
        # Every request has a key, so that it can be repeated after a broken connection.
        key = request.request_id or secrets.token_hex(16)
        is_header = key.isascii() and key.isprintable() and key == key.strip()
        if not is_header or len(key) > MAX_HEADER:
            body["request_id"], key = key, secrets.token_hex(16)
        data = self._transport.post(self._path(verb), body, key)
        decisions = self._part(data, "decisions", list) if verb == "ask-many" else [data]
        return [self._decode(LiveDecision, decision) for decision in decisions]

    def tell(
        self,
        id: int,  # noqa: A002
        values: Mapping[str, object] | None = None,
        *,
        played: ArmLike | None = None,
        unrelated: bool = False,
    ) -> Case:
        return self._change(
            "tell", id, _outcome_to_json(values, "what was told", played, unrelated)
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
        body = _outcome_to_json(values, "an amendment", played, unrelated)
        return self._change("amend", id, body | {"reason": reason})

    def withdraw(self, id: int, reason: str = "") -> Case:  # noqa: A002
        return self._change("withdraw", id, {"reason": reason})

    def _change(self, verb: str, number: int, body: Json) -> Case:
        path = self._path(f"{verb}/{self._number(number)}")
        return self._decode(Case, self._transport.post(path, body, is_repeatable=True))

    def revise(
        self,
        problem: Problem | str | Path | None = None,
        policy: str | None = None,
        options: Mapping[str, Any] | None = None,
        reason: str = "",
        *,
        learn_restricted: bool | None = None,
    ) -> bool:
        body = {
            "problem": None if problem is None else problem_text(_as_problem(problem)),
            "policy": policy,
            "options": None if options is None else options_to_json(options),
            "reason": reason,
            "learn_restricted": learn_restricted,
        }
        data = self._transport.post(self._path("revise"), body)
        _warn(data)
        return self._part(data, "changed", bool)

    def import_records(
        self,
        frame: Any,
        arm: ArmLike | None = None,
        *,
        source: str | None = None,
        skip_bad: bool = False,
        again: bool = False,
    ) -> int:
        body = _table_to_json(self.problem, frame, arm, source, skip_bad)
        if not body:
            return 0
        data = self._transport.post(self._path("import"), body | {"again": again})
        _warn(data)
        return self._part(data, "imported", int)

    def erase(self, id: int, reason: str = "") -> bool:  # noqa: A002
        path = self._path(f"erase/{self._number(id)}")
        return self._part(self._transport.post(path, {"reason": reason}), "changed", bool)

    # -- queries ------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._name

    @property
    def store(self) -> str:
        return self._transport.base

    @property
    def is_one_of_many(self) -> bool:
        return bool(self._config()["is_one_of_many"])

    @property
    def problem(self) -> Problem:
        config = self._config()
        return self._parse(config["problem_id"], config["problem"])

    @property
    def policy(self) -> str:
        return str(self._config()["policy"])

    @property
    def options(self) -> dict[str, Any]:
        return deepcopy(dict(self._config()["options"]))

    @property
    def head(self) -> Head:
        head = parse_head(self._config()["head"])
        assert head is not None
        return head

    @property
    def belief(self) -> Belief:
        data = self._fetch("belief", LONG_TIMEOUT)
        belief, problem = self._part(data, "belief", dict), self._problem(data)
        kind = IndependentArmsBelief if belief.get("format") == FORMAT else Belief
        with unreadable_document(self.store):
            return kind.from_dict(belief, problem)

    def pending(self) -> tuple[Case, ...]:
        return tuple(self._decode(Case, row) for row in self._rows("decisions", status="pending"))

    def records(self) -> tuple[Case, ...]:
        return tuple(self._decode(Case, row) for row in self._rows("decisions"))

    def case(self, id: int) -> Case:  # noqa: A002
        return self._get(Case, f"decisions/{self._number(id)}")

    def decision(self, id: int) -> LiveDecision:  # noqa: A002
        decision = self._fetch(f"decisions/{self._number(id)}").get("decision")
        if decision is None:
            raise NotFoundError(f"decision {id} was erased: there is nothing left to see")
        return self._decode(LiveDecision, decision)

    def idle(self, id: int) -> list[str]:  # noqa: A002
        data = self._fetch(f"decisions/{self._number(id)}")
        return [str(line).removesuffix(".") for line in self._part(data, "notes", list)]

    def events(self, after: int = 0, upto: int | None = None) -> list[Event]:
        events = []
        for row in self._rows("events", after):
            with unreadable_document(self.store):
                event = Event.from_row(row)
            if upto is not None and event.number > upto:
                break
            events.append(event)
        return events

    def status(
        self, context: Context = None, evidence: bool | None = None, rounds: int | None = None
    ) -> Status:
        return self._get(
            Status,
            "status",
            LONG_TIMEOUT,
            context=_context_query(context),
            evidence=None if evidence is None else str(evidence).lower(),
            rounds=rounds,
        )

    def value_of_continuing(self, rounds: int, worlds: int | None = None) -> Continuing:
        if worlds is not None:  # which the server does not offer
            return value_of_continuing(self.belief, rounds, worlds)
        status = self.status(evidence=False, rounds=rounds)
        if status.continuing is None:
            raise DowiseError(status.notes[-1] if status.notes else "it is not known")
        return status.continuing

    def counted(self) -> RecordUsage:
        return self._get(RecordUsage, "counted", LONG_TIMEOUT)

    def history(
        self,
        context: Context = None,
        points: int = POINTS,
        track: TrackEvents | None = None,  # noqa: ARG002
    ) -> History:
        query = {"context": _context_query(context), "points": points}
        return self._get(History, "history", LONG_TIMEOUT, **query)

    def explain(self, id: int, track: TrackEvents | None = None) -> Explanation:  # noqa: A002, ARG002
        return self._get(Explanation, f"explain/{self._number(id)}", LONG_TIMEOUT)

    def evaluate(
        self,
        policy: TargetLike,
        options: Mapping[str, Any] | None = None,
        level: float = 0.9,
        track: TrackEvents | None = None,  # noqa: ARG002
    ) -> Evaluation:
        body = {
            "policy": target_to_json(policy),
            "options": options_to_json(options),
            "level": level,
        }
        data = self._transport.post(
            self._path("evaluate"), body, is_repeatable=True, timeout=LONG_TIMEOUT
        )
        return self._decode(Evaluation, data)

    def table(self) -> dict[str, list[Any]]:
        data = self._fetch("export", LONG_TIMEOUT, format="json")
        for name in EXPORT_COLUMNS:
            self._part(data, name, list)
        return data

    def audit(self, head: object = None, track: TrackEvents | None = None) -> Audit:  # noqa: ARG002
        earlier = parse_head(head)
        text = None if earlier is None else str(earlier)
        return self._get(Audit, "audit", LONG_TIMEOUT, head=text)

    # -- documents of the server --------------------------------------------------------------

    def _get(
        self, kind: type[ResultT], path: str, timeout: float | None = None, **query: Any
    ) -> ResultT:
        """Fetch a result."""
        return self._decode(kind, self._fetch(path, timeout, **query))

    def _decode(self, kind: type[ResultT], data: Json) -> ResultT:
        """Read a result, under the problem that its document names, if it names one."""
        problem = (self._problem(data),) if "problem_id" in data else ()
        with unreadable_document(self.store):
            result: ResultT = kind.from_dict(data, *problem)  # type: ignore[attr-defined]
            return result

    def _fetch(self, path: str, timeout: float | None = None, **query: Any) -> Json:
        options = {} if timeout is None else {"timeout": timeout}
        return self._transport.get(self._path(path), **options, **query)

    def _path(self, path: str = "") -> str:
        return f"/api/experiments/{quote_segment(self._name)}" + (f"/{path}" if path else "")

    def _config(self) -> Json:
        """Return the document of the experiment itself."""
        data = self._fetch("")
        check_api(self.store, data)
        for name, kind in _CONFIG.items():
            self._part(data, name, kind)
        return data

    def _rows(self, name: str, after: int | None = 0, **query: Any) -> Iterator[Json]:
        """Yield the rows of a list, response by response."""
        while after is not None:
            data = self._fetch(name, LONG_TIMEOUT, after=after, limit=MAX_ROWS, **query)
            yield from self._part(data, name, list)
            last = data.get("next")
            with unreadable_document(self.store):
                if not (last is None or (isinstance(last, int) and last > after)):
                    raise ValueError(f"next={last!r}")
            after = last

    def _problem(self, data: Mapping[str, Any]) -> Problem:
        """Return the problem that a document belongs to."""
        key = self._part(data, "problem_id", str)
        if key not in self._problems:
            config = self._config()
            texts = {**config["earlier_problems"], config["problem_id"]: config["problem"]}
            return self._parse(key, self._part(texts, key, str))
        return self._problems[key]

    def _parse(self, key: str, text: str) -> Problem:
        if key not in self._problems:
            self._problems[key] = parse_problem(text)
        return self._problems[key]

    def _part(self, data: Mapping[str, Any], name: str, kind: type[ResultT]) -> ResultT:
        """Return a required part of a document."""
        part = data.get(name)
        with unreadable_document(self.store):
            if not isinstance(part, kind):
                raise TypeError(f"{name}={part!r:.80}")
            return part

    def _number(self, number: object) -> int:
        if not isinstance(number, Integral) or isinstance(number, bool) or number < 0:
            raise NotFoundError(f"there is no decision {number!r} in {self.name}")
        return int(number)


def check_api(base: str, data: Mapping[str, Any]) -> None:
    """Raise `DowiseError` unless a server's documents have a version that is known here."""
    version = data.get("api")
    if not isinstance(version, int):
        raise DowiseError(
            f"the server at {base} does not answer like dowise: check the address",
            code="unreadable-response",
        )
    if version > API:
        raise DowiseError(
            f"{base} uses version {version} of the API, and this dowise knows {API}: update dowise",
            code="newer-version",
        )


def _resolve_name(transport: Transport, address: Address, name: str | None) -> str:
    """Return the name of the experiment; it is optional if the server has only one."""
    base = transport.base
    candidates = (_single_name(address, name),) if name is not None else address.names
    if len(candidates) == 1:
        check_api(base, transport.get(f"/api/experiments/{quote_segment(candidates[0])}"))
        return candidates[0]
    data = transport.get("/api/experiments")
    check_api(base, data)
    with unreadable_document(base):
        names = [str(experiment["name"]) for experiment in data["experiments"]]
    if candidates:
        return next((name for name in candidates if name in names), candidates[0])
    if not names:
        raise NotFoundError(
            f"{base} holds no experiment: create one (dowise new {base} PROBLEM, or Client.create "
            "in Python)"
        )
    if len(names) > 1:
        raise DowiseError(
            f"{base} holds several experiments ({', '.join(names)}): pass a name",
            code="missing-value",
        )
    return names[0]


def _single_name(address: Address, name: str | None) -> str:
    """Return the name in the URL or the one passed beside it; they must not differ."""
    if name is None and address.name is None:
        raise DowiseError(
            "the experiment has no name: pass one, or add it to the URL", code="missing-value"
        )
    if name is not None and address.name is not None and name not in address.names:
        raise DowiseError(
            f"the URL names the experiment {address.name!r}, but name={name!r}"
            f"{suggestion(name, address.names)}: leave out one of them",
            code="duplicate-name",
        )
    return address.name or "" if name is None else name


def _as_problem(problem: Problem | str | Path) -> Problem:
    if isinstance(problem, str | Path):
        problem = load_problem(problem)
    if not isinstance(problem, Problem):
        raise DowiseError(
            "problem must be a Problem or the path of a problem file, not "
            f"{type(problem).__name__}",
            code="invalid-type",
        )
    return problem


def _context_to_json(context: Context) -> dict[str, str | None] | None:
    return None if context is None else values_to_json(context, "the context")


def _context_query(context: Context) -> str | None:
    return None if context is None else json.dumps(_context_to_json(context))


def _outcome_to_json(
    values: object, description: str, played: ArmLike | None, unrelated: bool
) -> Json:
    return {
        "values": values_to_json(values, description),
        "played": None if played is None else arm_to_json(played),
        "unrelated": unrelated,
    }


def _table_to_json(
    problem: Problem, frame: Any, arm: ArmLike | None, source: str | None, skip_bad: bool
) -> Json:
    """Check a table here, and return what to send of it; nothing if no row is good."""
    if frame is None:
        return {}
    checked = as_checked_records(problem, frame, arm)
    if checked.bad_count and not check_flag("skip_bad", skip_bad):
        raise BadRowsError(checked)
    if not len(checked.batch):
        return {}
    return {**records_to_json(checked), "source": source, "skip_bad": skip_bad}


def _warn(data: Mapping[str, Any]) -> None:
    """Repeat the warnings of the server."""
    for note in data.get("notes") or ():
        warnings.warn(str(note), DowiseWarning, stacklevel=3)
