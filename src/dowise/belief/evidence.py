"""Report of the evidence of records against a graph: edges that it may lack, with e-values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import exp, isfinite, log
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
"""Alternatives whose e-values differ by less than this factor can't be told apart."""
LIKELY_EDGE = 0.25
"""A soft edge is drawn as suspected if its probability exceeds this and its prior."""
HINT = 3.0
"""Smallest e-value that is called a hint."""
_STRENGTHS = (  # smallest Bayes factor of each strength, after Kass & Raftery (1995)
    (150.0, "very strong"),
    (20.0, "strong"),
    (3.0, "positive"),
    (1 / 3, "inconclusive"),
    (0.0, "negative"),
)


@dataclass(frozen=True, eq=False)
class Evidence:
    """E-values of the edges that the graph lacks, and the alarm, if any.

    An alarm refutes the graph: a right graph raises one with a probability of at most `alpha`,
    however often one looks. The named edge is the best single repair, not proof of that edge.
    """

    problem: Problem
    edges: tuple[EdgeName, ...]
    """The alternatives: edges that the graph lacks."""
    log_e_values: FloatArray
    needed: FloatArray
    """E-value at which each edge alone raises the alarm; infinite if no record can tell of it."""
    alarmed: BoolArray
    """True for each edge that the alarm names."""
    scored: IntArray
    """Number of values that are evidence about each edge."""
    records: int
    """Number of records."""
    since: int | None
    """Number of the record, counted from 1, at which the alarm was raised."""
    alpha: float
    withdrawn: int | None = None
    """Number of the record whose correction withdrew an alarm. 0 if that was no correction, but
    records that set other variables than the arms do, so that more edges have a share."""
    recomputed: bool = False
    """True if the records are from a file that does not have their order of arrival."""
    strict: bool = True
    """Always true: the level is proven."""

    @cached_property
    def ranking(self) -> IntArray:
        """Alternatives by descending e-value."""
        ranking: IntArray = np.argsort(-self.log_e_values, kind="stable")
        return ranking

    @property
    def alarms(self) -> tuple[str, ...]:
        """Edges that the alarm names. They stay when the evidence declines."""
        return tuple(str(self.edges[a]) for a in self.ranking if self.alarmed[a])

    @cached_property
    def suspected(self) -> tuple[str, ...]:
        """Edges to draw as doubtful after an alarm.

        These are the named edges, all edges within a factor of 20 of the best one, and with u -> v
        also u <-> v and vice versa: they can't be told apart until u is set. An arrow that would
        close a cycle with earlier ones is left out.
        """
        if self.since is None:
            return ()
        threshold = self.log_e_values.max() - log(CLOSE_FACTOR)
        ranked = sorted(self.ranking, key=lambda a: not self.alarmed[a])
        near = [a for a in ranked if self.alarmed[a] or self.log_e_values[a] >= threshold]
        graph, chosen = self.problem.graph, dict[str, None]()  # soft edges follow what is drawn
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
            "e_value": _exp(self.log_e_values[order]),
            "log_e_value": self.log_e_values[order],
            "needed": self.needed[order],
            "alarm": self.alarmed[order],
            "values": self.scored[order],
        }

    def frame(self) -> Any:
        """Return a pandas table, by descending e-value.

        Columns: edge, e_value, log_e_value, needed (the e-value that alone raises the alarm),
        alarm, and values, the number of values that are evidence about the edge.
        """
        pandas = import_extra("pandas", "simulate", "a table of the evidence")
        return pandas.DataFrame(self._columns())

    def as_dict(self) -> dict[str, Any]:
        """Return JSON data; an infinite number is "inf"."""
        columns = {name: np.asarray(column).tolist() for name, column in self._columns().items()}
        for name in ("e_value", "needed"):
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
            "withdrawn": self.withdrawn,
            "recomputed": self.recomputed,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], problem: Problem) -> Evidence:
        """Inverse of `as_dict`; alternatives are then in the order of the data."""
        alternatives = data["alternatives"]
        return cls(
            problem,
            tuple(EdgeName.parse(item["edge"]) for item in alternatives),
            array_from_json([item["log_e_value"] for item in alternatives]),
            array_from_json([item["needed"] for item in alternatives]),
            np.array([item["alarm"] for item in alternatives], dtype=bool),
            np.array([item["values"] for item in alternatives], dtype=np.int64),
            **{name: data[name] for name in ("records", "since", "alpha")},
            **{name: data[name] for name in ("withdrawn", "recomputed")},
        )

    # -- text --------------------------------------------------------------------------------------

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return (edge, meaning, e-value, e-value needed, number of values) of each edge.

        Edges without evidence are left out.
        """
        return [
            (
                str(self.edges[a]),
                _meaning(self.edges[a]),
                _number(self.log_e_values[a]),
                _number(log(self.needed[a])),
                pluralize(int(self.scored[a]), "value"),
            )
            for a in self.ranking
            if self.scored[a] and isfinite(self.needed[a])
        ]

    def __str__(self) -> str:
        return "\n".join(self._sentences())

    def _sentences(self) -> Iterator[str]:
        level, records = f"at level {self.alpha:g}", pluralize(self.records, "record")
        telling = [a for a in self.ranking if isfinite(self.needed[a])]
        if not self.edges:
            yield "The graph lacks no edge that records could be evidence for."
            return
        if self.since is not None:
            yield from self._alarm(level)
        elif not telling or not self.scored[telling].any():
            edges = pluralize(len(self.edges), "edge")
            of = "the edge" if len(self.edges) == 1 else f"any of the {edges}"
            yield f"No record can tell about {of} that the graph lacks."
        elif self.log_e_values[telling[0]] >= log(HINT):
            e_value, needed = _number(self.log_e_values[telling[0]]), self.needed[telling[0]]
            yield (
                f"No alarm {level} in {records}. The strongest hint is {self.edges[telling[0]]}: "
                f"e-value {e_value}, and an alarm needs {_number(log(needed))}."
            )
        else:
            yield f"No alarm {level} in {records}, and no hint of a missing edge."
        if self.withdrawn:
            yield f"An earlier alarm was withdrawn after a correction of record {self.withdrawn:,}."
        elif self.withdrawn == 0:
            yield (
                "An earlier alarm was withdrawn, because later records set other variables than "
                "the arms do: they can tell about more edges, which now have a share."
            )
        if self.recomputed:
            yield "The records are from a file without their order: they count in its order."

    def _alarm(self, level: str) -> Iterator[str]:
        best = next(a for a in self.ranking if isfinite(self.needed[a]))
        e_value, needed = _number(self.log_e_values[best]), _number(log(self.needed[best]))
        yield (
            f"Alarm {level} at record {self.since:,} of {self.records:,}: the records contradict "
            f"the graph. Strongest: {self.edges[best]} (e-value {e_value}, {needed} needed). A "
            f"right graph raises such an alarm with a chance of at most {100 * self.alpha:g} %, "
            "however long one looks."
        )
        for edge in map(EdgeName.parse, self.suspected):
            tie = EdgeName.from_ends(edge.left, "<->", edge.right)
            if not edge.is_bidirected and str(tie) in self.suspected and self._are_close(edge, tie):
                yield f"{edge} and {tie} look alike{self._how_to_tell(edge.left)}."
        marked = "; ".join(_marked(EdgeName.parse(text)) for text in self.suspected)
        yield f"Mark the edges as doubtful and learn the records again: {marked}."

    def _how_to_tell(self, name: str) -> str:
        """Return how to distinguish an arrow from this variable from a hidden cause."""
        problem, text = self.problem, as_text(name)
        if name not in problem.manipulable:
            return f", and {text} can't be set to tell them apart"
        if any(name in names for names in problem.intervention_sets):
            return f" until {text} is set"
        return f' until {text} is set, which no arm does: arms = "all" has arms that do'

    def _are_close(self, *edges: EdgeName) -> bool:
        """Return True if the e-values of these edges are close."""
        logs = [self.log_e_values[a] for a, edge in enumerate(self.edges) if edge in edges]
        return float(np.ptp(logs)) <= log(CLOSE_FACTOR)


def _number(logarithm: float) -> str:
    """Return a number, given by its logarithm, with two digits: 490, 6e+05, 10^20."""
    if logarithm >= log(1e15):
        return f"10^{logarithm / log(10):.0f}"
    number = float(f"{exp(logarithm):.2g}")
    return f"{number:,g}" if number < 1e5 else f"{number:.0e}"


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
