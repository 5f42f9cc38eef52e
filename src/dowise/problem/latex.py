r"""Names, labels and values in LaTeX, whatever characters they have.

A letter with a number is a symbol with an index, all else is upright. What means something to LaTeX
is escaped, Greek letters become its commands, and what has no place in a formula is text.

>>> print(latex_name("X1"), latex_name("β_2"), latex_name("blood_sugar"), latex_name("body-mass"))
X_{1} \beta_{2} \mathrm{blood\_sugar} \mathrm{body\text{-{}}mass}
"""

from __future__ import annotations

import re

__all__ = ["SYMBOL", "latex_label", "latex_name", "latex_upright"]

# The other Greek letters look like Latin ones, and LaTeX has no commands for them.
_LETTERS = "αβγδεζηθικλμνξπρςστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"
_COMMANDS = (
    r"\alpha \beta \gamma \delta \varepsilon \zeta \eta \theta \iota \kappa \lambda \mu \nu \xi "
    r"\pi \rho \varsigma \sigma \tau \upsilon \varphi \chi \psi \omega \Gamma \Delta \Theta "
    r"\Lambda \Xi \Pi \Sigma \Upsilon \Phi \Psi \Omega"
)
_GREEK = dict(zip(_LETTERS, _COMMANDS.split(), strict=True))
_ESCAPED = "_%&#${}"
_BLANK = r"\s\x00-\x1f\x7f"
_RUNS = re.compile(
    rf"[A-Za-z0-9]+|[{_BLANK}]+|[{_ESCAPED}{_LETTERS}]"
    rf"|[^A-Za-z0-9{_BLANK}{_ESCAPED}{_LETTERS}]+"
)
SYMBOL = re.compile(r"([^\W\d_])_?([0-9]*)")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_IN_TEXT = {
    "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "-": "-{}", "`": "`{}", "'": "'{}", "!": "!{}", "?": "?{}", ",": ",{}",  # no ligatures
}  # fmt: skip


def latex_name(name: str) -> str:
    """A letter with its number as an index, or else the name in upright type."""
    match = SYMBOL.fullmatch(name)
    if match is None:
        return latex_upright(name)
    letter, digits = match.groups()
    written = _GREEK.get(letter) or (letter if letter.isascii() else latex_upright(letter))
    return f"{written}_{{{digits}}}" if digits else written


def latex_label(label: str) -> str:
    """A number as it is, all else upright."""
    return label if _NUMBER.fullmatch(label) else latex_upright(label)


def latex_upright(text: str) -> str:
    """The text in upright type."""
    return rf"\mathrm{{{_RUNS.sub(_written, text)}}}"


def _written(match: re.Match[str]) -> str:
    run = match[0]
    if run in _GREEK:
        return f"{{{_GREEK[run]}}}"
    if run in _ESCAPED:
        return f"\\{run}"
    if run.isascii() and run.isalnum():
        return run
    if re.match(f"[{_BLANK}]", run):
        return r"\ "
    return rf"\text{{{''.join(_IN_TEXT.get(sign, sign) for sign in run)}}}"
