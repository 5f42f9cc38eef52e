"""Order in which data arrived, for what depends on it: e-values and predictive likelihoods.

Data arrive in *pieces*. A record that is told at once is one piece; a decision that is told in two
tells gives two pieces, the second of which has the values of both. Pieces are sorted by *place*:

- in a live experiment the place of a piece is the event that told it, so that the sequence follows
  from the journal alone: it is the same in every process, and after reopening from a snapshot. An
  import gives a piece per row, in their order. A corrected value keeps its place;
- elsewhere it is the order of learning.

Later pieces of a record, and pieces between them, may depend on earlier ones. A consumer that
depends on the order keeps its result for the first pieces, and continues from `changed_from`:

>>> from dowise.problem import load_problem
>>> problem = load_problem("task1")
>>> arrivals = Arrivals(problem)
>>> for z in 0, 1, 0:
...     arrivals.append(problem.record("do(X=1)", {"Z": z, "Y": 1}))
>>> len(arrivals), arrivals.changed_from
(3, 0)
>>> arrivals.mark_read()
>>> arrivals.append(problem.record("do()", {"X": 0, "Z": 0, "Y": 1}))
>>> arrivals.changed_from                                        # only appended to
3
>>> arrivals.remove(problem.record("do(X=1)", {"Z": 1, "Y": 1}))
>>> len(arrivals), arrivals.changed_from
(3, 1)
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np

from dowise._core.types import AnyArray, BoolArray, IntArray
from dowise.errors import DowiseError
from dowise.graph.adjacency import mask_of
from dowise.problem import Intervention, Problem, Record
from dowise.problem.domains import MISSING
from dowise.problem.record import RecordBatch, equal_columns

ALL = -1
"""Bit set of all variables: everything that a piece's record has was told by this piece."""

PLACES_PER_EVENT = 2**32
"""Distance of the places of two events: the rows of an import have places of their own."""


class Piece(NamedTuple):
    """Piece of a record: what was known of the record when the piece had arrived."""

    codes: IntArray
    """Code of each variable's value, MISSING if it was not known yet."""
    cut: int
    """Variables that were set, as bits."""
    told: int
    """Variables whose values this piece told, as bits; others were known before the decision, or
    were told by earlier pieces. ALL if no observed value outside the context was known before."""
    continues: bool
    """True if an earlier piece of this record is in the sequence."""


class PieceArrays(NamedTuple):
    """Part of a sequence: its distinct pieces, and the index of the piece at each position."""

    codes: IntArray
    """Codes of the distinct pieces, a row per variable and a column per piece."""
    cuts: list[int]
    told: list[int]
    """As in `Piece`, of each distinct piece."""
    continues: BoolArray
    order: IntArray
    """Index of the distinct piece at each position."""


Key = tuple[int, int, bool, bytes]
"""(variables that were set, variables told, whether it continues, bytes of the codes)."""


