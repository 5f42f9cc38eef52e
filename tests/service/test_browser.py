"""The pages as people use them, in a real browser at a real server."""

import json
import re
from urllib.parse import quote

import pytest
from browsing import Window, chromium, flaws, open_all, tab_to
from served import running

from dowise import CausalGraph, Experiment, Problem
from dowise.service.pages.rendering import address_of

pytestmark = pytest.mark.slow

WARD = Problem(
    CausalGraph.parse(
        "Age -> Dose -> Recovery; Age -> Recovery; Frailty -> Dose; Frailty ?-> Recovery"
    ),
    "Recovery",
    "Age",
    "Frailty",
    domains={"Age": ["young", "old"], "Dose": ["none", "low", "high"], "Frailty": ["fit", "frail"]},
)
PLACE = "/experiments/ward%207"

# Names that would run, close an attribute or end a script where somebody forgot to escape them.
AGE, DOSE, WHY = 'Age "<i>年齢</i>"', "Dose' 💊 <svg onload=hacked=1>", "</script><b>W"
OUTCOME = "<img src=x onerror=hacked=1>"
LABELS = ["<script>window.hacked=1</script>", "\"quoted\" & 'so'", "低い", "🏥 {{7*7}} ${7*7}"]
HOSTILE = Problem(
    CausalGraph([(AGE, DOSE), (DOSE, OUTCOME), (AGE, OUTCOME), (WHY, OUTCOME), (WHY, DOSE)]),
    OUTCOME, AGE, WHY, domains={DOSE: LABELS, AGE: ["<svg/onload=hacked=1>", "老"]},
)  # fmt: skip
WRITTEN = """name = "clinic"
graph = "Age -> Dose -> Recovery; Age -> Recovery"
reward = "Recovery"
context = ["Age"]

[domains]
Age = ["young", "old"]
Dose = ["none", "low", "high"]
"""
HOSTILE_NAME = '<script>window.hacked=1</script> "病棟" 🏥'


@pytest.fixture(scope="module")
def browser(request):
    with chromium(request) as found:
        yield found


@pytest.fixture(scope="module")
def served(browser, tmp_path_factory):  # noqa: ARG001 (without a browser nothing is to be served)
    """A server with two experiments, in which everything happened that can happen."""
    store = tmp_path_factory.mktemp("browsed") / "ward.db"
    for name, problem in (("ward 7", WARD), (HOSTILE_NAME, HOSTILE)):
        with Experiment.create(store, name, problem, "ids", {"samples": 50}, 7) as made:
            _play(made)
    # More people come in from here within a minute than guesses would be let through.
    with running(store, guesses=100) as found:
        yield found


