"""The page New experiment: previews, rehearsals and the start of experiments."""

import re
import time
from html import unescape

import pytest
from support.processes import wait_until
from support.sandboxes import use_in_process_sandbox
from support.servers import running

from dowise.problem.problem_file import builtin_names, builtin_path
from dowise_web.pages import new_experiment

TASK2 = builtin_path("task2").read_text()
EVIL = '<script>alert("1")</script>'


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A server with an empty store, whose sandbox has no processes."""
    with running(tmp_path_factory.mktemp("served") / "empty.db") as server:
        use_in_process_sandbox(server)
        yield server


class NewExperimentPage:
    """The page in a browser, and its forms."""

    def __init__(self, server, role="admin"):
        self.browser = server.browser(role)
        self.text = self.browser.get("/new").text
        match = re.search(r'name="csrf" value="([^"]+)"', self.text)
        self.csrf = match[1] if match else ""

    def send(self, url, *, is_part=True, **fields):
        headers = {"X-CSRF-Token": self.csrf, **({"HX-Request": "true"} if is_part else {})}
        return self.browser.post(url, data={"csrf": self.csrf, **fields}, headers=headers)

    def preview(self, text):
        response = self.send("/new/preview", problem=text)
        assert response.status_code == 200 and "<html" not in response.text
        return unescape(response.text)


@pytest.fixture(scope="module")
def page(empty):
    return NewExperimentPage(empty)


def text_in_editor(text):
    return unescape(re.search(r"<textarea[^>]*>\n?(.*?)</textarea>", text, re.DOTALL)[1])


# -- the page ---------------------------------------------------------------------------------


def test_the_page_requires_the_role_admin(empty):
    for role in ("read", "tell", "ask"):
        assert empty.browser(role).get("/new").status_code == 403
        answer = NewExperimentPage(empty, role).send("/new/preview", problem=TASK2)
        assert answer.status_code == 403


def test_forms_require_the_csrf_token(empty):
    page = NewExperimentPage(empty)
    page.csrf = "wrong"
    for url in ("/new", "/new/preview", "/new/look", "/new/rehearse"):
        assert page.send(url, problem=TASK2).status_code == 403


def test_examples_and_policies_are_offered(page):
    for name in builtin_names():
        assert f'href="/new?example={name}"' in page.text
    assert (
        "commit-kg, or ids where there are many arms" in page.text
        and 'value="bernoulli-ts"' in page.text
    )
    assert not re.search(r'\sstyle="|<script>|hx-on|javascript:', page.text)


@pytest.mark.parametrize("name", builtin_names())
def test_every_example_has_a_preview(page, name):
    text = text_in_editor(page.browser.get("/new", params={"example": name}).text)
    assert f'name = "{name}"' in text and "graph_file" not in text
    assert "We recommend" in page.preview(text)


def test_examples_are_not_paths(page):
    answer = page.browser.get("/new", params={"example": "../../files"})
    assert answer.status_code == 200 and text_in_editor(answer.text) == ""


def test_unknown_examples_are_not_cached(page):
    for name in ("nothing", "../../files", *(f"none {n}" for n in range(20))):
        assert text_in_editor(page.browser.get("/new", params={"example": name}).text) == ""
    assert new_experiment._builtin_text.cache_info().currsize <= len(builtin_names())


# -- previews ----------------------------------------------------------------------------


def test_a_preview_shows_the_graph_and_the_arms(page):
    preview = page.preview(TASK2)
    assert (
        "<svg" in preview and "do(X1=0)" in preview and "4 arms on 2 sets of variables" in preview
    )
    assert "Y: 0 is worth 0, 1 is worth 1" in preview and "commit-kg</span> here" in preview
    assert "Is an arrow missing?" in preview and not re.search(r'\sstyle="', preview)


def test_an_error_is_shown_at_its_location(page):
    preview = page.preview(TASK2.replace("X1 -> X2 -> Y", "X1 -> -> Y").replace("\n", "\r\n"))
    assert 'data-line="5" data-column="7"' in preview and "There is an error in line 5" in preview
    assert "<mark>X1 -> -> Y</mark>" in preview
    assert "Graph, line 5, column 7: found '->'" in preview


def test_an_error_without_a_location_is_shown(page):
    preview = page.preview('graph = "X -> Y"')
    assert (
        "<strong>There is an error</strong>" in preview and "No reward: add the variable" in preview
    )


def test_an_empty_text_is_not_an_error(page):
    assert "appear here as you type" in page.preview("") and "note bad" not in page.preview(" ")


def test_names_and_messages_are_escaped(page):
    name = EVIL.replace('"', "")
    answer = page.send("/new/preview", problem=f"""graph = '"{name}" -> Y'\nreward = "Y"\n""")
    assert "&lt;script&gt;" in answer.text and "<script" not in answer.text
    answer = page.send("/new/preview", problem=f"graph = 'X -> Y'\nreward = '{EVIL}'")
    assert "Unknown reward" in answer.text and "<script" not in answer.text
    answer = page.send("/new", is_part=False, problem=f"</textarea>{EVIL}", name=EVIL)
    assert answer.status_code == 422 and EVIL not in answer.text
    assert text_in_editor(answer.text) == f"</textarea>{EVIL}"


def test_a_graph_alone_becomes_a_problem(page):
    graph = "network n { }\n" + "\n".join(
        f"variable {name} {{ type discrete [ 2 ] {{ no, yes }}; }}" for name in "XY"
    )
    graph += "\nprobability ( X ) { table 0.5, 0.5; }\nprobability ( Y | X ) { table .5,.5,.5,.5; }"
    assert "Turn this graph into a problem" in page.preview(graph)
    answer = page.send("/new/look", is_part=False, problem=graph, name="kept")
    text = text_in_editor(answer.text)
    assert "X -> Y" in text and 'reward = "…"' in text and "[domains]" in text
    assert 'value="kept"' in answer.text
    assert "do(X=yes)" in page.preview(text.replace("…", "Y"))


def test_a_graph_with_roles_is_a_problem(page):
    graph = "dag { X [exposure]; Y [outcome]; X -> Y }"
    assert "which contains the roles" in page.preview(graph)
    answer = page.send("/new/look", is_part=False, problem=graph)
    assert 'reward = "Y"' in text_in_editor(answer.text)


def test_the_page_works_without_scripts(page):
    answer = page.send("/new/look", is_part=False, problem=TASK2, floor="0.2")
    assert answer.status_code == 200 and "4 arms on 2 sets" in answer.text
    assert text_in_editor(answer.text).strip() == TASK2.strip() and 'value="0.2"' in answer.text
    answer = page.send("/new/look", is_part=False, problem="graph = ")
    assert answer.status_code == 422 and "There is an error in line 1" in answer.text


# -- rehearsals -------------------------------------------------------------------------------


def wait_for_rehearsal(page, text):
    """Follow the progress of a rehearsal until it has finished."""
    for _ in range(600):
        match = re.search(r'hx-get="(/new/rehearsal/[\w-]+)"', text)
        if match is None:
            return text
        time.sleep(0.1)
        text = page.browser.get(match[1], headers={"HX-Request": "true"}).text
    raise AssertionError("the rehearsal does not end")


REHEARSAL = {"policy": "random", "horizon": "6", "worlds": "3", "tolerance": "", "delay": "0"}


def test_a_rehearsal_shows_progress_and_results(page):
    answer = page.send("/new/rehearse", problem=TASK2, **REHEARSAL)
    assert "<progress" in answer.text and "<html" not in answer.text
    text = unescape(wait_for_rehearsal(page, answer.text))
    assert "In 3 worlds drawn from the prior, random over 6 rounds:" in text
    assert "Total loss against the best arm (regret)" in text and "random choice" in text


@pytest.mark.slow
def test_a_rehearsal_can_be_stopped(tmp_path):
    slow = {**REHEARSAL, "horizon": "50000", "worlds": "1000"}
    with running(tmp_path / "empty.db") as server:
        page = NewExperimentPage(server)
        response = page.send("/new/rehearse", problem=TASK2, **slow)
        url = re.search(r"/new/rehearsal/[\w-]+", response.text)[0]
        assert "Stopped." in page.send(f"{url}/stop").text
        assert "Stopped." in page.browser.get(url).text
        assert wait_until(lambda: not server.server.sandbox._running, 10)


def test_without_scripts_a_rehearsal_has_its_own_page(page):
    answer = page.send("/new/rehearse", is_part=False, problem=TASK2, **REHEARSAL)
    url = answer.headers["location"]
    assert answer.status_code == 303 and "<html" in page.browser.get(url).text
    wait_for_rehearsal(page, page.browser.get(url).text)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": "many"}, "Rounds: 'many' is not a whole number."),
        ({"worlds": "9999"}, "Worlds=9999 must be a whole number between 1 and 1,000"),
        ({"tolerance": "nan"}, "A loss that does not matter: 'nan' is not a number."),
        ({"policy": "os:getcwd"}, "'os:getcwd' is a custom policy"),
        ({"problem": "graph ="}, "Not valid TOML"),
    ],
)
def test_errors_of_a_rehearsal_are_shown(page, changes, message):
    answer = page.send("/new/rehearse", **{"problem": TASK2, **REHEARSAL, **changes})
    text = unescape(wait_for_rehearsal(page, answer.text))
    assert message in text


def test_unknown_rehearsals_are_not_found(page):
    assert page.browser.get("/new/rehearsal/unknown").status_code == 404


# -- starting an experiment ----------------------------------------------------------------------


def test_an_experiment_is_created_and_its_page_opens(page, empty):
    sent = {"problem": TASK2, "name": "ward 7", "policy": "ts", "floor": "0.1", "seed": "7"}
    answer = page.send("/new", is_part=False, **sent, ignore_restricted="yes")
    assert answer.status_code == 303 and answer.headers["location"] == "/experiments/ward%207/now"
    ward = empty.registry.experiment("ward 7")
    assert ward.policy == "ts" and ward.options["floor"] == 0.1 and not ward.learn_restricted
    assert page.browser.get(answer.headers["location"]).status_code == 200
    again = page.send("/new", is_part=False, **sent)
    assert again.status_code in (409, 422) and "ward 7" in again.text
    assert text_in_editor(again.text).strip() == TASK2.strip()


@pytest.mark.parametrize("box", [{}, {"skip_trials": "yes"}])
def test_every_arm_is_played_once_first_unless_the_box_is_ticked(page, empty, box):
    name = f"ward {len(box)}"
    answer = page.send("/new", is_part=False, problem=TASK2, name=name, policy="best", **box)
    assert answer.status_code == 303
    assert empty.registry.experiment(name).options["try_all"] is not bool(box)
    named = {"problem": TASK2, "name": f"named {len(box)}", "policy": "ts"}
    assert page.send("/new", is_part=False, **named, **box).status_code == 303


@pytest.mark.parametrize("prior", ["flat", "pooled", "0.5"])
def test_a_prior_is_a_name_or_a_number(page, empty, prior):
    name = f"prior {prior}"
    answer = page.send("/new", is_part=False, problem=TASK2, name=name, policy="ids", prior=prior)
    assert answer.status_code == 303
    assert str(empty.registry.experiment(name).options["prior"]) == prior


def test_the_name_defaults_to_that_of_the_problem(page):
    answer = page.send("/new", is_part=False, problem=TASK2, suggested="task2", policy="random")
    assert answer.headers["location"] == "/experiments/task2/now"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "", "problem": 'graph = "X -> Y"\nreward = "Y"'}, "Enter a name for"),
        ({"name": "", "problem": " "}, "Write a problem first."),
        ({"name": "", "problem": TASK2.replace('"Y"', '"Q"')}, "Q"),
        ({"name": "x" * 300}, "name: String should have at most 200"),
        ({"floor": "much"}, "Floor: 'much' is not a number."),
        ({"prior": "poled"}, "Prior (flat, pooled or a number): 'poled' is not a number."),
        ({"floor": "2"}, "Floor=2 must be at least 0 and below 1"),
        ({"seed": "-1"}, "must be a whole number"),
        ({"policy": "os:getcwd"}, "Unknown policy 'os:getcwd'"),
        ({"problem": 'graph_file = "/etc/passwd"\nreward = "Y"'}, "put the graph into the text"),
        ({"problem": TASK2 + 'prior = "/etc/passwd"'}, "put the counts into the text"),
    ],
)
def test_errors_are_shown_and_the_form_is_kept(page, empty, changes, message):
    before = empty.registry.names()
    sent = {"problem": TASK2, "name": "wrong", "policy": "random", "delay": "17", **changes}
    answer = page.send("/new", is_part=False, **sent)
    assert answer.status_code == 422 and message.lower() in unescape(answer.text).lower()
    assert text_in_editor(answer.text).strip() == sent["problem"].strip()
    assert 'value="17"' in answer.text
    assert empty.registry.names() == before
