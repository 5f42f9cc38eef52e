"""Golden stores: journals written by earlier versions, and what commands print about them.

    python -m tests.golden.stores              # writes present.db, if there is none

`present.db` was written before the redesign and must not be written again: the tests check that
current code reads it, derives every decision again and prints the same numbers.
`store_documents.json` has the documents of all stores, `store_texts.json` the sentences in them.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import sys
import tempfile
from contextlib import chdir, closing
from functools import cache
from pathlib import Path

from click.testing import CliRunner

from dowise import Experiment, Problem, load_problem

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

from golden.commands import separated

from dowise.cli.main import main

FOLDER = Path(__file__).parent
STORES = {
    "schema-1": FOLDER.parent / "experiment" / "golden" / "schema-1.db",
    "schema-2": FOLDER.parent / "experiment" / "golden" / "schema-2.db",
    "present": FOLDER / "present.db",
}
GRAPH = "C -> X -> Z -> Y; C -> Y; W -> Z"
DOUBTFUL = "C -> X -> Z -> Y; C ?-> Y; X <?> Y"
THEN = {"count_pending": False}
LATER = {"count_pending", "graph_free_prior"}  # options that did not exist
DRAWN_ANEW = {"ts"}  # prior=0.5: rows of any shape have other draws since version 3 of draws
EXPERIMENTS = {  # name: problem, policy, options; "best" was commit-kg with flat rows then
    "ids": (lambda: Problem(GRAPH, "Y", "C", "Z"), "ids", {"samples": 50}),
    "ids, options": (
        lambda: load_problem("task2"),
        "ids",
        {"samples": 50, "gain": "all", "about": "map", "floor": 0.1},
    ),
    "best": (lambda: Problem(GRAPH, "Y", "C", "Z", costs={"X": 0.1}), "commit-kg", THEN),
    "best, doubtful": (lambda: Problem(DOUBTFUL, "Y", "C", "Z", edge_rules=1), "commit-kg", THEN),
    "ids, doubtful": (
        lambda: Problem(DOUBTFUL, "Y", "C", "Z", edge_rules=1),
        "ids",
        {"samples": 50},
    ),
    "ts": (
        lambda: Problem(GRAPH, "Y", "C", "Z", minimise=True),
        "ts",
        {"propensity_samples": 50, "prior": 0.5},
    ),
    "commit-kg": (lambda: Problem("U -> X; U -> Y; X -> Y", "Y", hidden="U"), "commit-kg", THEN),
    "certified-ids": (lambda: load_problem("task1"), "certified-ids", {"samples": 50}),
    "z2-ts": (lambda: Problem(GRAPH, "Y", "C", "Z"), "z2-ts", {"resamples": 10}),
    "z2-kl-ucb": (lambda: Problem(GRAPH, "Y", "C", "Z"), "z2-kl-ucb", {"resamples": 10}),
    "bernoulli-ts": (lambda: load_problem("task1"), "bernoulli-ts", {"floor": 0.2}),
    "kl-ucb": (lambda: load_problem("task1"), "kl-ucb", {}),
    "ucb": (lambda: load_problem("task1"), "ucb", {}),
    "random": (lambda: load_problem("task1"), "random", {}),
}


def write_store(path):
    """Write a store in which every policy decides, and events of every kind occur."""
    for index, (name, (problem, policy, options)) in enumerate(EXPERIMENTS.items()):
        with Experiment.create(
            path, name, problem(), policy, options, 100 + index, actor="ann"
        ) as experiment:
            _run(experiment, random.Random(index), EXPERIMENTS[name])


def _run(experiment, rng, plan):
    problem = experiment.problem
    contexts = [dict.fromkeys(problem.context, value) for value in (0, 1)]
    experiment.import_records(_records(problem, rng, 3), source="past.csv")
    first = experiment.ask(contexts[0], request_id="first")
    _tell(experiment, first, rng)
    for decision in experiment.ask_many([*contexts, contexts[0]], request_id="batch"):
        if decision.id != 4:
            _tell(experiment, decision, rng)
    experiment.withdraw(4, "left")
    experiment.amend(2, {problem.reward: 0}, "typo")
    restricted = experiment.ask(contexts[1], allowed=problem.arms[:2])
    _tell(experiment, restricted, rng)
    _tell(experiment, experiment.ask(contexts[1], forbid=[problem.arms[0]]), rng)
    other = next(arm for arm in problem.arms if arm != problem.arms[-1])
    unrelated = experiment.ask(contexts[0])
    outcome = {problem.reward: 1} if problem.reward not in other else {}
    experiment.tell(unrelated.id, outcome, played=other, unrelated=True)
    experiment.ask(contexts[1])  # stays pending
    if experiment.name in ("ids", "best", "ts"):
        problem_again = plan[0]()
        values = {"reward_values": {"0": -10, "1": 50}, "minimise": problem_again.minimise}
        experiment.revise(
            Problem(GRAPH, "Y", "C", "Z", **values), "ids", {"samples": 40}, "in euros"
        )
        _tell(experiment, experiment.ask(contexts[0]), rng)
    if experiment.name in ("ids, doubtful", "best, doubtful", "ucb"):
        experiment.import_records(_records(problem, rng, 4), source="more.csv")
        _tell(experiment, experiment.ask(contexts[1]), rng)
    if experiment.name in ("ids", "best, doubtful", "kl-ucb"):
        experiment.erase(3, "asked to")
        _tell(experiment, experiment.ask(contexts[1]), rng)


def _tell(experiment, decision, rng):
    names = [name for name in experiment.problem.domains if name not in decision.arm]
    values = {name: rng.randrange(2) for name in names if name not in experiment.problem.context}
    pieces = sorted(values)
    experiment.tell(decision.id, {name: values[name] for name in pieces[:1]})
    experiment.tell(decision.id, values)


def _records(problem, rng, number):
    arms = [rng.choice(problem.arms) for _ in range(number)]
    columns = {
        name: [arm.get(name, str(rng.randrange(2))) for arm in arms] for name in problem.domains
    }
    return {"arm": [str(arm) for arm in arms], **columns}


def events_of(path, name):
    """Return the kinds and bodies of a journal, without what differs between runs and versions."""
    with closing(sqlite3.connect(path)) as store:
        rows = store.execute(
            "SELECT kind, actor, body FROM events WHERE experiment = ? ORDER BY number", (name,)
        ).fetchall()
    page = []
    for kind, actor, body in rows:
        body = None if body is None else json.loads(body)  # an erased event has none
        if body is not None and "options" in body:
            body["options"] = {key: x for key, x in body["options"].items() if key not in LATER}
        for key in {"maker", "reason", "known", "digest", "erased"} & {*(body or {})}:
            body[key] = "<any>"
        if body and "problem" in body:  # earlier versions had no other rules
            body["problem"] = body["problem"].replace("edge_rules = 1\n", "")
        page.append([kind, actor, body])
    return page


def documents():
    """Return the content of `store_documents.json`."""
    return _contents()[0]


def texts():
    """Return the content of `store_texts.json`."""
    return _contents()[1]


@cache
def _contents():
    data, sentences = {}, {}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for store, file in STORES.items():
            shutil.copy(file, f"{store}.db")
            for name in _names(f"{store}.db"):
                for words in _COMMANDS:
                    key = f"{store}, {name}: {' '.join(words)}"
                    document = _document([words[0], f"{store}.db", *words[1:], "--name", name])
                    if words == ("audit",):  # differs between processors and library versions
                        document["made_elsewhere"] = document["notes"] = "<any>"
                    data[key], sentences[key] = separated(document, folder, keep=True)
                file = Path("export.csv")
                data[f"{store}, {name}: table"] = file.read_text("utf-8").splitlines()
                file.unlink()
    return data, sentences


_COMMANDS = (
    ("audit",),
    ("status",),
    ("status", "--evidence"),
    ("explain", "1"),
    ("explain", "5"),
    ("evaluate", "random"),
    ("export", "export.csv"),
)


def _names(store):
    from dowise.experiment.storage import open_storage

    storage = open_storage(store)
    try:
        return [name for name in storage.experiments() if name != "ward 8"]  # large
    finally:
        storage.close()


def _document(arguments):
    result = CliRunner().invoke(main, [*arguments, "--json"])
    if result.exit_code == 2:
        return {"error": result.stderr}
    if result.exception is not None and result.exit_code != 1:
        raise result.exception
    return json.loads(result.stdout)


if __name__ == "__main__":
    if STORES["present"].exists():
        sys.exit("present.db exists: it is not written again")
    write_store(STORES["present"])
