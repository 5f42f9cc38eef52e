"""The API beside its own description: schemathesis sends what that allows, and what it does not.

Seeded and bounded, so that every run sends the same. What starts processes is left to `make check`.
"""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    response_schema_conformance,
    status_code_conformance,
)
from support.servers import running

from dowise import Experiment, load_problem
from dowise.experiment.storage import MemoryStorage
from dowise_web.app import make_app
from dowise_web.registry import ExperimentRegistry
from dowise_web.settings import Settings

# Not `negative_data_rejection`: it takes a query that nobody asks for, ?x=1, for one to be refused.
pytestmark = pytest.mark.slow  # every address is tried with what its description allows

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    ignored_auth,
]
ENDLESS = ["/api/experiments/{name}/stream"]
IN_THE_WORKSHOP = ["/api/preview", "/api/rehearse"]  # and what begins an experiment

description = make_app(ExperimentRegistry(MemoryStorage()), Settings()).openapi()
schema = schemathesis.openapi.from_dict(description).exclude(path=ENDLESS)
quick = schema.exclude(path=IN_THE_WORKSHOP).exclude(method="POST", path="/api/experiments")
within = settings(
    max_examples=15, derandomize=True, deadline=None, database=None, phases=[Phase.generate],
    suppress_health_check=[*HealthCheck],
)  # fmt: skip


@schema.hook
def map_path_parameters(context, path_parameters):  # noqa: ARG001 (schemathesis looks at the names)
    """Mostly an experiment that is there; other names say that there is none, and no more."""
    if path_parameters and len(str(path_parameters.get("name", ""))) % 4:
        path_parameters["name"] = "ward 7"
    return path_parameters


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A store that may be written over and over, with a decision of each kind in it."""
    store = tmp_path_factory.mktemp("described") / "ward.db"
    with Experiment.create(store, "ward 7", load_problem("task2"), "ucb", seed=7) as one:
        one.tell(one.ask({"C": 1}).id, {"Y": 1, "Z": 0})
        one.ask({"C": 0})
    with running(store, rate=100_000.0, failures=100_000.0) as found:
        found.headers = {
            role: {"Authorization": f"Bearer {found.token(role)}"} for role in ("admin", "read")
        }
        yield found


def check(case, served, role):
    case.call_and_validate(
        base_url=served.address, headers=served.headers[role], checks=CHECKS, timeout=60
    )


@quick.parametrize()
@within
def test_responses_to_an_admin_match_the_description(case, served):
    check(case, served, "admin")


@quick.parametrize()
@within
def test_responses_to_a_reader_match_the_description(case, served):
    check(case, served, "read")


@pytest.mark.slow
@schema.parametrize()
@settings(within, max_examples=60)
def test_slow_responses_match_the_description(case, served):
    check(case, served, "admin")


def test_the_description_declares_the_bearer_token():
    schemes = description["components"]["securitySchemes"]
    assert [one["scheme"] for one in schemes.values()] == ["bearer"]
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            assert bool(operation.get("security")) == (path != "/health"), (method, path)
