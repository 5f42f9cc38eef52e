"""Evidence report: what records say about the edges that a graph lacks, as numbers and text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from dowise._core.codec import array_from_json
from dowise._core.types import BoolArray, FloatArray, IntArray
from dowise.errors import import_extra
from dowise.graph.adjacency import closure
from dowise.graph.edges import EdgeName, as_text
from dowise.problem import Problem

if TYPE_CHECKING:
    from dowise.belief.belief import Belief


CLOSE = 20.0
"""An alternative within this factor of the best one is suspected with it."""
LIKELY = 0.25
"""A soft edge is drawn as suspected if it is likelier than this, and than a priori."""
# Kass & Raftery (1995): strength of a Bayes factor, from this size on.
_SOMETHING = 3.0
_WORDS = (
    (150.0, "very strongly for it"),
    (20.0, "strongly for it"),
    (_SOMETHING, "for it"),
    (1 / 3, "nothing"),
    (0.0, "against it"),
)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Edges that the graph lacks, with Bayes factors and e-values, and the alarm, if any."""

    problem: Problem
    edges: tuple[EdgeName, ...]
    log_bayes_factors: FloatArray
    log_e_values: FloatArray
    alarmed: BoolArray
    scored: IntArray
    """Number of values that each edge was judged by."""
    records: int
    since: int | None
    """Number of the record, counted from 1, at which the alarm was first raised."""
    alpha: float
    strict: bool
    recomputed: bool
    """True if a record was retracted: then `since` is an upper limit."""

    @cached_property
    def ranking(self) -> IntArray:
        """Alternatives by descending Bayes factor."""
        ranking: IntArray = np.argsort(-self.log_bayes_factors, kind="stable")
        return ranking

    @property
    def alarms(self) -> tuple[str, ...]:
        """Edges that caused the alarm; none without an alarm. Alarms stay."""
        return tuple(str(self.edges[a]) for a in self.ranking if self.alarmed[a])

    @cached_property
    def suspected(self) -> tuple[str, ...]:
        """Edges to draw as doubtful after an alarm.

        These are the alarmed edges, all within a factor of 20 of the best, and with u -> v also
        u <-> v and vice versa: they can't be told apart until u is set. An arrow that would close a
        cycle with those before it is left out.
        """
        if self.since is None:
            return ()
        least = self.log_bayes_factors.max() - log(CLOSE)
        ranked = sorted(self.ranking, key=lambda a: not self.alarmed[a])
        near = [a for a in ranked if self.alarmed[a] or self.log_bayes_factors[a] >= least]
        graph, chosen = self.problem.possible, dict[str, None]()
        children = list(graph.adjacency.children)
        for edge in (edge for a in near for edge in self._alike(a)):
            one, other = (self.problem.positions[name] for name in (edge.left, edge.right))
            if not edge.is_bidirected:
                if closure(1 << other, children) >> one & 1:
                    continue
                children[one] |= 1 << other
            chosen[str(edge)] = None
        return tuple(chosen)

    def _alike(self, a: int) -> Iterator[EdgeName]:
        """Yield this edge, and the one that can't be told apart from it."""
        edge = self.edges[a]
        yield edge
        if not edge.is_bidirected:
            tie = EdgeName.from_ends(edge.left, "<->", edge.right)
            yield from [tie] * (str(tie) not in self.problem.possible.edge_texts)
            return
        arrows = {EdgeName.from_ends(edge.left, arrow, edge.right) for arrow in ("->", "<-")}
        yield from [self.edges[b] for b in self.ranking if self.edges[b] in arrows][:1]

    def frame(self) -> Any:
        """Return a pandas table, by descending Bayes factor.

        Columns: edge, bayes_factor, log_bayes_factor, e_value, log_e_value, alarm, and values, the
        number of values of variables that the edge was judged by.
        """
        pandas = import_extra("pandas", "simulate", "a table of the evidence")
        order = self.ranking
        return pandas.DataFrame(
            {
                "edge": [str(self.edges[a]) for a in order],
                "bayes_factor": _exp(self.log_bayes_factors[order]),
                "log_bayes_factor": self.log_bayes_factors[order],
                "e_value": _exp(self.log_e_values[order]),
                "log_e_value": self.log_e_values[order],
                "alarm": self.alarmed[order],
                "values": self.scored[order],
            }
        )

    def as_dict(self) -> dict[str, Any]:
        """Return JSON data; a number beyond floats is "inf"."""
        factors, e_values = _exp(self.log_bayes_factors), _exp(self.log_e_values)
        return {
            "alarms": list(self.alarms),
            "since": self.since,
            "suspected": list(self.suspected),
            "alternatives": [
                {
                    "edge": str(self.edges[a]),
                    "bayes_factor": _finite(factors[a]),
                    "log_bayes_factor": float(self.log_bayes_factors[a]),
                    "e_value": _finite(e_values[a]),
                    "log_e_value": float(self.log_e_values[a]),
                    "alarm": bool(self.alarmed[a]),
                    "values": int(self.scored[a]),
                }
                for a in self.ranking
            ],
            "records": self.records,
            "alpha": self.alpha,
            "strict": self.strict,
            "recomputed": self.recomputed,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], problem: Problem) -> Evidence:
        """Inverse of `as_dict`; alternatives are then in the order of the data."""
        alternatives = data["alternatives"]
        return cls(
            problem,
            tuple(EdgeName.parse(item["edge"]) for item in alternatives),
            array_from_json([item["log_bayes_factor"] for item in alternatives]),
            array_from_json([item["log_e_value"] for item in alternatives]),
            np.array([item["alarm"] for item in alternatives], dtype=bool),
            np.array([item["values"] for item in alternatives], dtype=np.int64),
            **{name: data[name] for name in ("records", "since", "alpha", "strict", "recomputed")},
        )

    # -- text --------------------------------------------------------------------------------------

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return (edge, meaning, Bayes factor, its strength, number of values) of each edge.

        Edges without evidence are left out.
        """
        return [
            (
                str(self.edges[a]),
                _meaning(self.edges[a]),
                self._factor(a),
                self._says(a),
                f"{self.scored[a]:,} value{'' if self.scored[a] == 1 else 's'}",
            )
            for a in self.ranking
            if self.scored[a]
        ]

    def __str__(self) -> str:
        return "\n".join(self._sentences())

    def _sentences(self) -> Iterator[str]:
        level = f"at level {self.alpha:g}{' (strict)' if self.strict else ''}"
        records = f"{self.records:,} record{'s'[: self.records != 1]}"
        if not self.edges:
            yield "The graph lacks no edge that records could tell of."
            return
        if self.since is None:
            told = [a for a in self.ranking if self.scored[a]]
            yield f"No alarm {level} in {records}. " + self._quietly(told)
            return
        when = f"since record {self.since:,} of {self.records:,}"
        if self.recomputed:
            when += " at the latest (a record was retracted, and the evidence was recomputed)"
        accused = ", ".join(
            f"{self.edges[a]} (Bayes factor {self._factor(a)})"
            for a in self.ranking
            if self.alarmed[a]
        )
        yield f"Alarm {level}, {when}: the records speak against the graph. Accused: {accused}."
        for edge in map(EdgeName.parse, self.suspected):
            tie = EdgeName.from_ends(edge.left, "<->", edge.right)
            if not edge.is_bidirected and str(tie) in self.suspected and self._are_close(edge, tie):
                yield f"{edge} and {tie} look alike{self._how_to_tell(edge.left)}."
        marked = "; ".join(_marked(EdgeName.parse(text)) for text in self.suspected)
        yield f"Draw them as doubtful and go on: {marked}. The records count again there."

    def _quietly(self, told: list[int]) -> str:
        """Return a sentence for a report without alarm; `told` are the edges with evidence."""
        if not told:
            return f"No record tells of any of the {len(self.edges)} edges that the graph lacks."
        if self.log_bayes_factors[told[0]] < log(_SOMETHING):
            return "Nothing in them speaks against the graph."
        return (
            f"Of the edges that the graph lacks, {self.edges[told[0]]} has the largest Bayes "
            f"factor, {self._factor(told[0])}."
        )

    def _how_to_tell(self, name: str) -> str:
        """Return how to tell an arrow from this variable from a hidden cause."""
        problem, text = self.problem, as_text(name)
        if name not in problem.manipulable:
            return f", and {text} can't be set to tell them apart"
        if any(name in names for names in problem.intervention_sets):
            return f" until {text} is set"
        return f' until {text} is set, which no arm does: arms = "all" has arms that do'

    def _are_close(self, *edges: EdgeName) -> bool:
        """Return True if the records do not tell these edges apart."""
        logs = [self.log_bayes_factors[a] for a, edge in enumerate(self.edges) if edge in edges]
        return float(np.ptp(logs)) <= log(CLOSE)

    def _factor(self, a: int) -> str:
        number = self.log_bayes_factors[a]
        if number < log(1e15):
            return f"{np.exp(number):.2g}"
        return f"10^{number / log(10):.0f}"

    def _says(self, a: int) -> str:
        return in_words(float(_exp(self.log_bayes_factors[a])))


def in_words(factor: float) -> str:
    """Describe the strength of a Bayes factor."""
    return next(words for size, words in _WORDS if factor >= size)


def _exp(logs: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", under="ignore"):
        numbers: FloatArray = np.exp(logs)
    return numbers


def _finite(number: float) -> float | str:
    return float(number) if np.isfinite(number) else "inf"


def _meaning(edge: EdgeName) -> str:
    if edge.is_bidirected:
        return f"{edge.left} and {edge.right} have a hidden cause"
    return f"{edge.left} causes {edge.right} directly"


def _marked(edge: EdgeName) -> str:
    arrow = "<?>" if edge.is_bidirected else "?->"
    return f"{as_text(edge.left)} {arrow} {as_text(edge.right)}"


def risen(belief: Belief) -> list[str]:
    """Return the soft edges to draw as suspected."""
    problem, chances = belief.problem, belief.edges()
    drawn = {*problem.graph.edge_texts}
    return [
        text
        for text, now in chances.items()
        if text not in drawn and now > max(LIKELY, problem.edge_priors[text])
    ]
