"""The page History: list, search, explanations and audit."""

import re

import pytest
from support.servers import running

from dowise import Experiment, load_problem
from dowise.experiment.event_wording import event_text


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server, and an experiment with events of every kind."""
    store = tmp_path_factory.mktemp("served") / "ward.db"
    experiment = Experiment.create(store, "ward", load_problem("task2"), "ids", {"samples": 50}, 7)
    with experiment as ward:
        for number in range(1, 6):
            ward.ask({"C": number % 2})
        ward.tell(1, {"Z": 1, "Y": 1, "X2": 0} if "X2" not in ward.case(1).arm else {"Y": 1})
        ward.amend(1, {"Y": 0}, reason="a slip of the pen")
        ward.tell(2, {"Z": None}, played="do(X2=1)", unrelated=True)
        ward.withdraw(3, reason="moved away")
        ward.erase(4, reason="asked to be forgotten")
        ward.import_records({"C": [0, 1], "Z": [0, 1], "Y": [1, 1]}, source="spring.csv")
        ward.revise(policy="ts", reason="simpler")
    with running(store) as server:
        yield server


def lines(page):
    return re.findall(r'<li id="event-(\d+)">', page)


def test_every_event_is_listed_newest_first(served):
    ward = served.registry.experiment("ward")
    page = served.browser("read").get("/experiments/ward/history").text
    assert lines(page) == [str(n) for n in range(ward.head.number, 0, -1)]
    sentences = [event_text(event) for event in ward.events()]
    assert "Decision 1: Y changed from 1 to 0 (a slip of the pen)" in sentences
    assert "Decision 3 withdrawn (moved away)" in sentences
    assert "2 records imported from spring.csv" in sentences
    assert "Experiment revised; the policy is ts (simpler)" in sentences
    assert "Its content was erased" in sentences
    assert any("that do(X2=1) was played instead" in sentence for sentence in sentences)
    assert all(sentence in page for sentence in sentences)


def test_events_can_be_filtered_and_searched(served):
    browser = served.browser("read")
    asked = browser.get("/experiments/ward/history", params={"kind": "asked"}).text
    assert len(lines(asked)) == 5
    matching = browser.get("/experiments/ward/history", params={"search": "SLIP of the"}).text
    assert len(lines(matching)) == 1
    assert "No events match" in browser.get("/experiments/ward/history?search=zebra").text


def test_a_decision_is_explained(served):
    page = served.browser("read").get("/experiments/ward/history/explain/2").text
    explanation = served.registry.experiment("ward").explain(2)
    text = str(explanation)
    at = re.search(r'<time datetime="([^"]*)">([^<]*)</time>', page)
    assert at[1] in text
    for sentence in explanation.sentences():
        assert sentence in text and sentence.replace(at[1], at[0]) in page
    assert "was erased" in served.browser("read").get("/experiments/ward/history/explain/4").text


def test_the_seed_is_not_shown(served):
    page = served.browser("admin").get("/experiments/ward/history").text
    assert "seed" not in page


def test_an_audit_shows_the_head(served):
    page = served.browser("read").get("/experiments/ward/history/audit").text
    assert "The record is complete" in page and str(served.registry.experiment("ward").head) in page


def test_older_events_are_loaded_on_demand(tmp_path):
    store = tmp_path / "long.db"
    with Experiment.create(store, "long", load_problem("task1"), "ucb", seed=1) as experiment:
        for _ in range(70):
            experiment.ask()
    with running(store) as server:
        browser = server.browser("read")
        first = browser.get("/experiments/long/history").text
        url = re.search(r'href="(/experiments/long/history\?[^"]*)"', first)[1]
        second = browser.get(url.replace("&amp;", "&"), headers={"HX-Request": "true"}).text
        assert "<html" not in second
        assert lines(first) + lines(second) == [str(n) for n in range(71, 0, -1)]


def test_newer_events_are_sent_once(served):
    browser = served.browser("read")
    page = browser.get("/experiments/ward/history?kind=told").text
    url = re.search(r'<li class="newer-events" hidden hx-get="([^"]*)"', page)[1].replace(
        "&amp;", "&"
    )
    part = browser.get(url, headers={"HX-Request": "true"}).text
    assert lines(part) == [] and "<html" not in part and url.replace("&", "&amp;") in part
    served.registry.experiment("ward").tell(5, {"Y": 1})
    served.registry.experiment("ward").ask({"C": 1})
    number = served.registry.experiment("ward").head.number
    part = browser.get(url, headers={"HX-Request": "true"}).text
    assert lines(part) == [str(number - 1)] and f"after={number}" in part
