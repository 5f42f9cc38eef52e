"""Report of the evidence of records against a graph: edges that it may lack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, log
from typing import TYPE_CHECKING, Any

import numpy as np

from dowise._core.codec import array_from_json
from dowise._core.document import pluralize
from dowise._core.types import AnyArray, BoolArray, FloatArray, IntArray
from dowise.errors import import_extra
from dowise.graph.adjacency import closure
from dowise.graph.edges import EdgeName, as_text
from dowise.problem import Problem

if TYPE_CHECKING:
    from dowise.belief.belief import Belief


CLOSE_FACTOR = 20.0
"""Alternatives whose Bayes factors differ by less than this factor can't be told apart."""
LIKELY_EDGE = 0.25
"""A soft edge is drawn as suspected if its probability exceeds this and its prior."""
_POSITIVE = 3.0
_STRENGTHS = (  # smallest Bayes factor of each strength, after Kass & Raftery (1995)
    (150.0, "very strong"),
    (20.0, "strong"),
    (_POSITIVE, "positive"),
    (1 / 3, "inconclusive"),
    (0.0, "negative"),
)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Edges that the graph lacks, with Bayes factors and e-values, and the alarm, if any."""

    problem: Problem
    edges: tuple[EdgeName, ...]
    """The alternatives: edges that the graph lacks."""
    log_bayes_factors: FloatArray
    log_e_values: FloatArray
    alarmed: BoolArray
    """True for each edge that caused the alarm."""
    scored: IntArray
    """Number of values that are evidence about each edge."""
    records: int
    """Number of records."""
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
        """Edges that caused the alarm, if there is one. They stay when the evidence declines."""
        return tuple(str(self.edges[a]) for a in self.ranking if self.alarmed[a])

    @cached_property
    def suspected(self) -> tuple[str, ...]:
        """Edges to draw as doubtful after an alarm.

        These are the alarmed edges, all edges within a factor of 20 of the best one, and with
        u -> v also u <-> v and vice versa: they can't be told apart until u is set. An arrow that
        would close a cycle with earlier ones is left out.
        """
        if self.since is None:
            return ()
        threshold = self.log_bayes_factors.max() - log(CLOSE_FACTOR)
        ranked = sorted(self.ranking, key=lambda a: not self.alarmed[a])
        near = [a for a in ranked if self.alarmed[a] or self.log_bayes_factors[a] >= threshold]
        graph, chosen = self.problem.possible, dict[str, None]()
        children = list(graph.adjacency.children)
        for edge in (edge for a in near for edge in self._indistinguishable(a)):
            cause, effect = (self.problem.positions[name] for name in (edge.left, edge.right))
            if not edge.is_bidirected:
                if closure(1 << effect, children) >> cause & 1:
                    continue
                children[cause] |= 1 << effect
            chosen[str(edge)] = None
        return tuple(chosen)

    def _indistinguishable(self, a: int) -> Iterator[EdgeName]:
        """Yield edge `a`, and the edge that can't be told apart from it."""
        edge = self.edges[a]
        yield edge
        if not edge.is_bidirected:
            tie = EdgeName.from_ends(edge.left, "<->", edge.right)
            yield from [tie] * (str(tie) not in self.problem.possible.edge_texts)
            return
        arrows = {EdgeName.from_ends(edge.left, arrow, edge.right) for arrow in ("->", "<-")}
        yield from [self.edges[b] for b in self.ranking if self.edges[b] in arrows][:1]

    def _columns(self) -> dict[str, AnyArray | list[str]]:
        """Return the columns of `frame`, which are the keys of each alternative in `as_dict`."""
        order = self.ranking
        return {
            "edge": [str(self.edges[a]) for a in order],
            "bayes_factor": _exp(self.log_bayes_factors[order]),
            "log_bayes_factor": self.log_bayes_factors[order],
            "e_value": _exp(self.log_e_values[order]),
            "log_e_value": self.log_e_values[order],
            "alarm": self.alarmed[order],
            "values": self.scored[order],
        }

    def frame(self) -> Any:
        """Return a pandas table, by descending Bayes factor.

        Columns: edge, bayes_factor, log_bayes_factor, e_value, log_e_value, alarm, and values, the
        number of values that are evidence about the edge.
        """
        pandas = import_extra("pandas", "simulate", "a table of the evidence")
        return pandas.DataFrame(self._columns())

    def as_dict(self) -> dict[str, Any]:
        """Return JSON data; an infinite number is "inf"."""
        columns = {name: np.asarray(column).tolist() for name, column in self._columns().items()}
        for name in ("bayes_factor", "e_value"):
            columns[name] = [x if isfinite(x) else "inf" for x in columns[name]]
        return {
            "alarms": list(self.alarms),
            "since": self.since,
            "suspected": list(self.suspected),
            "alternatives": [
                dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
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
                describe_bayes_factor(float(_exp(self.log_bayes_factors[a]))),
                pluralize(int(self.scored[a]), "value"),
            )
            for a in self.ranking
            if self.scored[a]
        ]

    def __str__(self) -> str:
        return "\n".join(self._sentences())

    def _sentences(self) -> Iterator[str]:
        level = f"at level {self.alpha:g}{' (strict)' if self.strict else ''}"
        if not self.edges:
            yield "The graph lacks no edge that records could be evidence for."
            return
        if self.since is None:
            yield f"No alarm {level} in {pluralize(self.records, 'record')}. {self._largest()}"
            return
        when = f"since record {self.since:,} of {self.records:,}"
        if self.recomputed:
            when += " at the latest (a record was retracted, and the evidence was recomputed)"
        missing = ", ".join(
            f"{self.edges[a]} (Bayes factor {self._factor(a)})"
            for a in self.ranking
            if self.alarmed[a]
        )
        yield f"Alarm {level}, {when}: the records contradict the graph. It may lack: {missing}."
        for edge in map(EdgeName.parse, self.suspected):
            tie = EdgeName.from_ends(edge.left, "<->", edge.right)
            if not edge.is_bidirected and str(tie) in self.suspected and self._are_close(edge, tie):
                yield f"{edge} and {tie} look alike{self._how_to_tell(edge.left)}."
        marked = "; ".join(_marked(EdgeName.parse(text)) for text in self.suspected)
        yield f"Mark the edges as doubtful and learn the records again: {marked}."

    def _largest(self) -> str:
        """Return a sentence about the largest Bayes factor, for a report without alarm."""
        scored = [a for a in self.ranking if self.scored[a]]
        if not scored:
            return f"No record is evidence about the {len(self.edges)} edges that the graph lacks."
        if self.log_bayes_factors[scored[0]] < log(_POSITIVE):
            return "They do not contradict the graph."
        return (
            f"Among the edges that the graph lacks, {self.edges[scored[0]]} has the largest Bayes "
            f"factor, {self._factor(scored[0])}."
        )

    def _how_to_tell(self, name: str) -> str:
        """Return how to distinguish an arrow from this variable from a hidden cause."""
        problem, text = self.problem, as_text(name)
        if name not in problem.manipulable:
            return f", and {text} can't be set to tell them apart"
        if any(name in names for names in problem.intervention_sets):
            return f" until {text} is set"
        return f' until {text} is set, which no arm does: arms = "all" has arms that do'

    def _are_close(self, *edges: EdgeName) -> bool:
        """Return True if the Bayes factors of these edges are close."""
        logs = [self.log_bayes_factors[a] for a, edge in enumerate(self.edges) if edge in edges]
        return float(np.ptp(logs)) <= log(CLOSE_FACTOR)

    def _factor(self, a: int) -> str:
        number = self.log_bayes_factors[a]
        if number < log(1e15):
            return f"{np.exp(number):.2g}"
        return f"10^{number / log(10):.0f}"


def describe_bayes_factor(factor: float) -> str:
    """Return the strength of the evidence for an edge, by its Bayes factor."""
    return next(text for smallest, text in _STRENGTHS if factor >= smallest)


def _exp(logs: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", under="ignore"):
        numbers: FloatArray = np.exp(logs)
    return numbers


def _meaning(edge: EdgeName) -> str:
    if edge.is_bidirected:
        return f"{edge.left} and {edge.right} have a hidden cause"
    return f"{edge.left} causes {edge.right} directly"


def _marked(edge: EdgeName) -> str:
    arrow = "<?>" if edge.is_bidirected else "?->"
    return f"{as_text(edge.left)} {arrow} {as_text(edge.right)}"


def likely_soft_edges(belief: Belief) -> list[str]:
    """Return the soft edges to draw as suspected: likely ones, more so than a priori."""
    problem, chances = belief.problem, belief.edges()
    drawn = {*problem.graph.edge_texts}
    return [
        text
        for text, now in chances.items()
        if text not in drawn and now > max(LIKELY_EDGE, problem.edge_priors[text])
    ]