class Arrivals:
    """Sequence of pieces in their order of arrival.

    Equal pieces are stored once; a position takes 12 bytes.

    Parameters
    ----------
    problem : Problem
        Problem of the records.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.changed_from = 0
        """First position that changed since `mark_read`; the length if nothing changed.

        Pieces before it are those that were read.
        """
        self.records = 0
        """Number of records."""
        self._context = mask_of(problem.context_positions.tolist())
        self._order, self._places = array("i"), array("q")
        self._numbered: dict[int, tuple[int, ...]] = {}  # places of a decision's pieces
        self._keys: list[Key | None] = []
        self._uses: list[int] = []
        self._slots: dict[Key, int] = {}
        self._free: list[int] = []
        self._cuts: dict[Intervention, int] = {}

    def __len__(self) -> int:
        """Return the number of pieces."""
        return len(self._order)

    # -- order of learning -------------------------------------------------------------------------

    def append(self, record: Record) -> None:
        """Add a record at the end, as one piece."""
        self._insert(len(self), self._next_place(), self._whole_key(record))

    def extend(self, batch: RecordBatch, place: int | None = None) -> None:
        """Add the records of a batch next to each other, each as one piece.

        Parameters
        ----------
        batch : RecordBatch
            Records of the problem.
        place : int, optional
            Place of the first record; those of the others follow. Defaults to the end.
        """
        if not len(batch):
            return
        place = self._next_place() if place is None else place
        position = bisect_left(self._places, place)
        sets, index = batch.by_set()
        first, group = equal_columns([index, *batch.codes])
        times = np.bincount(group).tolist()
        slots = np.empty(len(first), dtype=np.int32)
        for i in np.argsort(first):  # by first occurrence, so that slots do not depend on the batch
            column = batch.codes[:, first[i]]
            key = sets[index[first[i]]], ALL, False, _to_bytes(column)
            slots[i] = self._acquire(key, times[i])
        self._order[position:position] = array("i", slots[group].tobytes())
        places = np.arange(place, place + len(batch), dtype=np.int64)
        self._places[position:position] = array("q", places.tobytes())
        self.records += len(batch)
        self.changed_from = min(self.changed_from, position)

    def remove(self, record: Record) -> None:
        """Remove the last record that is equal to this one and was appended.

        Raises
        ------
        DowiseError
            If there is none.
        """
        self.check_has(record)
        slot = self._slots[self._whole_key(record)]
        positions = np.flatnonzero(np.frombuffer(self._order, dtype=np.int32) == slot)
        self._delete(int(positions[-1]))

    def check_has(self, record: Record) -> None:
        """Raise `DowiseError` if no record that is equal to this one was appended."""
        if self._whole_key(record) not in self._slots:
            raise DowiseError(
                f"{record!r} can't be retracted: it was not learned", code="not-learned"
            )

    # -- order of events ---------------------------------------------------------------------------

    def place(self, number: int, pieces: Sequence[tuple[int, Piece]]) -> None:
        """Replace all pieces of a decision: corrected ones in place, new ones where they belong.

        Parameters
        ----------
        number : int
            Number of the decision.
        pieces : sequence of (int, Piece)
            Place of each piece, rising, and the piece. Empty to remove the decision.
        """
        keys = {place: self._key(piece) for place, piece in pieces}
        for place in self._numbered.pop(number, ()):
            position = bisect_left(self._places, place)
            if place not in keys:
                self._delete(position)
                continue
            slot, key = self._order[position], keys.pop(place)
            before = self._keys[slot]
            assert before is not None
            if before != key:
                self.records += before[2] - key[2]
                self._release(slot)
                self._order[position] = self._acquire(key)
                self.changed_from = min(self.changed_from, position)
        for place, key in keys.items():
            self._insert(bisect_left(self._places, place), place, key)
        if pieces:
            self._numbered[number] = tuple(place for place, _ in pieces)

    def position(self, place: int) -> int:
        """Return the number of pieces whose places are before this one."""
        return bisect_left(self._places, place)

    # -- reading -----------------------------------------------------------------------------------

    def sets(self) -> Iterator[int]:
        """Yield the variables that were set, as bits, of all distinct pieces."""
        return (key[0] for key in self._slots)

    def record_number(self, position: int) -> int:
        """Return the number, counted from 1, of the record that a position belongs to."""
        pieces = self.arrays(0, position + 1)
        return max(int((~pieces.continues[pieces.order]).sum()), 1)

    def mark_read(self) -> None:
        """Declare that all pieces have been read: `changed_from` is their number."""
        self.changed_from = len(self)

    def pieces(self, start: int = 0) -> Iterator[Piece]:
        """Yield the pieces from a position on; the codes must not be changed."""
        arrays = self.arrays(start)
        columns = np.ascontiguousarray(arrays.codes.T)
        distinct = [*zip(columns, arrays.cuts, arrays.told, arrays.continues.tolist(), strict=True)]
        for i in arrays.order.tolist():
            yield Piece(*distinct[i])

    def arrays(self, start: int = 0, stop: int | None = None) -> PieceArrays:
        """Return the pieces at the positions from `start` to before `stop`."""
        part = np.array(self._order[start:stop], dtype=np.int64)
        slots, order = np.unique(part, return_inverse=True)
        keys = [key for slot in slots.tolist() if (key := self._keys[slot]) is not None]
        raw = np.frombuffer(b"".join(key[3] for key in keys), dtype=np.int32)
        codes = raw.reshape(len(keys), len(self.problem.graph)).T.astype(np.int64)
        return PieceArrays(
            codes,
            [key[0] for key in keys],
            [key[1] for key in keys],
            np.array([key[2] for key in keys], dtype=bool),
            order.reshape(-1),
        )

    def earlier_codes(self, piece: Piece) -> IntArray:
        """Return what was known of a piece's record before the piece arrived.

        That is what was set, the context, and what earlier pieces told. A consumer that learned the
        earlier pieces of the record (`continues`) has learned a record of these codes.
        """
        told = piece.told & ~piece.cut & ~self._context
        codes = piece.codes.copy()
        for v in range(len(codes)):
            if told >> v & 1:
                codes[v] = MISSING
        return codes

    def copy(self) -> Self:
        """Return an independent copy."""
        copied = type(self)(self.problem)
        copied.changed_from, copied.records = self.changed_from, self.records
        copied._order, copied._places = self._order[:], self._places[:]
        copied._numbered, copied._slots = {**self._numbered}, {**self._slots}
        copied._keys, copied._uses, copied._free = [*self._keys], [*self._uses], [*self._free]
        return copied

    # -- storage -----------------------------------------------------------------------------------

    def _next_place(self) -> int:
        return self._places[-1] + PLACES_PER_EVENT if self._places else 0

    def _key(self, piece: Piece) -> Key:
        told = piece.told
        if told != ALL:
            known = mask_of(np.flatnonzero(piece.codes != MISSING).tolist())
            observed = known & ~piece.cut & ~self._context
            told = ALL if observed & ~told == 0 else observed & told
        return piece.cut, told, piece.continues, _to_bytes(piece.codes)

    def _whole_key(self, record: Record) -> Key:
        cut = self._cuts.get(record.arm)
        if cut is None:
            cut = self._cuts[record.arm] = self.problem.graph.mask(record.arm)
        return cut, ALL, False, _to_bytes(record.codes)

    def _insert(self, position: int, place: int, key: Key) -> None:
        self._order.insert(position, self._acquire(key))
        self._places.insert(position, place)
        self.records += not key[2]
        self.changed_from = min(self.changed_from, position)

    def _delete(self, position: int) -> None:
        slot = self._order.pop(position)
        del self._places[position]
        key = self._keys[slot]
        assert key is not None
        self.records -= not key[2]
        self._release(slot)
        self.changed_from = min(self.changed_from, position)

    def _acquire(self, key: Key, times: int = 1) -> int:
        slot = self._slots.get(key)
        if slot is None:
            if self._free:
                slot = self._free.pop()
                self._keys[slot], self._uses[slot] = key, 0
            else:
                slot = len(self._keys)
                self._keys.append(key)
                self._uses.append(0)
            self._slots[key] = slot
        self._uses[slot] += times
        return slot

    def _release(self, slot: int) -> None:
        """Forget a piece that is not used any more: an erased value must not stay in memory."""
        self._uses[slot] -= 1
        if not self._uses[slot]:
            key = self._keys[slot]
            assert key is not None
            del self._slots[key]
            self._keys[slot] = None
            self._free.append(slot)


def _to_bytes(codes: AnyArray) -> bytes:
    return codes.astype(np.int32).tobytes()


def pieces_of(
    record: Record, told_at: Sequence[tuple[int, int]], known_before: int = 0
) -> list[tuple[int, Piece]]:
    """Return the pieces of a decision with their places, for `Arrivals.place`.

    Parameters
    ----------
    record : Record
        Everything that is known of the decision now.
    told_at : sequence of (int, int)
        (event, variable) of each observed value outside the context.
    known_before : int, default 0
        Variables whose values were known when the arm was chosen, as bits.
    """
    events = sorted({event for event, _ in told_at})
    cut = record.problem.graph.mask(record.arm)
    if len(events) == 1 and not known_before:
        return [(events[0] * PLACES_PER_EVENT, Piece(record.codes, cut, ALL, False))]
    pieces: list[tuple[int, Piece]] = []
    codes = record.codes.copy()
    codes[[v for _, v in told_at]] = MISSING
    for event in events:
        new = [v for at, v in told_at if at == event]
        codes = codes.copy()
        codes[new] = record.codes[new]
        piece = Piece(codes, cut, mask_of(new), bool(pieces))
        pieces.append((event * PLACES_PER_EVENT, piece))
    return pieces
