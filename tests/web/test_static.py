"""The code of others is what its makers published, and stands in the notice."""

import re
from hashlib import sha256
from pathlib import Path

import pytest

import dowise

HOUSE = Path(__file__).parents[2]
SERVICE = Path(dowise.__file__).parents[1] / "dowise_web"
VENDOR = SERVICE / "static" / "vendor"

ROWS = re.findall(
    r"\| `(\S+)` \| .* \| (\S+) \| `([0-9a-f]{64})` \|", (VENDOR / "README.md").read_text()
)


@pytest.mark.parametrize(("file", "licence", "sum_of_it"), ROWS)
def test_vendored_files_are_as_published(file, licence, sum_of_it):
    assert sha256((VENDOR / file).read_bytes()).hexdigest() == sum_of_it
    name, version = re.match(r"([a-z]+)-(\d+\.\d+\.\d+)\.", file).groups()
    assert (VENDOR / f"{name}-{version}.LICENSE.txt").is_file()
    notice = (HOUSE / "NOTICE").read_text()
    assert re.search(rf"^{name}\s+{re.escape(version)}", notice, re.MULTILINE | re.IGNORECASE)
    assert licence in ("0BSD", "MIT")


def test_all_vendored_files_are_listed():
    licences = {
        f"{re.match(r'[a-z]+-[0-9.]+[0-9]', file).group()}.LICENSE.txt" for file, *_ in ROWS
    }
    there = {path.name for path in VENDOR.iterdir()}
    assert there == {"README.md", *licences, *(file for file, *_ in ROWS)}


def test_pages_load_nothing_from_other_servers():
    """Neither a template nor a style names another server: pages work offline."""
    own = [*(SERVICE / "templates").rglob("*.html"), *(SERVICE / "static").glob("*.*")]
    assert own
    for path in own:
        text = re.sub(r"http://www\.w3\.org/\S+", "", path.read_text())
        assert not re.search(
            r"""(src|href|action)=["']?(https?:)?//|url\(\s*["']?(https?:)?//""", text
        ), path
        assert not re.search(r"""import\s+["'(]|@import""", text), path


def test_templates_contain_no_inline_code_or_styles():
    """What the Content-Security-Policy forbids would fail in silence."""
    for path in (SERVICE / "templates").rglob("*.html"):
        text = path.read_text()
        assert not re.search(r"\sstyle=|<style|\shx-on|\son[a-z]+=|javascript:", text), path
        for tag in re.findall(r"<script[^>]*>", text):
            assert "src=" in tag or 'type="application/json"' in tag, (path, tag)
        raw = re.findall(r"([\w.]+)\s*\|\s*safe", text)
        # Pictures alone: dowise.plotting.svg escapes the names in them.
        assert all(name.endswith((".svg", ".sample")) for name in raw), (path, raw)
