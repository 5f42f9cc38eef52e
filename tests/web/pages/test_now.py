"""The page Now without scripts: ask, tell in parts, correct, withdraw."""

import re

import pytest
from support.html_forms import Page, Visit

ODD = '<script>alert("1")</script>'


@pytest.fixture
def visit(visits):
    return visits["admin"]


def ask(visit, age="under 60"):
    """Ask for a decision, and return its page and its number."""
    page = visit.send(visit.get(), "now/ask", context__Age=f"={age}")
    return page, int(page.form("now/tell")["decision"])


def test_a_decision_shows_arm_reason_and_probability(visit, trial):
    page, number = ask(visit)
    decision = trial.decision(number)
    assert page.status == 200 and decision.context == {"Age": "under 60"}
    assert decision.arm.in_words() in page.text and decision.reason[1:] in page.text
    assert f": {decision.probability:.2f}." in page.text
    assert f"Decision {number} waiting for the outcome" in page.text
    assert trial.events(decision.event - 1, decision.event)[0].actor == "browser of admin"


def test_a_form_sent_twice_makes_one_decision(visit, trial):
    page = visit.get()
    form = page.form("now/ask") | {"context.Age": "=over 90"}
    first, again = visit.post("now/ask", form), visit.post("now/ask", form)
    assert first.form("now/tell")["decision"] == again.form("now/tell")["decision"]
    assert first.form("now/ask")["request_id"] != form["request_id"]
    before = trial.counts()["asked"]
    visit.send(first, "now/ask", context__Age="=over 90")
    assert trial.counts()["asked"] == before + 1


def test_asking_redirects_to_the_decision(clinic, visits):
    client = clinic.browser("ask")
    visit = Visit(client, visits["ask"].url)
    form = visit.get().form("now/ask") | {"context.Age": "=under 60"}
    answer = client.post(f"{visit.url}/now/ask", data=form)
    assert answer.status_code == 303 and "decision=" in answer.headers["location"]


def test_an_old_form_sent_again_is_reported(visit, monkeypatch):
    form = visit.get().form("now/ask") | {"context.Age": "=under 60"}
    assert "was sent before" not in visit.post("now/ask", form).text
    monkeypatch.setattr("dowise_web.pages.now.REPEAT_AFTER", 0.0)
    assert (
        "This request was sent before, so this is the same decision"
        in visit.post("now/ask", form).text
    )


def test_small_domains_are_radio_buttons_and_others_are_lists(visit):
    page, _ = ask(visit)
    assert page.offered["context.Age"] == ["", "=under 60", "=60 to 75", "=75 to 90", "=over 90"]
    assert page.offered["seen.Frailty"] == ["=-", "==", f"={ODD}", "", "-"]
    assert re.search(r'<select[^>]* name="context.Age"', page.html)
    assert re.search(r'type="radio" name="seen.Frailty"', page.html)


def test_outcomes_are_told_in_parts(visit, trial):
    page, number = ask(visit)
    page = visit.send(page, "now/tell", seen__Frailty="==")
    assert "Saved." in page.text and trial.case(number).values == {"Frailty": "="}
    assert "seen.Frailty" not in page.form("now/tell")
    page = visit.send(page, "now/tell", seen__Recovery="-")
    assert trial.case(number).values == {"Frailty": "=", "Recovery": None}
    assert trial.case(number).status == "done" and "permanently missing" in page.text
    assert "Recent outcomes" in page.text


def test_labels_are_escaped(visit, trial):
    page, number = ask(visit)
    page = visit.send(page, "now/tell", seen__Frailty=f"={ODD}")
    assert trial.case(number).values == {"Frailty": ODD}
    assert ODD not in page.html and "<b>" not in page.html and ODD in page.text
    page, number = ask(visit)
    visit.send(page, "now/tell", seen__Frailty="=-")
    assert trial.case(number).values == {"Frailty": "-"}


def test_an_error_is_shown_at_its_form_and_keeps_the_values(visit, trial):
    page, number = ask(visit)
    trial.tell(number, {"Frailty": "="})
    page = visit.send(page, "now/tell", seen__Frailty="=-", seen__Recovery="=full")
    assert page.status == 422
    assert "Frailty is recorded as =, not -" in page.text
    assert "dowise amend" not in page.text and page.form("now/tell")["seen.Recovery"] == "=full"
    page = visit.send(visit.get(decision=number), "now/tell")
    assert "hoose at least one value" in page.text
    page = visit.send(page, "now/tell", played_otherwise="do(Dose=huge)", seen__Recovery="=no")
    assert "Dose" in page.text and page.form("now/tell")["played_otherwise"] == "do(Dose=huge)"
    assert trial.case(number).values == {"Frailty": "="}


def test_asking_without_a_context_keeps_the_restriction(visit, trial):
    before = trial.counts()["asked"]
    page = visit.send(visit.get(), "now/ask", forbid="do(Dose=low)")
    assert page.status == 422 and "Age" in page.text and page.form("now/ask")["forbid"]
    assert trial.counts()["asked"] == before


def test_arms_can_be_excluded_or_selected(visit, trial):
    page = visit.get()
    assert "do(Dose=low)" in page.offered["forbid"] and page.offered["allowed"] == [
        str(arm) for arm in trial.problem.arms
    ]
    form = page.form("now/ask") | {"context.Age": "=under 60"}
    excludable = page.offered["forbid"]
    none = visit.post("now/ask", form | {"forbid": excludable})
    assert none.status == 422 and ", ".join(excludable) in none.text
    excluded = [text for text in excludable if text != "do(Dose=low)"]
    page = visit.post("now/ask", form | {"forbid": excluded})
    assert str(trial.case(int(page.form("now/tell")["decision"])).asked) == "do(Dose=low)"
    chosen = str(trial.problem.arms[0])
    page = visit.post("now/ask", form | {"allowed": [chosen], "request_id": "another"})
    number = int(page.form("now/tell")["decision"])
    assert str(trial.case(number).asked) == chosen and trial.case(number).is_restricted


