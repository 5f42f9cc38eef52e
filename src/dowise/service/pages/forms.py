"""What forms send, and how it is read.

A variable's field sends "=label" for a value, "-" for missing for good, and nothing for not seen
yet: so a label may be any text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from fastapi import Depends
from starlette.datastructures import FormData

from dowise.errors import DowiseError
from dowise.service.visitors import form_of

__all__ = [
    "MISSING",
    "Filled",
    "as_sent",
    "in_page_words",
    "sentence",
    "text_in",
    "texts_in",
    "values_in",
]

MISSING = "-"
Filled = Annotated[FormData, Depends(form_of)]


def as_sent(label: str | None) -> str:
    """What a field sends for a value.

    >>> as_sent("low"), as_sent(None)
    ('=low', '-')
    """
    return MISSING if label is None else f"={label}"


def values_in(form: FormData | Mapping[str, object], prefix: str) -> dict[str, str | None]:
    """The values of the variables whose fields begin so, without those that were left open.

    >>> values_in({"seen.Z": "=low", "seen.Y": "", "seen.X": "-", "reason": "=a"}, "seen.")
    {'Z': 'low', 'X': None}
    """
    found: dict[str, str | None] = {}
    for field, sent in form.items():
        if field.startswith(prefix) and sent:
            name = field.removeprefix(prefix)
            if not isinstance(sent, str) or not (sent == MISSING or sent.startswith("=")):
                raise DowiseError(f"the field of {name} holds {sent!r:.80}: choose a value of it")
            found[name] = None if sent == MISSING else sent[1:]
    return found


def text_in(form: FormData, field: str) -> str:
    """A field's text, without blanks around it."""
    sent = form.get(field)
    return sent.strip() if isinstance(sent, str) else ""


def texts_in(form: FormData, field: str) -> list[str] | None:
    """All that was ticked under a name, or the lines of a text; None where nothing was."""
    sent = [one for one in form.getlist(field) if isinstance(one, str)]
    lines = [line.strip() for one in sent for line in one.splitlines() if line.strip()]
    return lines or None


# Errors name commands and options, which a page does not have: it has forms with other names.
_HERE = (
    (re.compile(r"say why: (amend|withdraw) needs a `reason`"), "say why, in the field Reason"),
    (re.compile(r"nothing was told; say what was seen, Y=1"), "choose a value of what was seen"),
    (re.compile(r"say what is corrected, such as Y=0"), "change what is to be corrected"),
    (
        re.compile(r"`amend` corrects it, `erase` takes it out for good"),
        "“Correct something” corrects it",
    ),
    (re.compile(r"`amend` corrects it"), "“Correct something” changes it"),
    (
        re.compile(r"`tell` tells it, `amend` corrects what was told"),
        "tell it under “What was seen”",
    ),
    (
        re.compile(r"say what \(`played`\)"),
        "say what, under “Something else was done”",
    ),
    (
        re.compile(r"`unrelated` goes with `played`: (say what was done instead)"),
        r"\1, too",
    ),
    (re.compile(r"\. `import` brings what was seen in as a record of its own"), ""),
    (re.compile(r": another question needs another `request_id`"), ""),
)  # fmt: skip


def in_page_words(said: str) -> str:
    """An error as it reads where there are forms instead of commands.

    >>> in_page_words("say why: amend needs a `reason`")
    'Say why, in the field Reason.'
    """
    for pattern, words in _HERE:
        said = pattern.sub(words, said)
    return sentence(said)


def sentence(said: str) -> str:
    """With a capital, unless it begins with an arm's name, and a full stop.

    >>> sentence("do(X=1) looks better"), sentence("nothing was told")
    ('do(X=1) looks better.', 'Nothing was told.')
    """
    first = said[:1] if said.startswith("do(") else said[:1].upper()
    return f"{first}{said[1:]}{'' if said.endswith(('.', '?', '!')) else '.'}"
