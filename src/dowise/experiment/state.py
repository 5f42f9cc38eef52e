"""The fold of a journal, what its events amount to: the config, the cases, the imports.

Folding parses no code and learns nothing: what policies make of the cases is the learner's part
(`dowise.experiment.replay`), which follows `log`. A case is never changed, but another one takes
its place: who has taken the cases for a look may go on with them while others write.
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
"""The version of what events say; a journal with a newer one is refused."""
_MARKS = 2**128


class ExperimentState:
    """The state of an experiment after its first so many events."""

    seed: int
    maker: dict[str, str]
    """The versions and the processor that the last decision was made by."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.head: Head | None = None
        self.at = ""
        """The time of the last event."""
        self.cases: dict[int, Case] = {}
        self.pending: dict[int, Case] = {}
        """Those of them whose reward was not told yet, oldest first."""
        self.requests: dict[str, list[int]] = {}
        """The decisions of each request."""
        self.imports: list[int] = []
        """The numbers of the events that brought records in."""
        self.import_digests: dict[str, int] = {}
        self.imported = 0
        """How many records these were."""
        self.configs: list[tuple[int, ExperimentConfig]] = []
        """What held from which event on."""
        self.log: list[int] = []
        """The cases that were changed, in order; learners follow it."""
        self.changes = 0
        """How much of the log belongs to a copy (`copy`)."""
        self.last_asked = 0
        """The number of the event of the last decision."""
        self._arms: dict[tuple[tuple[str, str], ...], Intervention] = {}
        self._rows: dict[int, str] = {}
        self._marks = 0
        self._unwritten: dict[int, Case] = {}  # cases that have changed since their row was made

    @property
    def config(self) -> ExperimentConfig:
        """What holds for the next decision."""
        return self.configs[-1][1]

    def config_at(self, number: int) -> ExperimentConfig:
        """What held when an event was written."""
        return next(config for since, config in reversed(self.configs) if since <= number)

    def copy(self) -> ExperimentState:
        """Return a copy for queries, which no later event changes; events can't be applied to it.

        It shares the log, which only grows: `changes` is how much of it belongs to the copy.
        """
        twin = ExperimentState(self.name)
        twin.head, twin.at, twin.imported = self.head, self.at, self.imported
        twin.cases, twin.pending, twin.configs = {**self.cases}, {**self.pending}, [*self.configs]
        twin.imports, twin.log, twin.changes = [*self.imports], self.log, len(self.log)
        return twin

    def snapshot_rows(self) -> dict[int, str]:
        """Return every case as a line of a snapshot."""
        self.refresh_digest()
        return self._rows

    def digest(self) -> str:
        """Return the sum of a hash of every case, in hexadecimal: equal digests, equal cases."""
        self.refresh_digest()
        return f"{self._marks:032x}"

    def refresh_digest(self) -> None:
        """Hash the cases that have changed since, so that the next `digest` need not."""
        for number, case in self._unwritten.items():
            self._write_row(number, case.row())
        self._unwritten.clear()

    @property
    def next_id(self) -> int:
        """The number of the next decision."""
        return len(self.cases) + 1

    def case(self, number: object) -> Case:
        """A decision by its number."""
        found = None
        if isinstance(number, Integral) and not isinstance(number, bool):
            found = self.cases.get(int(number))
        if found is None:
            there = f"there are 1 to {len(self.cases)}" if self.cases else "nothing was asked yet"
            raise NotFoundError(f"there is no decision {number!r} in {self.name}: {there}")
        return found

    def apply_all(self, events: Iterable[Event]) -> None:
        """Take in the events that follow, each of which must follow from the one before."""
        for event in events:
            if not event.follows(self.head):
                raise DamagedEventError(
                    f"event {event.number} of {self.name} does not follow from what is before it: "
                    "the journal was changed; `audit` says where"
                )
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Take in one event that follows."""
        handle = _HANDLERS.get(event.kind)
        if handle is None:
            raise DowiseError(
                f"event {event.number} of {self.name} is {event.kind!r}, which this dowise does "
                "not know: update dowise"
            )
        try:
            if not event.is_erased:
                handle(self, event, event.parsed())
            elif event.kind == "asked":
                self._add(Case(self.next_id, event.number, "", {}, Intervention(), status="erased"))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DamagedEventError(
                f"event {event.number} of {self.name} can't be read ({error!r:.80}): run an audit"
            ) from error
        self.head, self.at = event.head, event.at

    def restore(self, rows: list[str]) -> None:
        """Take over the cases of a snapshot."""
        for row, page in zip(rows, json.loads(f"[{','.join(rows)}]"), strict=True):
            case = Case.from_snapshot_row(page, self._arm)
            if case.id != self.next_id:  # marks don't tell one order from another
                raise ValueError(f"decision {case.id} where {self.next_id} is next")
            self._add(case)
            self._write_row(case.id, row)
        self._unwritten.clear()

    # -- one handler a kind -------------------------------------------------------------------

    def _created(self, event: Event, says: dict[str, Any]) -> None:
        if says["format"] > FORMAT:
            raise DowiseError(
                f"{self.name} was made by a newer dowise (format {says['format']}): update dowise"
            )
        self.configs.append((event.number, ExperimentConfig.from_json(says)))
        self.seed, self.maker = int(says["seed"]), says["maker"]

    def _revised(self, event: Event, says: dict[str, Any]) -> None:
        self.configs.append((event.number, ExperimentConfig.from_json(says)))
        for case in [*self.pending.values()]:  # the reward may be another, and told already
            if self.config.problem.reward in case.values:
                self._update(self._another(case.id), event)

    def _imported(self, event: Event, says: dict[str, Any]) -> None:
        self.imports.append(event.number)
        self.import_digests[says["digest"]] = event.number
        self.imported += says["records"]

    def _asked(self, event: Event, says: dict[str, Any]) -> None:
        self.maker = says.get("maker", self.maker)
        if says["decision"] != self.next_id:
            raise ValueError(f"decision {says['decision']} where {self.next_id} is next")
        case = Case(
            self.next_id, event.number, event.at, {**says["context"]}, self._arm(says["arm"]),
            says["allowed"] is not None, says["request_id"], last_event=event.number,
        )  # fmt: skip
        self._add(case)

    def _told(self, event: Event, says: dict[str, Any]) -> None:
        case = self._another(says["decision"])
        case.values.update(says["values"])
        self._took_place(case, says)
        self._update(case, event)

    def _amended(self, event: Event, says: dict[str, Any]) -> None:
        case = self._another(says["decision"])
        for name, label in says["values"].items():
            said = case.context if name in case.context else case.values
            if name in said:
                case.superseded.setdefault(name, []).append(said[name])
            said[name] = label
        self._took_place(case, says)
        self._update(case, event)

    def _withdrawn(self, event: Event, says: dict[str, Any]) -> None:
        case = self._another(says["decision"])
        case.status = "withdrawn"
        self._update(case, event)

    def _erased(self, event: Event, says: dict[str, Any]) -> None:
        case = self.cases[says["decision"]]
        if case.request_id in self.requests:
            self.requests[case.request_id].remove(case.id)
        blank = Case(case.id, case.event, "", {}, Intervention(), status="erased")
        self.cases[case.id] = blank
        self._update(blank, event)

    def _another(self, number: int) -> Case:
        """One in the place of a case, to be changed."""
        case = self.cases[number] = self.cases[number].copy()
        return case

    def _took_place(self, case: Case, says: dict[str, Any]) -> None:
        if "played" in says:
            for name, label in case.arm.items():
                case.superseded.setdefault(name, []).append(label)
            case.played = None if says["played"] is None else self._arm(says["played"])
            case.is_unrelated = bool(says.get("unrelated", False))

    def _arm(self, settings: dict[str, str]) -> Intervention:
        """An intervention; the same object for the same settings, of which there are few."""
        key = tuple(settings.items())
        if key not in self._arms:
            self._arms[key] = Intervention(settings)
        return self._arms[key]

    def _add(self, case: Case) -> None:
        self.cases[case.id], self.last_asked = case, case.event
        if case.request_id is not None:
            self.requests.setdefault(case.request_id, []).append(case.id)
        self._changed(case)

    def _update(self, case: Case, event: Event) -> None:
        case.last_event = event.number
        if case.status == "pending" and self.config.problem.reward in case.values:
            case.status = "done"
        self._changed(case)

    def _changed(self, case: Case) -> None:
        if case.status == "pending":
            self.pending[case.id] = case
        else:
            self.pending.pop(case.id, None)
        self.log.append(case.id)
        self._unwritten[case.id] = case

    def _write_row(self, number: int, row: str) -> None:
        before = self._rows.get(number)
        self._rows[number] = row
        self._marks += _mark(row) - (0 if before is None else _mark(before))
        self._marks %= _MARKS


class Changes(NamedTuple):
    """What became known since somebody last looked."""

    cases: list[Case]
    imports: list[int]


class Cursor:
    """How far somebody who follows an experiment has come."""

    def __init__(self) -> None:
        self._cases, self._imports = 0, 0

    def news(self, state: ExperimentState) -> Changes:
        """What was changed since the last call."""
        changed = [state.cases[number] for number in dict.fromkeys(state.log[self._cases :])]
        imports = state.imports[self._imports :]
        self._cases, self._imports = len(state.log), len(state.imports)
        return Changes(changed, imports)


def _mark(row: str) -> int:
    return int.from_bytes(sha256(row.encode()).digest()[:16])


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
