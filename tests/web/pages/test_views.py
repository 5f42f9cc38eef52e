"""A page shows one moment of the journal: it reads the store once, and shows that head."""

import re

import pytest
from support.servers import running

from dowise import Experiment, load_problem


@pytest.fixture
def ward(tmp_path):
    """A served experiment with five decisions told and one pending: 12 events."""
    store = tmp_path / "ward.db"
    problem = load_problem("task2")
    with Experiment.create(store, "ward", problem, "ids", {"samples": 50}, 7) as trial:
        for number in range(1, 6):
            trial.ask({"C": number % 2})
            trial.tell(number, {"Y": 1, "Z": 0})
        trial.ask({"C": 0})
    with running(store, failures=1000.0) as server:
        yield server, store


def page_of(browser, page):
    answer = browser.get(f"/experiments/ward/{page}")
    assert answer.status_code == 200
    return answer.text


def watch(storage, monkeypatch, on_read):
    """Call `on_read` at the end of every read of the journal."""

    def watched(method):
        def read(*arguments, **options):
            result = method(*arguments, **options)
            on_read()
            return result

        return read

    for name in ("read", "last", "snapshot"):
        monkeypatch.setattr(storage, name, watched(getattr(storage, name)))


@pytest.mark.parametrize("page", ["now", "known", "graph", "history"])
def test_a_page_reads_the_store_once(ward, page, monkeypatch):
    server, _ = ward
    browser, reads = server.browser("admin"), []
    page_of(browser, page)  # opens the experiment
    watch(server.storage, monkeypatch, lambda: reads.append(page))
    page_of(browser, page)
    assert len(reads) == 1


def test_the_head_on_a_page_is_the_head_of_what_it_shows(ward, monkeypatch):
    server, store = ward
    browser = server.browser("admin")
    page_of(browser, "now")
    with Experiment.open(store, "ward") as other:
        # Another process asks for a decision after each read.
        watch(server.storage, monkeypatch, lambda: other.ask({"C": 1}))
        html = page_of(browser, "now")
        monkeypatch.undo()
        assert other.head.number > 12
    head = int(re.search(r'data-head="(\d+)"', html)[1])
    in_footer = int(re.search(r"Head of the journal <code>(\d+):", html)[1])
    decisions = int(re.search(r"(\d+) decisions", html)[1])
    pending = len(re.findall(r"missing: ", html))
    shown = {"in the footer": in_footer, "decisions": decisions + 6, "pending": pending + 11}
    assert shown == dict.fromkeys(shown, head)
