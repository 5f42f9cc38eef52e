"""Commands on the URL of a server print what they print on its store."""

import json
import re

import pytest
from support.cli_runner import CommandLine
from support.sample_experiments import KINDS
from support.servers import running

from dowise import Client, load_problem
from dowise.client.transport import Transport
from dowise.errors import DowiseWarning

pytestmark = pytest.mark.slow  # each starts a server and many commands


@pytest.fixture
def cli(tmp_path, monkeypatch, served):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOWISE_TOKEN", served.tokens["admin"])
    return CommandLine(tmp_path)


def both(cli, served, command, *arguments):
    """What a command prints on the URL and on the store, where each is called STORE."""
    texts = []
    for store in (served.url, str(served.store)):
        result = cli.run(command, store, *arguments)
        assert result.exit_code == 0, result.output
        text = re.sub(r"for \d+ seconds?", "for a while", result.stdout.replace(store, "STORE"))
        texts.append(re.sub(r'"waiting_seconds": [\d.]+', "", text))
    return texts


LOOKS = (
    ("status", "--tolerance", "0.1"),
    ("status", "--json"),
    ("audit",),
    ("audit", "--json"),
    ("explain", "1"),
    ("explain", "1", "--json"),
    ("evaluate", "random"),
    ("evaluate", "random", "--json"),
)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "fresh"])
def test_looks(cli, served, kind):
    for command, *rest in LOOKS:
        mine, theirs = both(cli, served, command, "--name", kind, *rest)
        assert mine == theirs, command


def test_what_a_server_says_of_a_problem_is_said_once(cli, monkeypatch):
    noted = cli.folder / "noted.toml"
    noted.write_text('graph = "X -> Y"\nreward = "Y"\nforbidden = ["do(X=1)"]\narms = "pomis"\n')
    with running(cli.folder / "own.db") as server:
        monkeypatch.setenv("DOWISE_TOKEN", server.token("admin"))
        result = cli.run("new", server.address, "noted.toml", "--policy", "random")
        assert result.exit_code == 0 and result.stderr.count("Note: with forbidden") == 1
        with pytest.warns(DowiseWarning, match="with forbidden"):
            made = load_problem(noted)
        with pytest.warns(DowiseWarning, match="with forbidden"):  # by the server
            Client.create(server.address, "again", made, "random")


def test_files(cli, served):
    both(cli, served, "export", "mine.csv", "--name", "eventful")
    first = (cli.folder / "mine.csv").read_bytes()
    cli.run_ok("export", served.url, "theirs.csv", "--name", "eventful")
    assert (cli.folder / "theirs.csv").read_bytes() == first
    cli.run_ok("status", served.url, "--name", "eventful", "--figure", "now.svg")
    cli.run_ok("explain", served.url, "1", "--name", "eventful", "--figure", "then.svg")
    assert all((cli.folder / f"{x}.svg").stat().st_size > 1000 for x in ("now", "then"))


def test_a_decision_from_its_question_to_its_end(cli, empty, monkeypatch):
    monkeypatch.setenv("DOWISE_TOKEN", empty.tokens["admin"])
    url = empty.url
    (cli.folder / "past.csv").write_text("Age,Dose,Frailty,Recovery\n1,low,0,1\n0,none,1,zero\n")
    assert "1 of 2 rows can't be read" in cli.run(
        "new", url, "ward.toml", "--data", "past.csv"
    ).stderr.replace("\n", " ")
    made = cli.run_ok("new", url, "ward.toml", "--data", "past.csv", "--skip-bad", "--seed", "7")
    assert f"ward is in {url}" in made and "1 record to start with" in made
    assert f"Next:\n  dowise ask {url} -c Age=…" in made
    cli.create("--data", "past.csv", "--skip-bad")  # the same in ward.db
    for command in (
        ("ask", "-c", "Age=1", "--allow", "do(Dose=low)", "--request-id", "one"),
        ("tell", "1", "Recovery=1"),
        ("tell", "1", "Recovery=1"),
        ("tell", "1", "Frailty=0"),
        ("amend", "1", "Recovery=0", "--reason", "typo"),
        ("ask", "-c", "Age=0", "-n", "3"),
        ("withdraw", "2", "--reason", "left"),
        ("tell", "3", "--played", "do(Dose=none)", "Recovery=1"),
        ("import", "past.csv", "--skip-bad", "--again"),
        ("revise", "--policy", "random", "--reason", "a trial"),
        ("revise", "--policy", "random", "--reason", "a trial"),
        ("erase", "3", "--reason", "asked to be forgotten", "--yes"),
        ("status",),
    ):
        verb, *rest = command
        texts = []
        for store in (url, "ward.db"):
            shown = cli.run_ok(verb, store, *rest).replace(store, "STORE")
            texts.append(re.sub(r"for \d+ seconds?", "for a while", shown))
        assert texts[0].split() == texts[1].split(), command
    (cli.folder / "ward2.toml").write_text(
        (cli.folder / "ward.toml").read_text().replace('"none", ', '"none", "tiny", ')
    )
    page = cli.run_json("revise", url, "--problem", "ward2.toml", "--reason", "a smaller dose")
    assert page["changed"] and {"Dose": "tiny"} in page["arms"] and page["store"] == url
    asked = cli.run_json("ask", url, "-c", "Age=1")
    assert asked["id"] == 5 and "do(Dose=tiny)" in asked["arms"]


