"""One way to run a lark grammar, and one way to say where a text went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from dowise.errors import DowiseError, InputSyntaxError, kind_of

if TYPE_CHECKING:
    from lark import Lark, Token, Transformer

__all__ = ["parse_with"]


def parse_with(
    grammar: str,
    text: str,
    transformer: Transformer[Token, Any],
    words: Mapping[str, str],
    what: str,
) -> Any:
    """Parse `text` by the grammar file of that name and fold the tree with the transformer.

    `words` says each terminal of the grammar in plain English, or hides it with an empty word;
    a fixed text such as '{' speaks for itself. `what` names the kind of text, for the message of
    a syntax error.
    """
    from lark.exceptions import UnexpectedEOF, UnexpectedInput, VisitError

    if not isinstance(text, str):
        raise DowiseError(f"{what}: expected a text, not {kind_of(text)}")
    try:
        tree = _parser(grammar).parse(text)
    except UnexpectedInput as error:
        line, column = error.line, error.column
        if isinstance(error, UnexpectedEOF) or line < 1 or _at_end(error):
            line, column, found = *_end_of(text), "the text ends"
        else:
            found = f"found {_excerpt(text, line, column)}"
        accepted = getattr(error, "accepts", None) or getattr(error, "expected", None)
        accepted = accepted or getattr(error, "allowed", None) or ()
        said = {_word(_parser(grammar), words, name) for name in accepted}
        expected = sorted(word for word in said if word)
        remedy = f", expected {_either(expected)}" if expected else ""
        raise InputSyntaxError(
            f"{what}, line {line}, column {column}: {found}{remedy}", line, column
        ) from None
    try:
        return transformer.transform(tree)
    except VisitError as error:
        if isinstance(error.orig_exc, RecursionError):
            raise InputSyntaxError(f"{what}: the braces are nested too deeply") from None
        raise error.orig_exc from None
    except RecursionError:
        raise InputSyntaxError(f"{what}: the braces are nested too deeply") from None


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


def _at_end(error: Any) -> bool:
    token = getattr(error, "token", None)
    return token is not None and token.type == "$END"


def _end_of(text: str) -> tuple[int, int]:
    lines = text.split("\n")
    return len(lines), len(lines[-1]) + 1


def _excerpt(text: str, line: int, column: int) -> str:
    """The offending bit of the text, short enough for one line of a message."""
    rest = text.split("\n")[line - 1][column - 1 :].rstrip("\r")
    word = rest.split(maxsplit=1)[0] if rest.strip() else "the end of the line"
    return repr(word[:20]) if rest.strip() else word


def _either(options: list[str]) -> str:
    return options[0] if len(options) == 1 else ", ".join(options[:-1]) + " or " + options[-1]
