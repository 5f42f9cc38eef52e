"""Commands on the URL of a server, compared with the same commands on its store."""

import re

import pytest
from support.cli_runner import CommandLine
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


def outputs(cli, url, store, command, *arguments):
    """Return what a command prints on the URL and on the store, without what must differ."""
    texts = []
    for location in (url, str(store)):
        text = cli.run_ok(command, location, *arguments).replace(location, "STORE")
        text = re.sub(r"for \d+ seconds?", "for a while", " ".join(text.split()))
        texts.append(re.sub(r'"waiting_seconds": [\d.]+', "", text))
    return texts


QUERIES = (
    ("status", "--tolerance", "0.1"),
    ("status", "--json"),
    ("audit",),
    ("audit", "--json"),
    ("explain", "1"),
    ("explain", "1", "--json"),
    ("evaluate", "random"),
    ("evaluate", "random", "--json"),
)


@pytest.mark.parametrize("kind", ["eventful", "revised", "priced"])
def test_queries_print_the_same_from_a_server_and_a_store(cli, served, kind):
    for command, *options in QUERIES:
        remote, local = outputs(cli, served.url, served.store, command, "--name", kind, *options)
        assert remote == local, command


def test_warnings_of_a_server_are_shown_once(cli, monkeypatch):
    file = cli.write(
        "noted.toml",
        'graph = "X -> Y"\nreward = "Y"\nforbidden = ["do(X=1)"]\narms = "pomis"\n',
    )
    with running(cli.folder / "own.db") as server:
        monkeypatch.setenv("DOWISE_TOKEN", server.token("admin"))
        result = cli.run("new", server.address, "noted.toml", "--policy", "random")
        assert result.exit_code == 0 and result.stderr.count("Note: with forbidden") == 1
        with pytest.warns(DowiseWarning, match="with forbidden"):
            problem = load_problem(file)
        with pytest.warns(DowiseWarning, match="with forbidden"):  # by the server
            Client.create(server.address, "again", problem, "random")


def test_exports_and_figures(cli, served):
    for store, file in ((served.store, "local.csv"), (served.url, "remote.csv")):
        cli.run_ok("export", store, file, "--name", "eventful")
    assert (cli.folder / "local.csv").read_bytes() == (cli.folder / "remote.csv").read_bytes()
    cli.run_ok("status", served.url, "--name", "eventful", "--figure", "now.svg")
    cli.run_ok("explain", served.url, "1", "--name", "eventful", "--figure", "then.svg")
    assert all((cli.folder / f"{x}.svg").stat().st_size > 1000 for x in ("now", "then"))


def test_an_experiment_from_its_creation(cli, empty, monkeypatch):
    monkeypatch.setenv("DOWISE_TOKEN", empty.tokens["admin"])
    url = empty.url
    cli.write("past.csv", "Age,Dose,Frailty,Recovery\n1,low,0,1\n0,none,1,zero\n")
    result = cli.run("new", url, "ward.toml", "--data", "past.csv")
    assert "1 of 2 rows can't be read" in " ".join(result.stderr.split())
    output = cli.run_ok("new", url, "ward.toml", "--data", "past.csv", "--skip-bad", "--seed", "7")
    assert f"ward is in {url}" in output and "1 record to start with" in output
    assert f"Next:\n  dowise ask {url} -c Age=…" in output
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
        verb, *arguments = command
        remote, local = outputs(cli, url, "ward.db", verb, *arguments)
        assert remote == local, command
    ward = (cli.folder / "ward.toml").read_text()
    cli.write("ward2.toml", ward.replace('"none", ', '"none", "tiny", '))
    data = cli.run_json("revise", url, "--problem", "ward2.toml", "--reason", "a smaller dose")
    assert data["changed"] and {"Dose": "tiny"} in data["arms"] and data["store"] == url
    decision = cli.run_json("ask", url, "-c", "Age=1")
    assert decision["id"] == 5 and "do(Dose=tiny)" in decision["arms"]


def test_url_may_name_the_experiment(cli, served, empty, monkeypatch):
    output = cli.run_ok("ask", f"{served.url}/experiments/eventful", "-c", "C=1")
    assert f"dowise tell {served.url}/experiments/eventful " in output and "--name" not in output
    output = cli.run_ok("ask", served.url, "-c", "C=1", "--name", "eventful")
    assert f"dowise tell {served.url} " in output and "--name eventful" in output
    monkeypatch.setenv("DOWISE_TOKEN", empty.tokens["admin"])
    data = cli.run_json("new", f"{empty.url}/experiments/ward%209", "ward.toml")
    assert data["name"] == "ward 9" and data["policy"]
    assert "'ward 9'" in cli.error("new", empty.url, "ward.toml", "--name", "ward 9")


def test_options_of_a_store_are_refused_for_a_server(cli, served):
    for option in (("--actor", "ann"), ("--accept-clock",)):
        message = cli.error("ask", served.url, "-c", "C=1", "--name", "fresh", *option)
        assert message.startswith(option[0]) and "by the token, who acts" in message
    assert "--actor" in cli.error("new", served.url, "ward.toml", "--actor", "ann")


def test_errors_are_one_line(cli, served, monkeypatch):
    ask = ("ask", served.url, "-c", "C=1", "--name", "fresh")
    status = ("status", served.url, "--name", "fresh")
    assert "): pass a name" in cli.error("status", served.url)
    assert "there is no decision 99" in cli.error("explain", served.url, "99", "--name", "fresh")
    monkeypatch.setenv("DOWISE_TOKEN", served.tokens["read"])
    assert "the role 'ask' is required" in cli.error(*ask)
    monkeypatch.setenv("DOWISE_TOKEN", "nonsense")
    assert "DOWISE_TOKEN" in cli.error(*status)
    monkeypatch.delenv("DOWISE_TOKEN")
    assert "DOWISE_TOKEN" in cli.error(*status)
    monkeypatch.setenv("DOWISE_TOKEN", "x")
    assert "unencrypted" in cli.error("status", "http://ward.invalid")
    monkeypatch.setenv("DOWISE_INSECURE", "1")
    assert "can't connect to http://ward.invalid" in cli.error("status", "http://ward.invalid")


def test_servers_that_do_not_send_the_earlier_values(cli, empty, monkeypatch):
    """Servers of the version before say if a decision changed, not from what."""
    monkeypatch.setenv("DOWISE_TOKEN", empty.tokens["admin"])
    ward = f"{empty.url}/experiments/before"
    cli.run_json("new", ward, "ward.toml")
    number = cli.run_json("ask", ward, "-c", "Age=1")["id"]
    post = Transport.post

    def post_without_earlier(*arguments, **options):
        data = post(*arguments, **options)
        return {key: value for key, value in data.items() if key != "earlier"}

    monkeypatch.setattr(Transport, "post", post_without_earlier)
    assert cli.run_ok("tell", ward, number, "Frailty=1").startswith(f"Decision {number}, ")
    assert "Nothing new" in cli.run_ok("tell", ward, number, "Frailty=1")
    amend = ("amend", ward, number, "Frailty=0", "--reason", "typo")
    assert [cli.run_json(*amend)["changed"] for _ in range(2)] == [True, False]