def test_the_url_may_name_the_experiment(cli, served):
    shown = cli.run_ok("ask", f"{served.url}/experiments/eventful", "-c", "C=1")
    assert f"dowise tell {served.url}/experiments/eventful " in shown and "--name" not in shown
    named = cli.run_ok("ask", served.url, "-c", "C=1", "--name", "eventful")
    assert f"dowise tell {served.url} " in named and "--name eventful" in named


def test_new_takes_the_name_of_the_url(cli, empty, monkeypatch):
    monkeypatch.setenv("DOWISE_TOKEN", empty.tokens["admin"])
    page = cli.run_json("new", f"{empty.url}/experiments/ward%209", "ward.toml")
    assert page["name"] == "ward 9" and page["policy"]
    assert "there is an experiment 'ward 9'" in cli.error(
        "new", empty.url, "ward.toml", "--name", "ward 9"
    )


def test_what_a_server_knows_itself(cli, served):
    for option in (("--actor", "ann"), ("--accept-clock",)):
        said = cli.error("ask", served.url, "-c", "C=1", "--name", "fresh", *option)
        assert said.startswith(option[0]) and "by the token, who acts" in said
    assert "--actor" in cli.error("new", served.url, "ward.toml", "--actor", "ann")


def test_errors_are_one_line(cli, served, monkeypatch):
    assert "): pass a name" in cli.error("status", served.url)
    assert "there is no decision 99 in fresh" in cli.error(
        "explain", served.url, "99", "--name", "fresh"
    )
    monkeypatch.setenv("DOWISE_TOKEN", served.tokens["read"])
    assert "the role 'ask' is required" in cli.error(
        "ask", served.url, "-c", "C=1", "--name", "fresh"
    )
    monkeypatch.setenv("DOWISE_TOKEN", "nonsense")
    assert "DOWISE_TOKEN" in cli.error("status", served.url, "--name", "fresh")
    monkeypatch.delenv("DOWISE_TOKEN")
    assert "DOWISE_TOKEN" in cli.error("status", served.url, "--name", "fresh")
    monkeypatch.setenv("DOWISE_TOKEN", "x")
    assert "unencrypted" in cli.error("status", "http://ward.invalid")
    monkeypatch.setenv("DOWISE_INSECURE", "1")
    assert "can't connect to http://ward.invalid" in cli.error("status", "http://ward.invalid")


def test_a_server_of_the_version_before_says_whether_it_changed_not_from_what(
    cli, empty, monkeypatch
):
    monkeypatch.setenv("DOWISE_TOKEN", empty.tokens["admin"])
    ward = f"{empty.url}/experiments/before"
    cli.run_json("new", ward, "ward.toml")
    number = cli.run_json("ask", ward, "-c", "Age=1")["id"]
    post = Transport.post

    def without_earlier(*arguments, **more):
        page = post(*arguments, **more)
        return {key: value for key, value in page.items() if key != "earlier"}

    monkeypatch.setattr(Transport, "post", without_earlier)
    assert cli.run_ok("tell", ward, number, "Frailty=1").startswith(f"Decision {number}, ")
    assert "Nothing new" in cli.run_ok("tell", ward, number, "Frailty=1")
    amend = ("amend", ward, number, "Frailty=0", "--reason", "typo")
    assert [cli.run_json(*amend)["changed"] for _ in range(2)] == [True, False]


def test_json_is_that_of_the_store(cli, served):
    mine, theirs = (
        cli.run_json("status", store, "--name", "priced") for store in (served.url, served.store)
    )
    assert json.dumps(mine) == json.dumps(theirs)
