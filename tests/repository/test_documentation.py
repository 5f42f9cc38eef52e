"""Examples, commands and links in the documentation work as written."""

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

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(language, text=README):
    """Return the code blocks of a page in a language."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def examples(page):
    """Return the Python code of a page and the output that the page shows."""
    text = page.read_text("utf-8")
    return blocks("python", text), blocks("text", text)


def commands(block):
    """Return the arguments of each `dowise` command of a block."""
    lines = [line for line in block.splitlines() if re.match(r"dowise \w+", line)]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def run_python(code, folder=None):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout


PAGES = [page for page in DOCUMENTS if page.parent.name == "docs" and all(examples(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_of_pages_print_what_the_page_shows(page, tmp_path):
    code, output = examples(page)
    assert run_python("\n".join(code), tmp_path) == "".join(output)


def test_examples_of_the_readme_print_what_it_shows():
    code, output = blocks("python"), blocks("text")
    assert run_python(code[0]) == output[0]
    assert run_python("\n".join(code)) == "".join(output)
    assert len(code[0].strip().splitlines()) <= 12


# The commands of a block that creates or serves an experiment run in order in one folder.
CREATED = [block for block in blocks("console") if "dowise new " in block]
SERVED = [block for block in blocks("console") if "dowise serve " in block]
INDEPENDENT = [
    words
    for block in blocks("console")
    if block not in CREATED + SERVED
    for words in commands(block)
]


def run_in(folder, monkeypatch, words):
    (folder / "ward.toml").write_text(blocks("toml")[0], "utf-8")
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip()
    return result.stdout


def test_every_command_of_the_readme_is_tested():
    lines = [line for line in README.splitlines() if re.match(r"dowise \w+", line)]
    assert len(lines) == len(INDEPENDENT) + sum(len(commands(x)) for x in CREATED + SERVED)


@pytest.mark.parametrize("words", INDEPENDENT, ids=" ".join)
def test_commands_of_the_readme_succeed(words, tmp_path, monkeypatch):
    run_in(tmp_path, monkeypatch, words)


def test_the_live_experiment_of_the_readme_prints_what_it_shows(tmp_path, monkeypatch):
    (block,) = CREATED
    words = commands(block)
    assert len(words) == 9 and words[0][0] == "new" and words[-1][0] == "status"
    printed = [run_in(tmp_path, monkeypatch, arguments) for arguments in words]
    (output,) = blocks("output")
    assert printed[1] == output


def test_the_served_experiment_of_the_readme_works(tmp_path, monkeypatch):
    (block,) = SERVED
    serve, token, ask = commands(block)
    assert serve == ["serve", "ward.db"] and ask[:2] == ["ask", "http://127.0.0.1:8000"]
    run_in(tmp_path, monkeypatch, ["new", "ward.db", "ward.toml"])
    with running(tmp_path / "ward.db") as server:
        created = run_in(tmp_path, monkeypatch, [*token, "--json"])
        monkeypatch.setenv("DOWISE_TOKEN", json.loads(created)["secret"])
        output = run_in(tmp_path, monkeypatch, ["ask", server.address, *ask[2:]])
        assert "Decision 1: " in output
        events = server.registry.experiment("ward").events()
        assert [event.actor for event in events][1] == "ward 7"


def slug(heading):
    """Return the anchor that GitHub gives a heading."""
    words = re.sub(r"[^\w\- ]", "", heading.replace("`", "").strip().lower())
    return words.replace(" ", "-")


def anchors(page):
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)}


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_existing_targets(page):
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text("utf-8")):
        path = page.parent / target if target else page
        assert path.exists(), f"{page.name} links to {target}"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{page.name} links to {target}#{anchor}"


def test_the_architecture_page_is_short_and_names_existing_files():
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    assert len(text.split()) <= 1200
    sources = [path.as_posix() for path in (ROOT / "src").rglob("*.py")]
    for name in re.findall(r"`([\w/]+\.py)`", text):
        assert (ROOT / name).exists() or any(path.endswith(f"/{name}") for path in sources), name


def test_the_paper_map_names_existing_tests_and_code():
    text = (ROOT / "docs" / "paper-map.md").read_text("utf-8")
    packages = "|".join(path.name for path in (ROOT / "src" / "dowise").iterdir() if path.is_dir())
    for path in re.findall(rf"`((?:{packages})/[\w/]+\.py)", text):
        assert (ROOT / "src" / "dowise" / path).exists() or (ROOT / "tests" / path).exists(), path
    tests = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"(?<![\w/])(test_\w+?)_?(?=[…`])", text):
        assert f"def {name}" in tests, name


def test_comments_in_the_sources_name_existing_tests():
    files = list((ROOT / "tests").rglob("test_*.py"))
    tests = {path.stem for path in files}
    tests.update(
        name for path in files for name in re.findall(r"def (test_\w+)", path.read_text("utf-8"))
    )
    for path in (ROOT / "src").rglob("*.py"):
        for name in re.findall(r"`(test_\w+)", path.read_text("utf-8")):
            assert name in tests, f"{path.name} names {name}"
