"""State of an experiment, folded from its journal: configurations, cases, imports.

Applying events imports no code and learns nothing; the policy learns in `replay`, which follows
`log`. Cases are replaced and never changed, so that copies of the state can share them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from hashlib import sha256
from numbers import Integral
from typing import Any, NamedTuple

from dowise.errors import DowiseError, NotFoundError
from dowise.experiment.case import Case
from dowise.experiment.config import ExperimentConfig
from dowise.experiment.event import DamagedEventError, Event, Head
from dowise.problem import Intervention

FORMAT = 1
"""Version of the payloads of events; a journal with a newer one is refused."""
_DIGEST_MODULUS = 2**128


class Changes(NamedTuple):
    """Changes between two states."""

    cases: list[Case]
    imports: list[int]


class ExperimentState:
    """State of an experiment after its first `head.number` events."""

    config: ExperimentConfig
    """Configuration of the next decision."""
    seed: int
    build_info: dict[str, str]
    """Versions and processor that made the last decision."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.head: Head | None = None
        self.at = ""
        """Time of the last event."""
        self.cases: dict[int, Case] = {}
        self.pending: dict[int, Case] = {}
        """Cases whose reward has not been told, oldest first."""
        self.requests: dict[str, list[int]] = {}
        """Decisions of each request."""
        self.imports: list[int] = []
        """Numbers of the events that imported records."""
        self.import_digests: dict[str, int] = {}
        self.imported = 0
        """Number of imported records."""
        self.configs: list[tuple[int, ExperimentConfig]] = []
        """Every configuration, with the number of the event that introduced it."""
        self.log: list[int] = []
        """Ids of the cases that were changed, in order."""
        self.changes = 0
        """Number of entries of `log` that belong to a copy."""
        self.last_asked = 0
        """Number of the event of the last decision."""
        self._arms: dict[tuple[tuple[str, str], ...], Intervention] = {}
        self._rows: dict[int, str] = {}
        self._digest = 0
        self._unhashed: dict[int, Case] = {}  # cases that changed since they were hashed

    @property
    def number(self) -> int:
        """Number of the last event; 0 if there is none."""
        return 0 if self.head is None else self.head.number

    def config_at(self, number: int) -> ExperimentConfig:
        """Return the configuration at the time of an event."""
        return next(config for since, config in reversed(self.configs) if since <= number)

    def copy(self) -> ExperimentState:
        """Return a copy for queries, which later events do not change.

        It shares the cases, and the log, which only grows: its first `changes` entries belong to
        the copy. Events can't be applied to it.
        """
        copied = ExperimentState(self.name)
        copied.head, copied.at, copied.imported = self.head, self.at, self.imported
        copied.cases, copied.pending, copied.configs = (
            {**self.cases},
            {**self.pending},
            [*self.configs],
        )
        copied.imports, copied.log, copied.changes = [*self.imports], self.log, len(self.log)
        copied.config, copied._unhashed = self.config, copied.cases
        return copied

    def snapshot_rows(self) -> dict[int, str]:
        """Return every case as a line of a snapshot."""
        self.refresh_digest()
        return self._rows

    def digest(self) -> str:
        """Return the sum of the hashes of all cases, in hexadecimal."""
        self.refresh_digest()
        return f"{self._digest:032x}"

    def refresh_digest(self) -> None:
        """Hash the cases that have changed, so that the next `digest` is fast."""
        for number, case in self._unhashed.items():
            self._hash_row(number, case.snapshot_row())
        self._unhashed = {}

    def _hash_row(self, number: int, row: str) -> None:
        digest, previous = self._digest, self._rows.get(number)
        if previous is not None:
            digest -= int.from_bytes(sha256(previous.encode()).digest()[:16])
        digest += int.from_bytes(sha256(row.encode()).digest()[:16])
        self._digest, self._rows[number] = digest % _DIGEST_MODULUS, row

    def case(self, number: object) -> Case:
        """Return a decision by its number."""
        case = None
        if isinstance(number, Integral) and not isinstance(number, bool):
            case = self.cases.get(int(number))
        if case is None:
            existing = f"there are 1 to {len(self.cases)}" if self.cases else "there is none yet"
            raise NotFoundError(
                f"there is no decision {number!r} in {self.name}: {existing}",
                code="unknown-decision",
            )
        return case

    def apply_all(self, events: Iterable[Event]) -> None:
        """Apply the next events, and verify the hash chain."""
        for event in events:
            if not event.follows(self.head):
                raise DamagedEventError(
                    f"event {event.number} of {self.name} does not follow from the events before "
                    "it: the journal was changed; an audit shows where"
                )
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Apply the next event."""
        handle = _HANDLERS.get(event.kind)
        if handle is None:
            raise DowiseError(
                f"event {event.number} of {self.name} is of kind {event.kind!r}, which this "
                "version of dowise does not know: update dowise",
                code="other-version",
            )
        try:
            if event.salt:
                handle(self, event, event.parse_body())
            elif event.kind == "asked":  # erased
                number = len(self.cases) + 1
                self._add(Case(number, event.number, "", {}, Intervention(), status="erased"))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DamagedEventError(
                f"event {event.number} of {self.name} can't be read ({error!r:.80}): run an audit"
            ) from error
        self.head, self.at = Head(event.number, event.hash), event.at

    def restore(self, rows: list[str], told_at: list[dict[str, int]]) -> None:
        """Add the cases of a snapshot."""
        cases = json.loads(f"[{','.join(rows)}]")
        for row, data, events in zip(rows, cases, told_at, strict=True):
            case = Case.from_snapshot_row(data, events, self._arm)
            self._check_next(case.id)  # since the digest does not depend on the order
            self._add(case)
            self._hash_row(case.id, row)
        self._unhashed = {}

    # -- one handler per kind -----------------------------------------------------------------

    def _created(self, event: Event, payload: dict[str, Any]) -> None:
        if payload["format"] > FORMAT:
            raise DowiseError(
                f"{self.name} was created by a newer dowise (format {payload['format']}): update "
                "dowise",
                code="other-version",
            )
        self.seed, self.build_info = int(payload["seed"]), payload["maker"]
        self._configure(event, payload)

    def _revised(self, event: Event, payload: dict[str, Any]) -> None:
        self._configure(event, payload)
        for case in [*self.pending.values()]:  # the new reward may have been told already
            if self.config.problem.reward in case.values:
                self._update(case.copy(), event)

    def _imported(self, event: Event, payload: dict[str, Any]) -> None:
        self.imports.append(event.number)
        self.import_digests[payload["digest"]] = event.number
        self.imported += payload["records"]

    def _asked(self, event: Event, payload: dict[str, Any]) -> None:
        self.build_info = payload.get("maker", self.build_info)
        number = payload["decision"]
        self._check_next(number)
        case = Case(
            id=number,
            event=event.number,
            asked_at=event.at,
            context={**payload["context"]},
            asked=self._arm(payload["arm"]),
            is_restricted=payload["allowed"] is not None,
            request_id=payload["request_id"],
            last_event=event.number,
        )
        self._add(case)

    def _told(self, event: Event, payload: dict[str, Any]) -> None:
        case = self.cases[payload["decision"]].copy()
        for name, label in payload["values"].items():
            case.tell(name, label, event.number)
        if "played" in payload:
            self._play(case, payload)
        self._update(case, event)

    def _amended(self, event: Event, payload: dict[str, Any]) -> None:
        case = self.cases[payload["decision"]].copy()
        for name, label in payload["values"].items():
            recorded = case.context if name in case.context else case.values
            if name in recorded:
                case.superseded.setdefault(name, []).append(recorded[name])
            if recorded is case.context:
                case.context[name] = label
            else:
                case.tell(name, label, event.number)
        if "played" in payload:
            self._play(case, payload)
        self._update(case, event)

    def _withdrawn(self, event: Event, payload: dict[str, Any]) -> None:
        case = self.cases[payload["decision"]].copy()
        case.status = "withdrawn"
        self._update(case, event)

    def _erased(self, event: Event, payload: dict[str, Any]) -> None:
        case = self.cases[payload["decision"]]
        if case.request_id in self.requests:
            self.requests[case.request_id].remove(case.id)
        blank = Case(case.id, case.event, "", {}, Intervention(), status="erased")
        self._update(blank, event)

    def _configure(self, event: Event, payload: dict[str, Any]) -> None:
        self.config = ExperimentConfig.from_json(payload)
        self.configs.append((event.number, self.config))

    def _play(self, case: Case, payload: dict[str, Any]) -> None:
        """Record that another arm was played."""
        for name, label in case.arm.items():
            case.superseded.setdefault(name, []).append(label)
        case.played = None if payload["played"] is None else self._arm(payload["played"])
        case.is_unrelated = bool(payload.get("unrelated", False))

    def _arm(self, settings: dict[str, str]) -> Intervention:
        """Return the intervention with these settings; equal settings share one object."""
        key = tuple(settings.items())
        if key not in self._arms:
            self._arms[key] = Intervention(settings)
        return self._arms[key]

    def _check_next(self, number: int) -> None:
        if number != len(self.cases) + 1:
            raise ValueError(f"decision {number} instead of {len(self.cases) + 1}")

    def _add(self, case: Case) -> None:
        self.last_asked = case.event
        if case.request_id is not None:
            self.requests.setdefault(case.request_id, []).append(case.id)
        self._replace(case)

    def _update(self, case: Case, event: Event) -> None:
        case.last_event = event.number
        if case.status == "pending" and self.config.problem.reward in case.values:
            case.status = "done"
        self._replace(case)

    def _replace(self, case: Case) -> None:
        self.cases[case.id] = case
        if case.status == "pending":
            self.pending[case.id] = case
        else:
            self.pending.pop(case.id, None)
        self.log.append(case.id)
        self._unhashed[case.id] = case


_HANDLERS: dict[str, Callable[[ExperimentState, Event, dict[str, Any]], None]] = {
    "created": ExperimentState._created,
    "asked": ExperimentState._asked,
    "told": ExperimentState._told,
    "amended": ExperimentState._amended,
    "withdrawn": ExperimentState._withdrawn,
    "revised": ExperimentState._revised,
    "imported": ExperimentState._imported,
    "erased": ExperimentState._erased,
}
