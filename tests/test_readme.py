"""What the README shows is what happens."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.servers import running

from dowise.cli.main import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def examples(page):
    """The code of a page, and what it says the code prints."""
    text = page.read_text("utf-8")
    return (re.findall(rf"```{x}\n(.*?)```", text, re.DOTALL) for x in ("python", "text"))


PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if all(examples(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_pages_examples_print_what_they_say(page, tmp_path):
    code, text = examples(page)
    assert run_python("\n".join(code), tmp_path) == "".join(text)


def run_python(code, folder=None):
    line = [sys.executable, "-c", code]
    done = subprocess.run(line, capture_output=True, text=True, check=True, cwd=folder)
    return done.stdout


def test_the_example_prints_what_it_says():
    example, expected = blocks("python")[0], blocks("text")[0]
    assert run_python(example) == expected
    assert len(example.strip().splitlines()) <= 12


def test_the_examples_one_after_the_other_print_what_they_say():
    assert run_python("\n".join(blocks("python"))) == "".join(blocks("text"))


def commands(block):
    """What is typed in a block, without its comments."""
    typed = [line for line in block.splitlines() if re.match(r"dowise \w+", line)]
    return [shlex.split(line, comments=True)[1:] for line in typed]


# A block that makes an experiment is typed line after line in one folder; so is one that serves it.
STORIES = [block for block in blocks("console") if "dowise new " in block]
SERVED = [block for block in blocks("console") if "dowise serve " in block]
ALONE = [x for block in blocks("console") if block not in STORIES + SERVED for x in commands(block)]


def run_in(folder, monkeypatch, words):
    (folder / "ward.toml").write_text(blocks("toml")[0], "utf-8")
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip()
    return result.stdout


@pytest.mark.parametrize("words", ALONE, ids=" ".join)
def test_the_commands_run_as_written(words, tmp_path, monkeypatch):
    run_in(tmp_path, monkeypatch, words)


def test_no_command_is_left_out():
    typed = [line for line in README.splitlines() if re.match(r"dowise \w+", line)]
    assert len(typed) == len(ALONE) + sum(len(commands(story)) for story in STORIES + SERVED)


def test_the_live_experiment_runs_as_written(tmp_path, monkeypatch):
    (story,) = STORIES
    words = commands(story)
    assert len(words) == 9 and words[0][0] == "new" and words[-1][0] == "status"
    printed = [run_in(tmp_path, monkeypatch, each) for each in words]
    (shown,) = blocks("output")
    assert printed[1] == shown


def test_the_served_experiment_runs_as_written(tmp_path, monkeypatch):
    (story,) = SERVED
    serve, token, ask = commands(story)
    assert serve == ["serve", "ward.db"] and ask[:2] == ["ask", "http://127.0.0.1:8000"]
    run_in(tmp_path, monkeypatch, ["new", "ward.db", "ward.toml"])
    with running(tmp_path / "ward.db") as server:
        made = run_in(tmp_path, monkeypatch, [*token, "--json"])
        monkeypatch.setenv("DOWISE_TOKEN", json.loads(made)["secret"])
        asked = run_in(tmp_path, monkeypatch, ["ask", server.address, *ask[2:]])
        assert "Decision 1: " in asked
        assert [event.actor for event in server.registry.experiment("ward").events()][1] == "ward 7"


def slug(heading):
    """Return the anchor that GitHub gives a heading."""
    words = re.sub(r"[^\w\- ]", "", heading.replace("`", "").strip().lower())
    return words.replace(" ", "-")


def anchors(page):
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)}


DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text("utf-8")):
        path = page.parent / target if target else page
        assert path.exists(), f"{page.name} links to {target}"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{page.name} links to {target}#{anchor}"


def test_the_architecture_page_is_short_and_names_files_that_exist():
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    assert sum(bool(re.search(r"\w", word)) for word in page.split()) <= 1200
    sources = [ROOT / "src" / "dowise", ROOT / "src"]
    names = {path.name for folder in sources for path in folder.rglob("*.py")}
    for text in re.findall(r"`([\w/]+\.py)`", page):
        known = any((folder / text).exists() for folder in (*sources, ROOT))
        assert (
            known
            or ("/" not in text and text in names)
            or any(str(path).endswith(text) for path in (ROOT / "src").rglob("*.py"))
        ), text


def test_the_paper_map_names_tests_and_code_that_exist():
    page = (ROOT / "docs" / "paper-map.md").read_text("utf-8")
    packages = "|".join(path.name for path in (ROOT / "src" / "dowise").iterdir() if path.is_dir())
    for path in re.findall(rf"`((?:{packages})/[\w/]+\.py)", page):
        assert (ROOT / "src" / "dowise" / path).exists() or (ROOT / "tests" / path).exists(), path
    tests = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"(?<![\w/])(test_\w+?)_?(?=[…`])", page):
        assert f"def {name}" in tests, name
