"""Public names have docstrings in NumPy style with an example."""

import inspect
from functools import cached_property

import pytest

import dowise

SECTION = "\n{title}\n{rule}"
BANNED_OPENINGS = ("What", "Whether", "How", "Where", "Of", "Which", "That", "Those", "Its", "One")


def public_names():
    """Yield (name, object) of everything in `dowise.__all__` and of public methods."""
    for name in dowise.__all__:
        value = getattr(dowise, name)
        if name == "__version__":
            continue
        yield name, value
        if inspect.isclass(value):
            for method in dir(value):
                if is_foreign(value, method):
                    continue
                member = inspect.getattr_static(value, method)
                if isinstance(member, property | cached_property):
                    yield f"{name}.{method}", member
                elif inspect.isroutine(getattr(value, method)):
                    yield f"{name}.{method}", getattr(value, method)


def is_foreign(kind, method):
    """Return True if a member is private or inherited from a class outside dowise."""
    owner = next(base for base in kind.__mro__ if method in vars(base))
    return method.startswith("_") or not owner.__module__.startswith("dowise")


NAMES = dict(public_names())


def has_section(text, title):
    return SECTION.format(title=title, rule="-" * len(title)) in inspect.cleandoc(text)


def parameters_of(value):
    parameters = inspect.signature(value).parameters
    return [name for name in parameters if name not in ("self", "cls", "args", "kwargs")]


@pytest.mark.parametrize("name", NAMES)
def test_docstring_opens_with_a_noun_or_a_verb(name):
    text = inspect.getdoc(NAMES[name])
    assert text and not text.startswith("(")
    assert text.split()[0] not in BANNED_OPENINGS


@pytest.mark.parametrize("name", [name for name in NAMES if "." not in name])
def test_public_names_have_sections_and_an_example(name):
    value = NAMES[name]
    text = value.__doc__
    if parameters_of(value):
        assert has_section(text, "Parameters")
    if not inspect.isclass(value):
        returns = inspect.signature(value).return_annotation
        assert has_section(text, "Returns") or returns in (None, "None")
    assert has_section(text, "Examples") and ">>> " in text
    if not inspect.isclass(value) or not issubclass(value, Exception):
        assert has_section(text, "Raises")


def is_method(name):
    return "." in name and not isinstance(NAMES[name], property | cached_property)


@pytest.mark.parametrize("name", [name for name in NAMES if is_method(name)])
def test_public_methods_have_sections_and_an_example(name):
    value = NAMES[name]
    text = inspect.getdoc(value)
    if parameters_of(value):
        assert has_section(text, "Parameters")
    if inspect.signature(value).return_annotation not in (None, "None"):
        assert has_section(text, "Returns") or has_section(text, "Yields")
    assert has_section(text, "Examples") and ">>> " in text