def test_another_arm_can_be_recorded(visit, trial):
    page, number = ask(visit)
    # To tell, all other arms are offered; a correction may return to the decision.
    arms = {str(arm): page.offered["played"].count(str(arm)) for arm in trial.problem.arms}
    assert [arm for arm, times in arms.items() if times == 1] == [str(trial.case(number).asked)]
    page = visit.send(
        page, "now/tell", played_otherwise="do(Dose=none)", unrelated="yes", seen__Recovery="=no"
    )
    case = trial.case(number)
    assert str(case.played) == "do(Dose=none)" and case.is_unrelated
    assert "was done, for a reason that had nothing to do" in page.text
    page = visit.send(page, "now/amend", played=str(case.asked), reason="it was done after all")
    assert trial.case(number).played is None


def test_corrections_send_only_changes_and_need_a_reason(visit, trial):
    page, number = ask(visit)
    page = visit.send(page, "now/tell", seen__Frailty="=-", seen__Recovery="=no")
    missing = visit.send(page, "now/amend", now__Recovery="=full")
    assert missing.status == 422 and "Enter a reason" in missing.text
    assert missing.form("now/amend")["now.Recovery"] == "=full"
    # A value that another user corrects meanwhile stays: this form did not change it.
    trial.amend(number, {"Frailty": "="}, "misread")
    page = visit.send(page, "now/amend", now__Recovery="=full", now__Age="=over 90", reason="typo")
    case = trial.case(number)
    assert case.values == {"Frailty": "=", "Recovery": "full"}
    assert (
        case.context == {"Age": "over 90"} and "was no" in page.text and "Corrected." in page.text
    )
    again = visit.send(page, "now/amend", reason="again")
    assert again.status == 422 and "hange at least one value to correct it" in again.text


def test_a_decision_can_be_withdrawn(visit, trial):
    page, number = ask(visit)
    assert visit.send(page, "now/withdraw").status == 422
    page = visit.send(page, "now/withdraw", reason="left")
    assert trial.case(number).status == "withdrawn" and "Withdrawn." in page.text
    assert not page.has_form("now/tell") and not page.has_form("now/withdraw")


def test_erased_decisions_show_nothing(visit, trial):
    _, number = ask(visit)
    trial.erase(number, "asked for")
    page = visit.get(decision=number)
    assert page.status == 200 and f"Decision {number} was erased" in page.text
    assert not page.has_form("now/tell")


def test_pending_decisions_are_listed_oldest_first(visit, trial):
    _, first = ask(visit)
    _, second = ask(visit)
    page = visit.get()
    ids = [int(number) for number in re.findall(r"now\?decision=(\d+)\"", page.html)]
    waiting = [case.id for case in trial.pending()]
    assert ids[: len(waiting)] == waiting and first in waiting and waiting[-1] == second
    assert "waiting for 0 seconds" in page.text or "waiting for 1 second" in page.text
    assert "missing: Frailty, Recovery" in page.text or "missing: Diet" in page.text


def test_changes_by_others_are_reported(visit, trial):
    _, number = ask(visit)
    last = trial.case(number).last_event
    assert "Someone else" not in visit.get(decision=number, seen=last).text
    trial.tell(number, {"Frailty": "-"})
    assert "Someone else has changed this decision" in visit.get(decision=number, seen=last).text


def test_roles_see_the_forms_they_may_send(visits, trial):
    _, number = ask(visits["admin"])
    forms = {"read": (), "tell": ("now/tell",), "ask": ("now/tell", "now/ask")}
    for role, allowed in forms.items():
        page = visits[role].get(decision=number)
        assert page.status == 200
        for form in ("now/tell", "now/ask"):
            assert page.has_form(form) == (form in allowed), (role, form)
    sent = visits["admin"].get(decision=number)
    for role, form in (("read", "now/tell"), ("read", "now/withdraw"), ("tell", "now/ask")):
        token = visits[role].get().form("/logout")["csrf"]
        refused = visits[role].post(form, sent.form(form) | {"csrf": token, "reason": "x"})
        assert refused.status == 403
    assert trial.case(number).status == "pending"


def test_forms_require_the_csrf_token(visit, trial):
    before = trial.counts()["asked"]
    form = visit.get().form("now/ask") | {"context.Age": "=under 60", "csrf": "0" * 64}
    assert visit.post("now/ask", form).status == 403
    assert trial.counts()["asked"] == before


@pytest.mark.parametrize(
    "form",
    [
        {"decision": "1", "seen.Frailty": "low"},
        {"decision": "1", "seen.Nobody": "=1"},
        {"decision": "none"},
        {"decision": "9" * 15, "seen.Frailty": "=-"},
        {},
    ],
)
def test_forged_forms_are_refused(visit, form):
    signed = form | {"csrf": visit.get().form("/logout")["csrf"]}
    for ending in ("now/tell", "now/amend", "now/withdraw"):
        assert visit.post(ending, signed).status in (404, 409, 422)


def test_the_url_of_a_form_redirects_to_the_page(clinic, visits):
    answer = clinic.browser("read").get(f"{visits['read'].url}/now/tell")
    assert answer.status_code == 303 and answer.headers["location"].endswith("/now")


def test_asking_without_a_context_is_possible(clinic):
    visit = Visit(clinic.browser(), "/experiments/plain")
    page = visit.send(visit.get(), "now/ask")
    assert page.status == 200 and "Decision 1" in page.text and isinstance(page, Page)
