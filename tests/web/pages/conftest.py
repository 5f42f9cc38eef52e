"""A server whose experiments have variables of all kinds, and users of every role."""

import pytest
from support.html_forms import Visit
from support.servers import running

from dowise import CausalGraph, Experiment, Problem

ODD = '<script>alert("1")</script>'
WARD = Problem(
    CausalGraph.parse(
        "Age -> Frailty -> Recovery; Age -> Recovery; Dose -> Frailty; Diet -> Frailty"
    ),
    "Recovery",
    context="Age",
    non_manipulable="Frailty",
    domains={
        "Age": ("under 60", "60 to 75", "75 to 90", "over 90"),
        "Dose": ("none", "low"),
        "Frailty": ("-", "=", ODD),
        "Recovery": ("no", "full"),
    },
    reward_values={"no": 0, "full": 20},
    costs={"Dose": 1},
)


@pytest.fixture(scope="session")
def clinic(tmp_path_factory):
    """A server with `ward 7/<b>` in its store."""
    store = tmp_path_factory.mktemp("pages") / "ward.db"
    with Experiment.create(store, "ward 7/<b>", WARD, "ts", seed=7):
        pass
    with Experiment.create(store, "plain", Problem(CausalGraph.parse("X -> Y"), "Y"), "ts", seed=7):
        pass
    with running(store) as server:
        yield server


@pytest.fixture(scope="session")
def visits(clinic):
    """Users by role, at the experiment `ward 7/<b>`."""
    url = "/experiments/ward%207%2F%3Cb%3E"
    return {role: Visit(clinic.browser(role), url) for role in ("read", "tell", "ask", "admin")}


@pytest.fixture(scope="session")
def trial(clinic):
    """The experiment `ward 7/<b>`."""
    return clinic.registry.experiment("ward 7/<b>")
