"""Error codes are stable and documented, and errors survive a trip to another process."""

import ast
import copy
import pickle
import re
from pathlib import Path

import pytest

from dowise import errors
from dowise.errors import CODES, DowiseError, InputSyntaxError

SOURCES = Path(errors.__file__).parents[1]
KEBAB_CASE = re.compile(r"[a-z]+(-[a-z]+)*")


def codes_in_sources():
    """Yield (code, place) for codes that are passed to errors or are the default of a class."""
    for path in sorted(SOURCES.glob("dowise*/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            values = []
            if isinstance(node, ast.Call):
                values = [word.value for word in node.keywords if word.arg == "code"]
            elif isinstance(node, ast.ClassDef):
                values = [
                    statement.value
                    for statement in node.body
                    if isinstance(statement, ast.Assign)
                    and [getattr(target, "id", "") for target in statement.targets] == ["code"]
                ]
            for value in values:
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield value.value, f"{path.relative_to(SOURCES)}:{value.lineno}"


def test_codes_are_in_kebab_case_and_sorted():
    assert all(KEBAB_CASE.fullmatch(code) for code in CODES)
    assert list(CODES) == sorted(CODES)
    assert all(meaning.endswith(".") for meaning in CODES.values())


def test_every_code_in_the_sources_is_documented():
    unknown = [f"{place}: {code}" for code, place in codes_in_sources() if code not in CODES]
    assert not unknown, "add these to dowise.errors.CODES"


def error_classes(base=DowiseError):
    return {base}.union(*map(error_classes, base.__subclasses__()))


@pytest.mark.parametrize("kind", sorted(error_classes(), key=lambda kind: kind.__name__))
def test_default_codes_are_documented(kind):
    assert kind.code in CODES


@pytest.mark.parametrize("copied", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
@pytest.mark.parametrize(
    "error",
    [
        DowiseError("no arm left", code="no-arms", hint="allow more arms"),
        InputSyntaxError("line 2: expected a name", 2, 5, code="empty-graph", hint="add a name"),
        errors.NotFoundError("there is no decision 7"),
        errors.UserCodeError("ZeroDivisionError"),
    ],
)
def test_errors_survive_pickling(error, copied):
    other = copied(error)
    assert type(other) is type(error) and str(other) == str(error)
    assert (other.code, other.hint) == (error.code, error.hint)
    assert vars(other) == vars(error)
