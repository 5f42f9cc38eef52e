"""The page What we know: arms, contexts, advice and charts."""

import re

import pytest
from support.html_forms import Visit

from dowise._core.document import format_number


@pytest.fixture(scope="module")
def learned(trial):
    """The trial after some rounds: usually full recovery if Dose is low."""
    for number in range(24):
        decision = trial.ask({"Age": "under 60" if number % 4 else "over 90"})
        good = decision.arm.get("Dose") == "low" or number % 3 == 0
        trial.tell(decision.id, {"Frailty": "-", "Recovery": "full" if good else "no"})
    return trial


@pytest.fixture
def visit(visits, learned):  # noqa: ARG001 (there are outcomes)
    return visits["read"]


def rows(page):
    """Return the arms in the order of the table."""
    table = page.html[page.html.index('<table class="arms') :]
    return re.findall(r'<th scope="row"><span class="code">([^<]*)</span>', table)


def test_arms_are_sorted_by_mean(visit, learned):
    status = learned.status(evidence=False)
    context = max(status.contexts, key=lambda context: context.weight)
    page = visit.get("known")
    means = {str(arm): context.mean[i] for i, arm in enumerate(context.arms)}
    assert page.status == 200 and {*rows(page)} == {*means}
    sorted_means = [means[arm] for arm in rows(page)]
    assert sorted_means == sorted(sorted_means, reverse=True)
    leader = str(context.arms[context.leader])
    assert rows(page)[0] == leader and f"{leader} recommended" in page.text
    assert page.html.count("badge best") == 1
    i = context.leader
    assert f"{format_number(context.low[i])} to {format_number(context.high[i])}" in page.text
    assert f"{context.best[i]:.2f}" in page.text and "mean Recovery, net of cost" in page.text


def test_a_context_can_be_selected(visit, learned):
    page = visit.get("known")
    assert "The arms where Age=under 60" in page.text  # the most frequent one
    (url,) = {href for href in page.hrefs if href and "over+90" in href}
    page = visit.get(f"known?{url.partition('?')[2]}")
    assert "The arms where Age=over 90" in page.text and 'aria-current="true"' in page.html
    page = visit.get("known", **{"context.Age": "=75 to 90"})
    assert "The arms where Age=75 to 90" in page.text
    context = learned.status({"Age": "75 to 90"}, evidence=False).contexts[0]
    assert format_number(context.mean[context.leader]) in page.text
    assert visit.get("known", **{"context.Age": "=nobody"}).status == 422


def test_the_tolerance_is_kept_in_links(visit, learned):
    status = learned.status(evidence=False)
    page = visit.get("known", tolerance="1000")
    assert status.advice(1000) in page.text and "You can stop" in page.text
    assert page.form("known")["tolerance"] == "1000"
    assert all("tolerance=1000" in href for href in page.hrefs if href and "context." in href)
    page = visit.get("known", tolerance="0.0000001")
    assert "Go on: if you stop now, expect to lose" in page.text
    assert "You can stop" not in visit.get("known").text and "Go on" not in visit.get("known").text


def test_an_empty_form_uses_the_default_tolerance(visit, learned):
    page = visit.get("known", tolerance="", rounds="")
    assert page.form("known")["tolerance"] == "0.2"
    assert learned.status().advice(0.2) in page.text
    assert page.form("known").get("rounds", "") == ""
    assert visit.get("known").form("known")["tolerance"] == ""


def test_the_proposed_tolerance_is_in_units_of_the_reward(visit, learned):
    expected = f"{learned.problem.payoff.span / 100:g}"
    assert f'placeholder="{expected}"' in visit.get("known").html


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"tolerance": "much"}, "'much' is not a number such as 0.2"),
        ({"tolerance": "-1"}, "'-1' is not a loss of at least 0"),
        ({"tolerance": "nan"}, "'nan' is not a loss of at least 0"),
        ({"rounds": "1.5"}, "'1.5' is not a number such as 100"),
        ({"rounds": "0"}, "ounds"),
        ({"rounds": "100001"}, "ounds"),
    ],
)
def test_invalid_numbers_are_reported_beside_the_results(visit, query, message):
    page = visit.get("known", **query)
    assert page.status == 200 and message in page.text and "That did not work" in page.text
    assert rows(page) and page.form("known")[next(iter(query))] == next(iter(query.values()))


@pytest.mark.slow
def test_the_value_of_more_rounds_is_shown(visit, learned):
    page = visit.get("known", rounds="20")
    value = learned.value_of_continuing(20)
    assert f"At most {format_number(value.limit)} could be gained" in page.text
    assert "No further experiment" not in page.text
    assert "No further experiment can gain more than that" in visit.get("known").text


def test_charts_have_tables_of_the_same_numbers(visit, learned):
    page = visit.get("known/past", **{"context.Age": "=under 60"})
    past = learned.history({"Age": "under 60"})
    assert page.html.count("data-chart=") == 3 == page.html.count("<table>")
    assert "Chance of being the best" in page.text
    contexts = learned.status(evidence=False).contexts
    context = max(contexts, key=lambda context: context.weight)
    last = format_number(past.mean[-1, 0, context.leader])
    assert f">{last}<" in page.html and "<html" not in page.html
    page_with_charts = visit.get("known", past="1")
    assert page_with_charts.html.count("data-chart=") == 3 and "<html" in page_with_charts.html
    assert "data-chart=" not in visit.get("known").html


def test_restricted_decisions_are_mentioned(clinic, learned):
    decision = learned.ask({"Age": "under 60"}, allowed=["do(Dose=low)"])
    page = Visit(clinic.browser("read"), "/experiments/ward%207%2F%3Cb%3E").get("known")
    assert "some arms were not allowed" in page.text
    learned.withdraw(decision.id, "left")


def test_a_new_experiment_has_no_recommendation(clinic):
    page = Visit(clinic.browser("read"), "/experiments/plain").get("known", past="1")
    assert "Nothing tells the arms apart yet" in page.text
    assert "The charts appear after the first outcomes." in page.text
    assert "recommended" not in page.text and "Contexts" not in page.text
    assert page.html.count("assumption only") == page.html.count('class="hole"') > 0
    assert "Assumption only: never tried" in page.text


def test_arms_that_were_tried_are_not_hollow(visit, learned):
    (arms, *_) = learned.status(evidence=False).contexts
    hollow = {str(arms.arms[i]) for i in arms.is_assumption.nonzero()[0]}
    page = visit.get("known", arms="all")
    table = page.html[page.html.index('<table class="arms') :]
    parts = re.findall(r'<tr class="([^"]*)">\s*<th scope="row"><span class="code">([^<]*)', table)
    assert {arm for classes, arm in parts if "assumed" in classes} == hollow
    assert {*hollow} < {arm for _, arm in parts} and table.count('class="hole"') == len(hollow)
