"""Number of calls inside the package per operation: the distance that a reader has to walk.

    python -m tests.golden.walk                # print the current figures

`calls` counts the functions of the package that are entered, `file_changes` the calls into another
file than that of the calling function, and `files` the files visited. Each operation is measured
when everything is loaded and compiled. `store_reads` counts the reads of the journal per page.
`walks.json` has the recorded figures, which are upper limits.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

from support.servers import running

import dowise
from dowise import Experiment, load_problem, simulate

SOURCES = Path(dowise.__file__).parent.parent
PACKAGES = tuple(f"{SOURCES / name}/" for name in ("dowise", "dowise_web"))
# Not counted as functions: whether a comprehension is a frame depends on the version of Python.
_PARTS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<module>")
TIMES = 3
PAGES = ("now", "known", "graph", "history")


def _is_source(file):
    return file.startswith(PACKAGES) and file.endswith(".py")  # templates are not


class Walk:
    """Counts calls in all threads that start while it is installed, and in this one."""

    def __init__(self):
        self.is_on = False
        self.calls, self.changes, self.files = 0, 0, set()

    def __call__(self, frame, event, _argument):
        if event != "call" or not self.is_on or frame.f_code.co_name in _PARTS:
            return
        file = frame.f_code.co_filename
        if not _is_source(file):
            return
        self.calls += 1
        self.files.add(file)
        caller = frame.f_back
        while caller is not None and not _is_source(caller.f_code.co_filename):
            caller = caller.f_back
        self.changes += caller is None or caller.f_code.co_filename != file

    @contextmanager
    def installed(self):
        """Profile this thread, and threads that start within the block."""
        earlier, earlier_in_threads = sys.getprofile(), threading.getprofile()
        sys.setprofile(self)
        threading.setprofile(self)
        try:
            yield self
        finally:
            sys.setprofile(earlier)
            threading.setprofile(earlier_in_threads)

    def figures(self, operation):
        """Return the smallest counts of several runs, which vary with the clock."""
        counts = [self._once(operation) for _ in range(TIMES)]
        return {name: min(count[name] for count in counts) for name in counts[0]}

    def _once(self, operation):
        self.calls, self.changes, self.files = 0, 0, set()
        self.is_on = True
        try:
            operation()
        finally:
            self.is_on = False
        return {"calls": self.calls, "file_changes": self.changes, "files": len(self.files)}


def walks():
    """Return the content of `walks.json`."""
    walk = Walk()
    with tempfile.TemporaryDirectory() as folder, walk.installed():
        page = _experiment_walks(walk, Path(folder) / "ward.db")
        page |= _page_walks(walk, Path(folder) / "ward.db")
        page["simulate"] = _simulate_walk(walk)
    return page


def _experiment_walks(walk, store):
    problem = load_problem("task2")
    with Experiment.create(store, "ward", problem, "ids", {"samples": 50}, 7) as experiment:
        for number in range(1, 6):
            experiment.ask({"C": number % 2})
            experiment.tell(number, {"Y": 1, "Z": 0})
        ask = walk.figures(lambda: experiment.ask({"C": 0}))
        waiting = [case.id for case in experiment.pending()]
        tell = walk.figures(lambda: experiment.tell(waiting.pop(), {"Y": 1, "Z": 0}))
        experiment.ask({"C": 1})
    return {"ask": ask, "tell": tell}


def _page_walks(walk, store):
    figures = {}
    with running(store, failures=1000.0) as server:
        browser = server.browser("admin")
        reads = _count_reads(server.storage)
        for page in PAGES:
            address = f"/experiments/ward/{page}"
            for _ in range(2):  # the second time everything is loaded
                assert browser.get(address).status_code == 200
            reads.clear()
            figures_of_page = walk.figures(lambda address=address: browser.get(address))
            figures[f"page {page}"] = figures_of_page | {"store_reads": len(reads) // TIMES}
    return figures


def _count_reads(storage):
    reads = []

    def counted(name, method):
        def read(*arguments, **options):
            reads.append(name)
            return method(*arguments, **options)

        return read

    for name in ("read", "last", "snapshot"):
        setattr(storage, name, counted(name, getattr(storage, name)))
    return reads


def _simulate_walk(walk):
    def run():
        simulate(["task2"], ["ids"], horizon=20, trials=2, options={"ids": {"samples": 50}})

    run()
    return walk.figures(run)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(walks(), indent=1) + "\n")
