"""Schemathesis sends requests that the OpenAPI description allows, and others.

Requests are derived from a fixed seed, so every run sends the same.
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

# Without `negative_data_rejection`, which expects unknown query parameters to be refused.
pytestmark = pytest.mark.slow  # many requests to every path

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    ignored_auth,
]
ENDLESS = ["/api/experiments/{name}/stream"]
IN_THE_SANDBOX = ["/api/preview", "/api/rehearse"]  # and creating an experiment

description = make_app(ExperimentRegistry(MemoryStorage()), Settings()).openapi()
schema = schemathesis.openapi.from_dict(description).exclude(path=ENDLESS)
quick = schema.exclude(path=IN_THE_SANDBOX).exclude(method="POST", path="/api/experiments")
within = settings(
    max_examples=15,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[*HealthCheck],
)


@schema.hook
def map_path_parameters(context, path_parameters):  # noqa: ARG001 (schemathesis looks at the names)
    """Use the name of an existing experiment, mostly."""
    if path_parameters and len(str(path_parameters.get("name", ""))) % 4:
        path_parameters["name"] = "ward 7"
    return path_parameters


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server with a pending decision and one with an outcome."""
    store = tmp_path_factory.mktemp("described") / "ward.db"
    with Experiment.create(store, "ward 7", load_problem("task2"), "ucb", seed=7) as experiment:
        experiment.tell(experiment.ask({"C": 1}).id, {"Y": 1, "Z": 0})
        experiment.ask({"C": 0})
    with running(store, rate=100_000.0, failures=100_000.0) as server:
        server.headers = {
            role: {"Authorization": f"Bearer {server.token(role)}"} for role in ("admin", "read")
        }
        yield server


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


@schema.parametrize()
@settings(within, max_examples=20)
def test_slow_responses_match_the_description(case, served):
    check(case, served, "admin")


def test_the_description_declares_the_bearer_token():
    schemes = description["components"]["securitySchemes"]
    assert [scheme["scheme"] for scheme in schemes.values()] == ["bearer"]
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            assert bool(operation.get("security")) == (path != "/health"), (method, path)
