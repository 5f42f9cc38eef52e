"""A database of each schema version, as it was written then: today's code must read them all.

    python tests/experiment/golden/make.py

Makes schema-N.db for today's version N. Once N is released its file is never made again.
"""

from __future__ import annotations

from pathlib import Path

from dowise.experiment.event import KINDS, Event
from dowise.experiment.storage import Snapshot, open_storage
from dowise.experiment.storage.schema import VERSION

FOLDER = Path(__file__).parent

BODIES = {
    "created": {
        "problem": {"graph": "C -> X -> Y; C -> Y", "reward": "Y", "context": ["C"]},
        "policy": "ids", "options": {"samples": 1000}, "seed": "171",
    },
    "asked": {
        "id": 1, "context": {"C": "1"}, "arm": {"X": "1"}, "probabilities": [0.25, 0.75],
        "known": 1, "request_id": "ünï-☃",
    },
    "told": {"id": 1, "values": {"Y": "1"}},
    "amended": {"id": 1, "values": {"Y": "0"}, "reason": "typo"},
    "withdrawn": {"id": 2, "reason": "left"},
    "revised": {"policy": "ts", "reason": "simpler"},
    "imported": {"rows": 2, "columns": {"X": "eJwzNAQAAJMAYg==", "Y": "eJwzMAQAAJIAYQ=="}},
    "erased": {"ids": [1], "numbers": [2, 3, 4], "reason": "asked to"},
}  # fmt: skip
ERASED = (2, 3, 4)


def make(path: Path) -> None:
    """Two experiments: one with an event of each kind, some erased; one with a snapshot."""
    path.unlink(missing_ok=True)
    storage = open_storage(path, create=True)
    last = None
    with storage.writing("ward 7") as block:
        for turn, kind in enumerate(KINDS):
            last = Event.after(
                last, "ward 7", kind, f"2026-01-0{turn + 1}T08:00:00Z", "Zoë", BODIES[kind]
            )
            block.append([last])
        block.erase(ERASED)
    first = Event.after(None, "ward 8", "created", "2026-02-01T08:00:00Z", "ann", BODIES["created"])
    with storage.writing("ward 8") as block:
        block.append([first])
    storage.keep_snapshot(Snapshot("ward 8", 1, first.hash, b"\x00\x01counts"))
    storage.close()


if __name__ == "__main__":
    make(FOLDER / f"schema-{VERSION}.db")
