"""Problems that ask for too much: each ends with a clear error."""

import psutil
import pytest
from support.sandboxes import InProcessSandbox

from dowise_web.sandbox import BadInputError, LimitExceededError, Sandbox, SandboxLimits

NAMES = [f"V{i}" for i in range(60)]
FULL = "; ".join(f"{one} -> {other}" for i, one in enumerate(NAMES) for other in NAMES[i + 1 :])
FIFTY = "[" + ", ".join(f'"{i}"' for i in range(50)) + "]"
DOMAINS = "[domains]\n" + "\n".join(f"{name} = {FIFTY}" for name in NAMES)
TINY = 'graph = "X -> Y"\nreward = "Y"\n'
MANY = "max_arms = 1000000000\n"

EXCESSIVE = {
    "all of a large graph": (f'graph = "{FULL}"\nreward = "V59"\n{DOMAINS}', "too many arms"),
    "brackets": (f"{TINY}domains = {'[' * 200_000}", "nested too deeply"),
    "brackets in a domain": (
        f"{TINY}domains = {{X = {'[' * 90}{']' * 90}}}",
        "which is not a label",
    ),
    "braces in DOT": ("digraph {" + "{" * 3_000 + "A" + "}" * 3_000 + "}", "nested too deeply"),
    "brackets in GML": ("graph [" + "node [" * 30_000, "GML: expected graph"),
    "a long number": (f"{TINY}soft = {'9' * 200_000}", "a number is too long"),
    "a long name": (f'graph = "X -> Y"\nreward = "{"Z" * 200_000}"', "unknown rew"),
    "a bomb of tables": (TINY + "\n".join(f"[{'a.' * 500}b{i}]" for i in range(200)), "unknown k"),
    "a prior of sixty axes": (f"{TINY}[prior]\nX = {'[' * 60}1{']' * 60}", "does not fit its CPT"),
    "two million characters": ("X -> Y; " * 250_000, "at most 262,144"),
    "a quote that never ends": ('"""' + "a" * 200_000, "not valid TOML"),
    "nested comments": ("/*" * 100_000 + "->", "graph, line 1, column 1"),
}


@pytest.mark.parametrize(("text", "message"), EXCESSIVE.values(), ids=EXCESSIVE)
def test_excessive_problems_are_refused(text, message):
    with pytest.raises(BadInputError, match=message) as caught:
        InProcessSandbox().preview(text)
    assert len(str(caught.value)) < 2_100


ENDLESS = {
    "millions of intervention sets": (
        f'graph = "{"; ".join(f"X{i} -> Y; X{i} <-> Y" for i in range(30))}"\nreward = "Y"\n{MANY}'
    ),
    "millions of arms": f'graph = "{"; ".join(f"X{i} -> Y" for i in range(18))}"\nreward = "Y"\n'
    f'arms = "all"\n{MANY}',
    "a key of 50,000 parts": f"{TINY}{'a.' * 50_000}a = 1",
    "a chain of 20,000": f'graph = "{" -> ".join(f"V{i}" for i in range(20_000))}"\nreward = "V1"',
}


@pytest.mark.slow
@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS)
def test_endless_problems_end_within_the_limits(text):
    before = psutil.Process().memory_info().rss
    with Sandbox(SandboxLimits(preview_seconds=2, megabytes=512)) as sandbox:
        with pytest.raises(LimitExceededError, match="more than (2 seconds|512 MB of memory)"):
            sandbox.preview(text)
        assert sandbox.preview(TINY)["arms"]["count"] == 2
    assert psutil.Process().memory_info().rss - before < 2**24


def test_oversize_tables_can_be_previewed_but_not_started():
    sandbox = InProcessSandbox()
    text = f'graph = "{FULL}"\nreward = "V59"\narms = ["do(V0=1)", "do(V1=2)"]\n{DOMAINS}'
    preview = sandbox.preview(text)
    assert preview["best"] is None and "entries, and the limit is" in preview["notes"][0]
    with pytest.raises(BadInputError, match="entries, and the limit is") as caught:
        sandbox.begin(text)
    assert caught.value.field == "policy"
