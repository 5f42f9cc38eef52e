"""Lark parsers with readable syntax errors, and the parts that all graph readers share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from dowise.errors import DowiseError, InputSyntaxError, type_name
from dowise.graph.causal_graph import CausalGraph
from dowise.graph.edges import Edge, EdgeName, Mark

if TYPE_CHECKING:
    from lark import Lark, Token, Transformer


def parse_with(
    grammar: str,
    text: str,
    transformer: Transformer[Token, Any],
    words: Mapping[str, str],
    kind: str,
) -> Any:
    """Parse `text` with the grammar file of that name and fold the tree with the transformer.

    `words` names each terminal of the grammar in plain English, or hides it with an empty word;
    fixed terminals such as '{' need no name. `kind` names the kind of text in syntax errors.
    """
    from lark.exceptions import UnexpectedEOF, UnexpectedInput, VisitError

    if not isinstance(text, str):
        raise DowiseError(f"{kind}: expected a text, not {type_name(text)}", code="invalid-type")
    try:
        tree = _parser(grammar).parse(text)
    except UnexpectedInput as error:
        line, column = error.line, error.column
        is_at_end = getattr(getattr(error, "token", None), "type", None) == "$END"
        if isinstance(error, UnexpectedEOF) or line < 1 or is_at_end:
            lines = text.split("\n")
            line, column, excerpt = len(lines), len(lines[-1]) + 1, "the text ends"
        else:
            excerpt = f"found {_excerpt(text, line, column)}"
        accepted = getattr(error, "accepts", None) or getattr(error, "expected", None)
        accepted = accepted or getattr(error, "allowed", None) or ()
        named = {_word(_parser(grammar), words, name) for name in accepted}
        expected = sorted(word for word in named if word)
        remedy = f", expected {_either(expected)}" if expected else ""
        raise InputSyntaxError(
            f"{kind}, line {line}, column {column}: {excerpt}{remedy}", line, column
        ) from None
    try:
        return transformer.transform(tree)
    except VisitError as error:
        if isinstance(error.orig_exc, RecursionError):
            raise InputSyntaxError(f"{kind}: the braces are nested too deeply") from None
        raise error.orig_exc from None
    except RecursionError:
        raise InputSyntaxError(f"{kind}: the braces are nested too deeply") from None


def syntax_error_at(
    token: Any, kind: str, message: str, code: str | None = None
) -> InputSyntaxError:
    """Return a syntax error at the position of a token."""
    line, column = token.line, token.column
    text = f"{kind}, line {line}, column {column}: {message}"
    return InputSyntaxError(text, line, column, code=code)


@cache
def _parser(grammar: str) -> Lark:
    from lark import Lark

    source = resources.files(__package__).joinpath(f"{grammar}.lark").read_text("utf-8")
    return Lark(source, parser="lalr", propagate_positions=True)


def _word(parser: Lark, words: Mapping[str, str], name: str) -> str:
    if name in words:
        return words[name]
    pattern = parser.get_terminal(name).pattern
    return f"'{pattern.value}'" if pattern.type == "str" else name


def _excerpt(text: str, line: int, column: int) -> str:
    """Return the offending part of the text, short enough for one line of a message."""
    words = text.split("\n")[line - 1][column - 1 :].split(maxsplit=1)
    return repr(words[0][:20]) if words else "the end of the line"


def _either(options: list[str]) -> str:
    return options[0] if len(options) == 1 else ", ".join(options[:-1]) + " or " + options[-1]


@dataclass(frozen=True)
class Structure:
    """Content of a graph file: the graph, and the labels and roles of variables if present."""

    graph: CausalGraph
    domains: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Labels of each variable; only BIF has them."""
    exposures: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    latent: tuple[str, ...] = ()
    """Hidden variables, projected out of the graph; like the roles above, only dagitty has them."""


class Arrow(NamedTuple):
    """Connection of two neighbours in a chain: ->, <- or <->, and its mark."""

    shape: str
    mark: Mark = ""


class GraphSketch:
    """Graph under construction while a file is read, chain by chain."""

    def __init__(self) -> None:
        self.directed: list[Edge] = []
        self.bidirected: list[Edge] = []
        self.marked: dict[Mark, list[str]] = {"?": [], "!": []}
        self._marks: dict[str, Mark] = {}
        self.names: dict[str, None] = {}

    def chain(self, groups: Sequence[Sequence[str]], arrows: Iterable[Arrow]) -> None:
        """Join every variable of each group to every variable of the next group."""
        self.names.update((name, None) for group in groups for name in group)
        for lefts, (shape, mark), rights in zip(groups, arrows, groups[1:], strict=False):
            for left, right in product(lefts, rights):
                edge = EdgeName.from_ends(left, shape, right)
                ends = self.bidirected if edge.is_bidirected else self.directed
                ends.append((edge.left, edge.right))
                earlier = self._marks.setdefault(str(edge), mark)
                # An edge may be drawn twice, but not once with a mark and once without. Two
                # different marks are refused by the graph itself.
                if earlier != mark and not (earlier and mark):
                    kind = "doubtful" if "?" in (earlier, mark) else "certain"
                    raise DowiseError(
                        f"{edge} is drawn twice, as {kind} and without a mark: keep one",
                        code="contradictory-edge",
                    )
                if mark:
                    self.marked[mark].append(str(edge))

    def graph(self) -> CausalGraph:
        """Build the graph."""
        if not self.names:
            raise DowiseError(
                "the graph is empty: it does not name any variables", code="empty-graph"
            )
        return CausalGraph(
            self.directed,
            self.bidirected,
            self.names,
            doubtful=self.marked["?"],
            certain=self.marked["!"],
        )


def isolated(graph: CausalGraph) -> list[str]:
    """Return the variables without edges, which a writer must list separately."""
    joined = {end for edge in (*graph.directed_edges, *graph.bidirected_edges) for end in edge}
    return [name for name in graph.variables if name not in joined]
