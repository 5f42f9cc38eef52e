"""What somebody sent as a problem: the text of one, or a graph by itself.

Of a graph a problem is drafted. It lacks the reward, unless the graph's format says which it is.

>>> print(read_graph("dag { X -> Y <- Z; Y [outcome] }").draft(), end="")
graph = '''
X -> Y
Z -> Y
'''
reward = "Y"
# context = []          # seen before the choice
# non_manipulable = []  # seen after the choice, and can't be set
"""

from __future__ import annotations

import tomllib
import warnings
from dataclasses import dataclass

from dowise.errors import DowiseError, DowiseWarning, listed
from dowise.graph import CausalGraph
from dowise.graph.formats import Structure, format_of, parse_structure
from dowise.plain import counted
from dowise.problem import Problem
from dowise.problem.problem import MAX_ARMS
from dowise.problem.problem_file import parse_problem, toml
from dowise.service.workshop.failures import BadInputError
from dowise.service.workshop.places import placed

__all__ = ["Graph", "is_graph", "read_graph", "read_problem", "tidy"]

_AS_TEXT = ".txt"  # an ending that says nothing: the content tells


def tidy(text: str) -> str:
    """With our line ends, which browsers change, and without the mark that editors put first."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def is_graph(text: str) -> bool:
    """Whether it is a graph by itself, in any of our formats."""
    kind = format_of("", text)
    return kind is not None and (kind != "text" or "=" not in text)


def read_problem(text: str) -> tuple[Problem, list[str]]:
    """The problem of a text, and what there is to say of it besides."""
    if not text.strip():
        raise BadInputError("there is nothing yet: write a problem, or begin with an example")
    if is_graph(text):
        graph = read_graph(text)
        raise BadInputError(f"{graph.in_words()} Write it into a problem: graph = and reward =.")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", DowiseWarning)
        try:
            problem = parse_problem(text, is_new=True)
        except DowiseError as error:
            raise placed(text, error) from None
        except RecursionError:
            raise BadInputError("brackets are nested too deeply") from None
    if len(problem.arms) > MAX_ARMS:  # which the text itself may allow
        raise BadInputError(
            f"there are {len(problem.arms):,} arms, and a server takes {MAX_ARMS:,} at most: "
            "make the graph or the domains smaller, or begin it with `dowise new`"
        )
    notes = [str(one.message) for one in said if issubclass(one.category, DowiseWarning)]
    return problem, notes


def read_graph(text: str) -> Graph:
    """A graph by itself."""
    try:
        return Graph(format_of("", text) or "text", parse_structure(_AS_TEXT, text))
    except DowiseError as error:
        raise placed(text, error, is_graph=True) from None


@dataclass(frozen=True)
class Graph:
    """A graph by itself, and what else its text says."""

    format: str
    structure: Structure

    @property
    def reward(self) -> str | None:
        """Which variable is the reward, where that is said."""
        outcomes = self.structure.outcomes
        return outcomes[0] if len(outcomes) == 1 else None

    @property
    def candidates(self) -> list[str]:
        """The variables that cause nothing, among which the reward is mostly found."""
        graph = self.structure.graph
        causes = {cause for cause, _ in graph.directed_edges}
        return [name for name in graph.variables if name not in causes]

    def in_words(self) -> str:
        """What it is, and what it lacks to be a problem."""
        known = {"text": "a graph", "GML": "a graph in GML", "BIF": "a network in BIF"}
        what = known.get(self.format, f"a graph in {self.format}")
        tables = " Its tables of probabilities are not taken over: an experiment learns them."
        perhaps = listed(self.candidates[:5])
        return (
            f"This is {what} with {counted(len(self.structure.graph), 'variable')}. A problem also "
            f"says which variable is the reward (perhaps {perhaps}), which ones are seen before "
            "the choice (context), and which ones can't be set (non_manipulable)."
            f"{tables if self.format == 'BIF' else ''}"
        )

    def draft(self) -> str:
        """The text of a problem, as far as it is known."""
        structure = self.structure
        reward = "…" if self.reward is None else self.reward
        lines = [f"graph = {_drawn(structure.graph)}", f"reward = {toml(reward)}"]
        if self.reward is None:
            lines[-1] += "  # the variable to maximise"
        lines += ["# context = []          # seen before the choice"]
        if structure.exposures:
            lines += [f"manipulable = {toml(structure.exposures)}"]
        else:
            lines += ["# non_manipulable = []  # seen after the choice, and can't be set"]
        if structure.domains:
            lines += ["", "[domains]"]
            lines += [f"{toml(n)} = {toml(d)}" for n, d in structure.domains.items()]
        return "\n".join(lines) + "\n"


def _drawn(graph: CausalGraph) -> str:
    """The graph as a value of TOML, an edge a line unless names stand in the way."""
    text = graph.to_text()
    value = "'''\n" + text.replace("; ", "\n") + "\n'''"
    try:
        if CausalGraph.parse(tomllib.loads(f"graph = {value}")["graph"]) == graph:
            return value
    except (DowiseError, ValueError):
        pass
    return toml(text)
