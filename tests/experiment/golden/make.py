"""Stores of each schema version, which later code must be able to read.

    python tests/experiment/golden/make.py

Makes schema-N.db for the current version N, and schema-N.json with its contents. The files of a
released version must not be made again.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from dowise import CausalGraph, Experiment, Problem
from dowise.experiment.storage import open_storage
from dowise.experiment.storage.sql import VERSION
from dowise_web.tokens import create_link, create_session, create_token, list_tokens, revoke

FOLDER = Path(__file__).parent
GRAPH = CausalGraph.parse("C -> X -> Z -> Y; C -> Y; X <-> Y")
WARD = Problem(GRAPH, "Y", "C", "Z", domains={"Y": ("ill", "well")}, name="Wärd ☃")
WARD_IN_EUROS = Problem(
    GRAPH, "Y", "C", "Z", domains={"Y": ("ill", "well")}, reward_values={"ill": -10, "well": 50}
)
CONTEXTS = ({"C": "0"}, {"C": "1"})
PAST = {"arm": ["do()", "do(X=1)", "do()"], "C": [0, 1, 1], "X": [1, 1, 0], "Z": [0, 1, None],
        "Y": ["ill", "well", "well"]}  # fmt: skip


def make(path: Path) -> dict[str, str]:
    """Write two experiments, with events of all kinds and with a snapshot, and tokens.

    Returns the secrets of the tokens, which are no secrets, since the stores are never served.
    """
    import pandas

    path.unlink(missing_ok=True)
    with Experiment.create(path, "ward 7", WARD, "ids", {"samples": 50}, 171, actor="Zoë") as one:
        one.ask(CONTEXTS[1], request_id="ünï-☃")
        one.tell(1, {"Z": 1})
        one.tell(1, {"X": 0, "Y": "well"} if "X" not in one.records()[0].arm else {"Y": "well"})
        one.ask(CONTEXTS[0], allowed=["do(X=0)", "do(X=1)"])
        one.tell(2, {"Z": None, "Y": "ill"}, played="do(X=0)", unrelated=True)
        one.amend(2, {"Y": "well"}, "typo")
        one.ask(CONTEXTS[0], forbid=["do(X=1)"])
        one.withdraw(3, "left")
        one.import_records(pandas.DataFrame(PAST), source="past.csv")
        one.ask_many(CONTEXTS, request_id="two")
        one.tell(4, {"Y": "ill"})
        one.revise(WARD_IN_EUROS, "ts", {"propensity_samples": 100}, "in euros from now on")
        one.ask(CONTEXTS[0])
        one.erase(4, "asked to")
        one.ask(CONTEXTS[1])
    rng = random.Random(7)
    with Experiment.create(path, "ward 8", WARD, "ucb", seed=172, actor="ann") as other:
        for _ in range(140):
            number = other.ask({"C": rng.randrange(2)}).id
            other.tell(number, {"Z": rng.randrange(2), "Y": rng.choice(("ill", "well"))})
    storage = open_storage(path)
    token, link = create_token(storage, "ask", "Zoë"), create_link(storage, "read", "ann", 5e7)
    revoked = create_token(storage, "admin", "bob", days=36_500)
    session = create_session(storage, link.secret, hours=1e6)
    revoke(storage, revoked.token.id)
    storage.close()
    created = {"token": token, "link": link, "revoked": revoked, "session": session}
    return {name: item.secret for name, item in created.items()}


def contents(path: Path) -> dict[str, object]:
    """Return the experiments of a store as plain data."""
    documents = {}
    for name in ("ward 7", "ward 8"):
        with Experiment.open(path, name) as experiment:
            documents[name] = {
                "head": str(experiment.head),
                "kinds": [event.kind for event in experiment.events()],
                "cases": [case.as_dict(experiment.problem) for case in experiment.records()],
                "means": [experiment.belief.mean_rewards(context).tolist() for context in CONTEXTS],
            }
    return documents


def tokens(path: Path) -> list[dict[str, object]]:
    """Return the tokens of a store."""
    storage = open_storage(path)
    try:
        return list_tokens(storage)
    finally:
        storage.close()


if __name__ == "__main__":
    store = FOLDER / f"schema-{VERSION}.db"
    secrets = make(store)
    documents = contents(store) | {"tokens": tokens(store), "secrets": secrets}
    text = json.dumps(documents, ensure_ascii=False, separators=(",", ":"))
    store.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