def _play(experiment):
    problem = experiment.problem
    for number in range(1, 13):
        context = {name: problem.domains[name][number % 2] for name in problem.context}
        asked = experiment.ask(context)
        others = [name for name in problem.domains if name not in context and name not in asked.arm]
        seen = {name: problem.domains[name][number // 2 % 2] for name in others}
        if number % 5 == 0:
            experiment.tell(
                asked.id, {name: seen[name] for name in others if name != problem.reward}
            )
        elif number % 5:
            experiment.tell(asked.id, seen)
    experiment.amend(1, {problem.reward: "1"}, reason="a slip of the pen <b>")
    experiment.withdraw(5, reason="moved away")


@pytest.fixture
def open_window(browser, served):
    """Makes windows, and sees to it that nothing was wrong in any."""
    opened = []

    def opens(**options):
        opened.append(Window(browser, options.pop("at", served), **options))
        return opened[-1]

    yield opens
    for window in opened:
        window.close()


def _count(served, name="ward 7"):
    return served.house.experiment(name).counts()["asked"]


def _choose(within, name, label):
    """Tick a value of a variable, within a form."""
    group = within.get_by_role("group", name=name)
    group.get_by_role("radio", name=label, exact=True).check()


def _ask(page, age="young"):
    """Ask for a decision, and give its number."""
    _choose(page.locator("#ask"), "Age", age)
    page.get_by_role("button", name="Ask for a decision").click()
    page.wait_for_url("**said=asked")
    return int(re.search(r"decision=(\d+)", page.url)[1])


# -- the whole way ---------------------------------------------------------------------------------


def test_a_link_opens_the_browser_once(served, open_window):
    window = open_window()
    window.forgive("status of 403")
    link = served.server.link("admin", "Ann")
    window.page.goto(link)
    window.page.wait_for_url(f"{served.address}/")
    assert window.page.get_by_role("link", name="New experiment").first.is_visible()
    (cookie,) = window.context.cookies()
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    assert window.page.evaluate("document.cookie") == ""
    window.context.clear_cookies()
    window.page.goto(link)
    window.page.get_by_text("This link was used before").wait_for()
    window.page.goto("/enter")
    window.page.get_by_text("The link is not whole").wait_for()
    window.page.goto(f"{PLACE}/now")
    assert window.page.url.partition("?")[0].endswith("/login")


@pytest.mark.parametrize("script", [True, False], ids=["with scripts", "without scripts"])
def test_a_decision_is_asked_for_told_in_parts_corrected_and_read(served, open_window, script):
    window = open_window(script=script)
    page = window.enter() if script else window.sign_in()
    page.goto(f"{PLACE}/now")
    number = _ask(page)
    ward = served.house.experiment("ward 7")
    assert (
        page.locator("#decision-title").inner_text().lower()
        == ward.case(number).arm.in_words().lower()
    )

    _choose(page.locator("#tell"), "Frailty", "frail")
    page.get_by_role("button", name="Save what was seen").click()
    page.get_by_text("Noted.").first.wait_for()
    assert ward.case(number).values["Frailty"] == "frail"
    assert ward.case(number).status == "pending"

    # Later, from the list of what is pending.
    page.goto(f"{PLACE}/now")
    page.locator(f"#pending a[href$='decision={number}']").click()
    page.wait_for_url(f"**decision={number}")
    _choose(page.locator("#tell"), "Recovery", "1")
    page.get_by_role("button", name="Save what was seen").click()
    page.get_by_text("has its outcome").wait_for()
    assert ward.case(number).values["Recovery"] == "1"

    page.get_by_text("Correct something").click()
    _choose(page.locator("#correct"), "Recovery", "0")
    page.locator("#correct").get_by_label("Reason").fill("the wrong line")
    page.get_by_role("button", name="Correct", exact=True).click()
    page.get_by_text("Corrected.").first.wait_for()
    assert ward.case(number).values["Recovery"] == "0"
    assert page.locator("dl s").inner_text() == "1"

    other = _ask(page, "old")
    page.get_by_text("Nothing more will come of it").click()
    page.locator("#withdraw").get_by_label("Reason").fill("moved away")
    page.get_by_role("button", name=f"Withdraw decision {other}").click()
    page.get_by_text("Withdrawn.").first.wait_for()
    assert ward.case(other).status == "withdrawn"

    page.get_by_role("link", name="What we know").click()
    leader = page.locator("tr.leads .code").first
    assert leader.inner_text().startswith("do(")
    page.get_by_label("A loss that does not matter").fill("0.001")
    page.get_by_role("button", name="Should we stop?").click()
    page.wait_for_url("**tolerance=0.001*")
    page.locator(".verdict-text").wait_for()


def test_the_history_finds_explains_and_lets_out(served, open_window):
    window = open_window()
    page = window.enter()
    page.goto(f"{PLACE}/history")
    page.get_by_label("Search").fill("slip of the pen")
    found = page.locator(".journal > li[id]")
    found.nth(1).wait_for(state="detached")
    assert "slip of the pen" in found.inner_text()
    assert "search=slip" in page.url
    page.get_by_label("Search").fill("")
    page.get_by_label("Kind of event").select_option("asked")
    page.wait_for_url("**kind=asked*")
    page.get_by_text("Why this one?").first.click()
    page.locator(".why table").wait_for()
    explained = served.house.experiment("ward 7").explain(_count(served)).in_words()
    assert explained.splitlines()[1] in page.locator(".why").first.inner_text()
    assert flaws(page) == []

    for kind, reads in (("CSV", lambda text: text.splitlines()[1:]), ("JSON", json.loads)):
        with page.expect_download() as waiting:
            page.get_by_role("link", name=kind).click()
        text = waiting.value.path().read_text("utf-8")
        assert len(reads(text)) > 0 and "Recovery" in text
        assert waiting.value.suggested_filename.endswith(kind.lower())

    page.get_by_role("link", name="Audit the journal").click()
    page.get_by_text("The journal is whole").wait_for()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login")
    page.goto(f"{PLACE}/history")
    assert page.url.partition("?")[0].endswith("/login")


def test_a_decision_leads_to_its_explanation(served, open_window):
    page = open_window().enter()
    page.goto(f"{PLACE}/now?decision=2")
    page.get_by_role("link", name="Explain it").click()
    said = served.house.experiment("ward 7").explain(2).in_words().splitlines()[2]
    page.get_by_text(said).wait_for()


def test_an_experiment_is_written_rehearsed_and_begun(served, open_window):
    window = open_window()
    page = window.enter()
    page.get_by_role("link", name="New experiment").first.click()
    text, meaning = page.locator("#problem"), page.locator("#preview")
    text.fill(WRITTEN.replace('"Recovery"', "Recovery"))
    meaning.get_by_text("Line 3 is not right").wait_for()
    assert meaning.locator("mark").inner_text() == "reward = Recovery"
    assert text.get_attribute("aria-invalid") == "true"
    assert flaws(page) == []
    text.fill(WRITTEN)
    meaning.locator("svg.graph").wait_for()
    meaning.get_by_text("do(Dose=high)", exact=True).wait_for()
    assert text.get_attribute("aria-invalid") is None
    page.get_by_text("Choose another").click()
    page.get_by_role("radio", name=re.compile("^ucb ")).check()
    for field, number in (("Rounds", "5"), ("Worlds", "2")):
        page.get_by_label(field, exact=True).fill(number)
    page.keyboard.press("Enter")  # begins nothing
    page.get_by_role("button", name="Rehearse").click()
    page.locator("#rehearsal .uplot").first.wait_for()
    open_all(page)
    assert flaws(page) == []
    page.get_by_role("button", name="Begin the experiment").click()
    page.wait_for_url("**/experiments/clinic/now")
    page.get_by_text("What to do next", exact=True).wait_for()
    assert served.house.experiment("clinic").policy == "ucb"

    page.goto("/new")
    page.locator("#problem").fill(WRITTEN)
    meaning.locator("svg.graph").wait_for()
    window.forgive("status of 409", "console: htmx:(sendAbort|afterRequest)")  # of a preview
    page.get_by_role("button", name="Begin the experiment").dblclick()
    page.get_by_role("alert").get_by_text("clinic").wait_for()
    meaning.locator("svg.graph").wait_for()
    assert page.locator("#problem").input_value() == WRITTEN
    assert flaws(page) == []


def test_an_experiment_is_begun_without_scripts(served, open_window):
    page = open_window(script=False).sign_in()
    page.goto("/new")
    page.locator("#problem").fill(WRITTEN)
    page.get_by_role("button", name="Look now").click()
    page.locator("#preview svg.graph").wait_for()
    assert page.locator("#problem").input_value() == WRITTEN
    page.get_by_label("Name of the experiment").fill("plain")
    page.get_by_role("button", name="Begin the experiment").click()
    page.wait_for_url("**/experiments/plain/now")
    assert "plain" in served.house.names()


# -- others work too -------------------------------------------------------------------------------


def test_news_come_by_themselves_and_destroy_nothing(served, open_window):
    page, bo = open_window().enter(), served.client("ask", "Bo")
    page.goto(f"{PLACE}/now")
    number = _ask(page)
    page.locator(".live[data-state=live]").wait_for()
    page.get_by_text("Correct something").click()
    page.locator("#correct").get_by_label("Reason").fill("half a sen")
    other = bo.post(f"/api{PLACE}/ask", json={"context": {"Age": "old"}}).json()["id"]
    page.locator(f"#pending a[href$='decision={other}']").wait_for()
    assert (
        bo.post(f"/api{PLACE}/tell/{number}", json={"values": {"Frailty": "fit"}}).status_code
        == 200
    )
    page.locator("#changed", has_text="Somebody else said something of this decision").wait_for()
    assert page.locator("#correct").get_by_label("Reason").input_value() == "half a sen"
    assert page.evaluate("document.activeElement.id") == "amend-reason"
    page.get_by_role("link", name="Load it again").click()
    page.locator("dl.facts").get_by_text("fit", exact=True).wait_for()


def test_news_reach_what_is_known_and_the_history(served, open_window):
    window, bo = open_window(), served.client("ask", "Bo")
    known = window.enter()
    known.goto(f"{PLACE}/known")
    known.locator(".live[data-state=live]").wait_for()
    known.get_by_label("Rounds still to come").fill("12")
    before = known.locator("#lead-in").inner_text()
    past = window.context.new_page()
    past.goto(f"{PLACE}/history")
    past.locator(".live[data-state=live]").wait_for()
    past.get_by_text("Why this one?").first.click()
    past.locator(".why table").wait_for()
    asked = bo.post(f"/api{PLACE}/ask", json={"context": {"Age": "old"}}).json()["id"]
    past.get_by_text(f"Decision {asked}").first.wait_for()
    assert past.locator(".why table").is_visible()
    known.bring_to_front()
    known.wait_for_function(
        "(text) => document.querySelector('#lead-in').innerText !== text", arg=before
    )
    assert known.get_by_label("Rounds still to come").input_value() == "12"


def test_a_page_says_when_the_server_is_away_and_when_it_is_back(open_window, tmp_path):
    store = tmp_path / "ward.db"
    with Experiment.create(store, "ward 7", WARD, "ids", {"samples": 50}, 7) as made:
        made.ask({"Age": "old"})
    with running(store) as first:
        window = open_window(at=first)
        window.forgive("net::ERR_", "console: htmx:")
        page = window.enter()
        page.locator(".live[data-state=live]").wait_for()
    page.locator(".live", has_text="reconnecting").wait_for()
    _choose(page.locator("#ask"), "Age", "old")
    page.get_by_role("button", name="Ask for a decision").click()
    page.get_by_text("The server could not be reached").wait_for()
    with running(store, port=first.server.settings.port) as second:
        second.client("tell").post(f"/api{PLACE}/tell/1", json={"values": {"Recovery": "1"}})
        page.locator(".live", has_text="live").wait_for()
        page.get_by_text("Nothing is pending.").wait_for()
        page.get_by_role("button", name="Ask for a decision").click()
        page.wait_for_url("**decision=2*")
        page.close()


# -- once is once ----------------------------------------------------------------------------------


@pytest.mark.parametrize("script", [True, False], ids=["with scripts", "without scripts"])
def test_a_double_click_makes_one_decision_and_back_and_reload_none(served, open_window, script):
    window = open_window(script=script)
    page = window.enter() if script else window.sign_in()
    page.goto(f"{PLACE}/known")
    page.goto(f"{PLACE}/now")
    before = _count(served)
    _choose(page.locator("#ask"), "Age", "young")
    page.get_by_role("button", name="Ask for a decision").dblclick()
    page.wait_for_url("**said=asked")
    assert _count(served) == before + 1
    page.reload()
    page.locator("#decision-title").wait_for()
    page.go_back()
    page.get_by_text("What to do next", exact=True).wait_for()
    page.go_back()
    page.locator("#verdict").wait_for()
    page.go_forward()
    page.get_by_text("What to do next", exact=True).wait_for()
    assert _count(served) == before + 1


def test_a_form_that_is_sent_twice_makes_one_decision(served, open_window):
    page = open_window().enter("ask")
    page.goto(f"{PLACE}/now")
    before = _count(served)
    _choose(page.locator("#ask"), "Age", "old")
    places = page.evaluate("""async () => {
      const form = document.getElementById("ask");
      const body = new URLSearchParams(new FormData(form));
      const sent = () => fetch(form.action, { method: "POST", body }).then((answer) => answer.url);
      return Promise.all([sent(), sent()]);
    }""")
    assert len({*places}) == 1 and places[0].endswith(f"decision={before + 1}&said=asked")
    assert _count(served) == before + 1


# -- for everybody ---------------------------------------------------------------------------------

PLACES = {
    "the experiments": ("/?all", ".shelf"),
    "now": (f"{PLACE}/now", "#ask"),
    "a pending decision": (f"{PLACE}/now?decision=10", "#tell"),
    "a corrected decision": (f"{PLACE}/now?decision=1", "#correct"),
    "what we know": (f"{PLACE}/known", ".uplot"),
    "the advice": (f"{PLACE}/known?tolerance=0.01&arms=all&context.Age=%3Dold", ".uplot"),
    "a wrong number": (f"{PLACE}/known?tolerance=-1", ".note.bad"),
    "the graph": (f"{PLACE}/graph", "svg.graph"),
    "a variable": (f"{PLACE}/graph?variable=Recovery", "#panel table"),
    "an arm": (f"{PLACE}/graph?arm=do(Dose%3Dlow)", "#panel .formula"),
    "the history": (f"{PLACE}/history?kind=asked", ".journal"),
    "an explanation": (f"{PLACE}/history/explain/3", "table"),
    "an audit": (f"{PLACE}/history/audit", ".note"),
}


@pytest.fixture(scope="module")
def shared(browser, served):
    """One window for all that is only looked at."""
    window = Window(browser, served)
    window.enter()
    yield window
    window.close()


@pytest.mark.parametrize(("place", "sign"), PLACES.values(), ids=PLACES)
def test_axe_has_nothing_to_say_and_nothing_sticks_out(shared, place, sign):
    page = shared.page
    page.goto(place)
    page.locator(sign).first.wait_for()
    open_all(page)
    assert flaws(page) == []
    assert shared.complaints() == []


def test_axe_has_nothing_to_say_at_the_door(open_window):
    window = open_window()
    window.forgive("status of 403", "status of 404")
    page = window.page
    page.goto("/enter#dowise_nobody")
    page.get_by_text("This link was used before").wait_for()
    assert flaws(page) == []
    page.goto("/login")
    page.get_by_label("Token").fill("dowise_nobody")
    page.keyboard.press("Enter")
    page.get_by_text("This token is not known").wait_for()
    assert flaws(page) == []
    window.sign_in("read")
    page.goto("/experiments/nowhere/now")
    assert flaws(page) == []
    page.goto(f"{PLACE}/now?decision=10")
    assert "Your role is read" in page.locator("main").inner_text()
    assert flaws(page) == []


@pytest.mark.parametrize("script", [True, False], ids=["with scripts", "without scripts"])
def test_what_is_wrong_is_said_at_its_form_and_has_the_focus(served, open_window, script):
    window = open_window(script=script)
    window.forgive("status of 422")
    page = window.enter() if script else window.sign_in()
    before = served.house.experiment("ward 7").head

    def refused(form, words):
        note = page.locator(form).get_by_role("alert")
        note.get_by_text(words).wait_for()
        if script:
            page.wait_for_function("() => document.activeElement.getAttribute('role') === 'alert'")
            assert note.evaluate("(one) => one === document.activeElement")
            assert flaws(page) == []

    page.goto(f"{PLACE}/now?decision=10")
    _choose(page.locator("#ask"), "Age", "old")
    page.get_by_text("Restrict the choice").click()
    for box in page.locator("#ask input[name=forbid]").all():
        box.check()
    page.get_by_role("button", name="Ask for a decision").click()
    refused("#ask", "arm")
    assert page.locator("#ask input[name=forbid]").first.is_checked()
    assert page.locator("#ask").get_by_role("radio", name="old").is_checked()

    page.goto(f"{PLACE}/now?decision=10")
    page.get_by_role("button", name="Save what was seen").click()
    refused("#tell", "Choose a value of what was seen.")

    page.get_by_text("Correct something").click()
    page.locator("#correct").get_by_label("Reason").fill("nothing <changed>")
    page.get_by_role("button", name="Correct", exact=True).click()
    refused("#correct", "Change what is to be corrected.")
    assert page.locator("#correct").get_by_label("Reason").input_value() == "nothing <changed>"

    page.get_by_text("Nothing more will come of it").click()
    page.locator("#withdraw").get_by_label("Reason").fill(" ")
    page.get_by_role("button", name="Withdraw decision 10").click()
    refused("#withdraw", "Say why, in the field Reason.")
    assert served.house.experiment("ward 7").head == before


def test_the_whole_round_goes_by_keyboard(served, open_window):
    page = open_window().enter("ask")
    page.goto(f"{PLACE}/now")
    page.keyboard.press("Tab")
    assert page.get_by_text("Skip to the content").is_visible()
    page.keyboard.press("Enter")
    before = _count(served)
    tab_to(page, page.locator("#ask").get_by_role("radio", name="young"))
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    assert page.locator("#ask").get_by_role("radio", name="old").is_checked()
    tab_to(page, page.get_by_text("Restrict the choice"))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_role("checkbox", name="Dose to high"))
    page.keyboard.press("Space")
    tab_to(page, page.get_by_role("button", name="Ask for a decision"))
    page.keyboard.press("Enter")
    page.wait_for_url("**said=asked")
    case = served.house.experiment("ward 7").case(before + 1)
    assert case.context == {"Age": "old"} and case.arm.get("Dose") != "high"
    page.wait_for_function("() => document.activeElement.id === 'decision-title'")

    tab_to(page, page.locator("#tell").get_by_role("radio", name="not seen yet").last)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.get_by_text("Noted.").first.wait_for()
    page.wait_for_function("() => document.activeElement.id === 'decision-title'")
    assert served.house.experiment("ward 7").case(before + 1).values["Recovery"] == "1"
    assert page.locator("#announcements").inner_text() == "Noted."


@pytest.mark.parametrize(
    ("place", "last"),
    [
        ("/new?example=healthcare", "Rehearse"),
        (f"{PLACE}/known", "Sign out"),
        (f"{PLACE}/history?kind=amended", "Sign out"),
    ],
)
def test_whoever_goes_by_keyboard_sees_where_they_are(open_window, place, last):
    page = open_window().enter()
    page.goto(place)
    page.locator("svg.graph, .uplot, .journal").first.wait_for()
    tab_to(page, page.get_by_role("button", name=last))


def test_the_graph_is_for_the_keyboard_too(open_window):
    page = open_window().enter("read")
    page.goto(f"{PLACE}/graph")
    page.locator("#variable-0").focus()
    for _ in range(4):
        if "Recovery" in page.evaluate("document.activeElement.textContent"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator("#panel-title", has_text="Recovery").wait_for()
    page.wait_for_function("() => document.activeElement.id === 'panel-title'")
    assert page.locator("#panel table").first.is_visible()
    page.get_by_role("link", name="do(Dose=low)").click()
    page.locator("#panel-title", has_text="do(Dose=low)").wait_for()
    assert "P(Recovery" in page.locator("#panel .formula").inner_text()
    page.go_back()
    page.locator("#panel-title", has_text="Recovery").wait_for()


@pytest.mark.parametrize(
    ("place", "sign", "printed"),
    [
        ("now?decision=1", "#decision-title", "dl.facts"),
        ("known", ".uplot", "table.arms"),
        ("graph", "svg.graph", "svg.graph"),
        ("history", ".journal", ".journal"),
    ],
)
def test_paper_shows_what_the_screen_does_in_dark_ink(shared, place, sign, printed):
    page = shared.page
    page.goto(f"{PLACE}/{place}")
    page.locator(sign).first.wait_for()
    page.emulate_media(media="print", color_scheme="dark")
    try:
        assert page.locator(printed).is_visible()
        assert not page.get_by_role("link", name="All experiments").is_visible()
        assert page.locator("form:visible, button:visible, #ask-title:visible").count() == 0
        ink, paper = page.evaluate(
            "[document.body, document.documentElement].map((one) => getComputedStyle(one))"
            ".map((style, i) => i ? style.backgroundColor : style.color)"
        )
        assert ink == "rgb(27, 33, 38)" and paper == "rgba(0, 0, 0, 0)"
        assert page.pdf().startswith(b"%PDF-")
    finally:
        page.emulate_media(media="screen", color_scheme="light")


# -- names are text --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "sign", "shown"),
    [
        ("now", "#ask", [AGE, "<svg/onload=hacked=1>", "老"]),
        ("now?decision=10", "#tell", [AGE, WHY, OUTCOME]),
        ("now?decision=1", "#correct", [AGE, WHY, OUTCOME]),
        ("known", ".uplot", [AGE, OUTCOME, *LABELS[2:]]),
        ("graph", "svg.graph", [AGE, DOSE, WHY, OUTCOME]),
        ("graph?variable={dose}", "#panel details", [DOSE, *LABELS]),
        ("graph?arm={arm}", "#panel .formula", [DOSE, LABELS[2]]),
        ("history", ".journal", [AGE, DOSE, WHY, OUTCOME, "a slip of the pen <b>"]),
        ("history/explain/3", "table", [AGE, DOSE, *LABELS[2:]]),
    ],
)  # fmt: skip
def test_names_that_would_run_are_shown_as_text(shared, place, sign, shown):
    page = shared.page
    address = address_of(
        HOSTILE_NAME, place.format(dose=quote(DOSE), arm=quote(str(HOSTILE.arms[3])))
    )
    page.goto(address)
    page.locator(sign).first.wait_for()
    open_all(page)
    page.locator("a", has_text="All experiments").hover()
    words = page.evaluate("document.body.textContent")
    for text in (HOSTILE_NAME, *shown):
        assert text in words
    assert page.locator("main img, main i, main b, main script").count() == 0
    assert page.evaluate("window.hacked") is None
    assert flaws(page) == []
    assert shared.complaints() == []
