"""Interventions: assignments of labels to variables.

>>> arm = Intervention({"X2": 1, "X1": "low"})
>>> print(arm), dict(arm), arm.in_words()
do(X1=low, X2=1)
(None, {'X1': 'low', 'X2': '1'}, 'set X1 to low and X2 to 1')
>>> Intervention.parse("do( X1 = low, X2 = 1 )") == arm
True
>>> print(Intervention())
do()
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dowise.errors import DowiseError, InputSyntaxError
from dowise.graph.edges import bare_text, quoted
from dowise.problem.domains import text_of

_BARE = r"""[^\s"=,()]+(?:[ \t]+[^\s"=,()]+)*"""
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_SETTING = re.compile(rf"\s*({_QUOTED}|{_BARE})\s*=\s*({_QUOTED}|{_BARE})\s*")


class Intervention(Mapping[str, str]):
    """Intervention do(X1=x1, …): an immutable, hashable mapping from variable to label.

    Parameters
    ----------
    settings : mapping of str to object, optional
        Values by variable. Numbers and truth values become labels, as in "1". Without settings it
        is do(), which sets nothing.

    Raises
    ------
    DowiseError
        If a name is not a str, or a value is missing.

    Examples
    --------
    >>> arm = Intervention({"Dose": "low", "Visit": 1})
    >>> str(arm), arm["Visit"], sorted(arm.variables)
    ('do(Dose=low, Visit=1)', '1', ['Dose', 'Visit'])
    """

    __slots__ = ("_settings", "_text")

    def __init__(self, settings: Mapping[str, object] | None = None) -> None:
        settings = settings or {}
        labels: dict[str, str] = {}
        for name in sorted(settings, key=str):
            value = settings[name]
            if not isinstance(name, str):
                raise DowiseError(
                    f"{name!r} is not the name of a variable: names are str", code="invalid-type"
                )
            label = text_of(value)
            if label is None:
                raise DowiseError(
                    f"do({name}={value!r}): the value of {name} is missing", code="missing-value"
                )
            labels[name] = label
        self._settings = labels
        self._text: str | None = None  # made on first use

    @classmethod
    def parse(cls, text: str) -> Intervention:
        """Parse a text such as `do(X=1, "body mass"=high)`.

        Parameters
        ----------
        text : str
            The intervention; names and labels that contain , = ( ) or " are quoted.

        Returns
        -------
        Intervention
            The parsed intervention.

        Raises
        ------
        InputSyntaxError
            If the text is not an intervention.
        DowiseError
            If the text sets a variable twice.

        Examples
        --------
        >>> Intervention.parse('do(X=1, "body mass"=high)')
        Intervention({'X': '1', 'body mass': 'high'})
        """
        body = text.strip()
        if not (body.startswith("do(") and body.endswith(")")):
            raise InputSyntaxError(f"an intervention reads do(X=1, …) or do(), not {text!r}")
        body = body[3:-1]
        settings: dict[str, str] = {}
        position = 0
        while body.strip():
            match = _SETTING.match(body, position)
            if match is None:
                raise InputSyntaxError(
                    f"{text!r}: expected NAME=VALUE at {body[position:].strip()!r}; "
                    "put names or values with , = ( ) in double quotes"
                )
            name, label = (bare_text(group) for group in match.groups())
            if name in settings:
                raise DowiseError(f"{text!r} sets {name} twice", code="duplicate-name")
            settings[name] = label
            position = match.end()
            if position == len(body):
                break
            if body[position] != ",":
                raise InputSyntaxError(f"{text!r}: expected ',' or ')' at {body[position:]!r}")
            position += 1
        return cls(settings)

    @property
    def variables(self) -> frozenset[str]:
        """Intervention set: the variables that are set."""
        return frozenset(self._settings)

    def in_words(self) -> str:
        """Return the intervention in plain English: "set X1 to low and X2 to 1".

        Returns
        -------
        str
            Phrase without a capital or a full stop; for do() it is "set nothing and observe".

        Examples
        --------
        >>> Intervention({"X1": "low", "X2": 1}).in_words()
        'set X1 to low and X2 to 1'
        """
        parts = [f"{name} to {label}" for name, label in self.items()]
        if not parts:
            return "set nothing and observe"
        return "set " + (", ".join(parts[:-1]) + " and " if parts[1:] else "") + parts[-1]

    def __getitem__(self, name: str) -> str:
        return self._settings[name]

    def __contains__(self, name: object) -> bool:
        return name in self._settings

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __len__(self) -> int:
        return len(self._settings)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Intervention):
            return self._settings == other._settings
        return Mapping.__eq__(self, other)

    def __hash__(self) -> int:
        return hash(frozenset(self._settings.items()))

    def __str__(self) -> str:
        if self._text is None:
            settings = (
                f"{bare_or_quoted(name)}={bare_or_quoted(label)}" for name, label in self.items()
            )
            self._text = f"do({', '.join(settings)})"
        return self._text

    def __repr__(self) -> str:
        return f"Intervention({self._settings!r})"


def bare_or_quoted(text: str) -> str:
    """Return a name or a label as it is written in an arm, quoted if necessary."""
    return text if re.fullmatch(_BARE, text) else quoted(text)
