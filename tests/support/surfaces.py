"""The surfaces of an experiment behind one interface: Python, command line, client and HTTP.

A driver has the verbs of `Experiment`, with the same arguments. Every verb returns the JSON of its
surface; a refusal is a `DowiseError` with the code that the surface reports. `stored` is the same
experiment, opened by its store.
"""

import json

from click.testing import CliRunner

from dowise import Client, Experiment
from dowise.cli.main import main
from dowise.errors import DowiseError
from dowise.experiment.storage import MemoryStorage, open_storage

NAME = "ward"


class PythonSurface:
    """An `Experiment`, or a `Client`, which has the same methods."""

    def __init__(self, experiment, stored):
        self.experiment, self.stored = experiment, stored

    def ask(self, context, request_id=None, allowed=None, forbid=None):
        return self.experiment.ask(context, request_id, allowed, forbid).as_dict()

    def ask_many(self, contexts, request_id=None, allowed=None, forbid=None):
        decisions = self.experiment.ask_many(contexts, request_id, allowed, forbid)
        return [decision.as_dict() for decision in decisions]

    def tell(self, number, values=None, played=None, unrelated=False):
        return self._case(self.experiment.tell(number, values, played=played, unrelated=unrelated))

    def amend(self, number, values=None, reason="", played=None, unrelated=False):
        case = self.experiment.amend(number, values, reason, played=played, unrelated=unrelated)
        return self._case(case)

    def withdraw(self, number, reason=""):
        return self._case(self.experiment.withdraw(number, reason))

    def _case(self, case):
        return case.as_dict(self.stored.problem) | {"changed": case.changed}

    def erase(self, number, reason=""):
        return self.experiment.erase(number, reason)

    def revise(self, policy, reason=""):
        return self.experiment.revise(policy=policy, reason=reason)

    def import_records(self, rows, again=False):
        table = {name: [row[name] for row in rows] for name in rows[0]}
        return self.experiment.import_records(table, again=again)


class CliSurface:
    """The command `dowise`, in this process."""

    def __init__(self, store, stored, folder):
        self.store, self.stored, self.folder = str(store), stored, folder

    def _run(self, verb, *words):
        command = [verb, self.store, *map(str, words), "--json"]
        result = CliRunner().invoke(main, command, catch_exceptions=False)
        document = json.loads(result.stdout)
        if result.exit_code:
            raise DowiseError(document["error"], code=document["code"])
        return document

    def ask(self, context, request_id=None, allowed=None, forbid=None):
        return self._run("ask", *_ask_options(context, request_id, allowed, forbid))

    def ask_many(self, contexts, request_id=None, allowed=None, forbid=None):
        assert all(context == contexts[0] for context in contexts)
        options = _ask_options(contexts[0], request_id, allowed, forbid)
        document = self._run("ask", *options, "-n", len(contexts))
        return document["decisions"] if len(contexts) > 1 else [document]

    def tell(self, number, values=None, played=None, unrelated=False):
        return self._run("tell", number, *_pairs(values), *_played_options(played, unrelated))

    def amend(self, number, values=None, reason="", played=None, unrelated=False):
        options = _played_options(played, unrelated)
        return self._run("amend", number, *_pairs(values), "--reason", reason, *options)

    def withdraw(self, number, reason=""):
        return self._run("withdraw", number, "--reason", reason)

    def erase(self, number, reason=""):
        return self._run("erase", number, "--reason", reason, "--yes")["changed"]

    def revise(self, policy, reason=""):
        return self._run("revise", "--policy", policy, "--reason", reason)["changed"]

    def import_records(self, rows, again=False):
        file = self.folder / "past.csv"
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        file.write_text("\n".join(lines))
        return self._run("import", file, *["--again"] * again)["imported"]


def _ask_options(context, request_id, allowed, forbid):
    options = [part for pair in _pairs(context) for part in ("-c", pair)]
    if request_id is not None:
        options += ["--request-id", request_id]
    for name, arms in (("--allow", allowed), ("--forbid", forbid)):
        options += [part for arm in arms or () for part in (name, arm)]
    return options


def _played_options(played, unrelated):
    return [*(() if played is None else ("--played", played)), *["--unrelated"] * unrelated]


def _pairs(values):
    return [f"{name}={'' if value is None else value}" for name, value in (values or {}).items()]


class HttpSurface:
    """The HTTP API, as a program without our client uses it."""

    def __init__(self, http, stored):
        self.http, self.stored = http, stored

    def _post(self, path, **body):
        response = self.http.post(f"/api/experiments/{self.stored.name}/{path}", json=body)
        document = response.json()
        if response.status_code != 200:
            raise DowiseError(document["detail"], code=document["code"])
        return document

    def ask(self, context, request_id=None, allowed=None, forbid=None):
        restriction = {"allowed": allowed, "forbid": forbid}
        return self._post("ask", context=context, request_id=request_id, **restriction)

    def ask_many(self, contexts, request_id=None, allowed=None, forbid=None):
        restriction = {"allowed": allowed, "forbid": forbid}
        body = {"contexts": contexts, "request_id": request_id, **restriction}
        return self._post("ask-many", **body)["decisions"]

    def tell(self, number, values=None, played=None, unrelated=False):
        return self._post(f"tell/{number}", values=values, played=played, unrelated=unrelated)

    def amend(self, number, values=None, reason="", played=None, unrelated=False):
        body = {"values": values, "reason": reason, "played": played, "unrelated": unrelated}
        return self._post(f"amend/{number}", **body)

    def withdraw(self, number, reason=""):
        return self._post(f"withdraw/{number}", reason=reason)

    def erase(self, number, reason=""):
        return self._post(f"erase/{number}", reason=reason)["changed"]

    def revise(self, policy, reason=""):
        return self._post("revise", policy=policy, reason=reason)["changed"]

    def import_records(self, rows, again=False):
        return self._post("import", records=rows, again=again)["imported"]


def local_surface(kind, problem, folder):
    """Return a new experiment in memory, in a SQLite file, or behind the command line."""
    storage = MemoryStorage()
    if kind != "memory":
        storage = open_storage(folder / "ward.db", create=True)
    experiment = Experiment.create(storage, NAME, problem, "random", seed=7)
    if kind == "cli":
        return CliSurface(folder / "ward.db", experiment, folder)
    return PythonSurface(experiment, Experiment.open(storage))


def served_surface(kind, problem, server, number):
    """Return a new experiment of a running server, behind a client or plain HTTP."""
    stored = Experiment.create(server.storage, f"{NAME} {number}", problem, "random", seed=7)
    if kind == "http":
        return HttpSurface(server.http, stored)
    return PythonSurface(Client(server.address, server.admin_token, stored.name), stored)
