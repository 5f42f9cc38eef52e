"""Static files: vendored code is as published; pages contain nothing inline or external."""

import re
from hashlib import sha256
from pathlib import Path

import pytest

import dowise

ROOT = Path(__file__).parents[2]
WEB = Path(dowise.__file__).parents[1] / "dowise_web"
VENDOR = WEB / "static" / "vendor"

ROWS = re.findall(
    r"\| `(\S+)` \| .* \| (\S+) \| `([0-9a-f]{64})` \|", (VENDOR / "README.md").read_text()
)


@pytest.mark.parametrize(("file", "licence", "checksum"), ROWS)
def test_vendored_files_are_as_published(file, licence, checksum):
    assert sha256((VENDOR / file).read_bytes()).hexdigest() == checksum
    name, version = re.match(r"([a-z]+)-(\d+\.\d+\.\d+)\.", file).groups()
    assert (VENDOR / f"{name}-{version}.LICENSE.txt").is_file()
    notice = (ROOT / "NOTICE").read_text()
    assert re.search(rf"^{name}\s+{re.escape(version)}", notice, re.MULTILINE | re.IGNORECASE)
    assert licence in ("0BSD", "MIT")


def test_all_vendored_files_are_listed():
    licences = {
        f"{re.match(r'[a-z]+-[0-9.]+[0-9]', file).group()}.LICENSE.txt" for file, *_ in ROWS
    }
    files = {path.name for path in VENDOR.iterdir()}
    assert files == {"README.md", *licences, *(file for file, *_ in ROWS)}


def test_pages_load_nothing_from_other_servers():
    """Neither a template nor a style names another server: pages work offline."""
    paths = [*(WEB / "templates").rglob("*.html"), *(WEB / "static").glob("*.*")]
    assert paths
    for path in paths:
        text = re.sub(r"http://www\.w3\.org/\S+", "", path.read_text())
        assert not re.search(
            r"""(src|href|action)=["']?(https?:)?//|url\(\s*["']?(https?:)?//""", text
        ), path
        assert not re.search(r"""import\s+["'(]|@import""", text), path


def test_templates_contain_no_inline_code_or_styles():
    """Browsers ignore silently what the Content-Security-Policy forbids."""
    for path in (WEB / "templates").rglob("*.html"):
        text = path.read_text()
        assert not re.search(r"\sstyle=|<style|\shx-on|\son[a-z]+=|javascript:", text), path
        for tag in re.findall(r"<script[^>]*>", text):
            assert "src=" in tag or 'type="application/json"' in tag, (path, tag)
        raw = re.findall(r"([\w.]+)\s*\|\s*safe", text)
        # Only pictures: dowise.plotting.svg escapes the names in them.
        assert all(name.endswith((".svg", ".sample")) for name in raw), (path, raw)
