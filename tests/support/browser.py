"""A real browser for the tests of pages, and eyes for what goes wrong in it.

It is Debian's Chromium, headless, driven by Playwright. A `Window` is one person's browser: what
its pages complain of, load from elsewhere or pop up is kept, and fails the test when it is closed.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import contextmanager

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

LACKING = (
    "NO BROWSER COULD BE HAD, SO THE PAGES ARE NOT TESTED IN ONE: install Debian's package chromium"
)
PATIENCE = 60_000  # milliseconds that a page gets, on machines that do much else
WIDE, PHONE, NARROWEST = 1280, 390, 360

QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
    "--disable-component-update", "--no-first-run",
]  # fmt: skip
_TELLS_OF_POLICY = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""
_FOCUS = """() => {
  const one = document.activeElement;
  const shown = getComputedStyle(one.closest(".chip, .editor, label.button") ?? one);
  return shown.outlineStyle !== "none" && parseFloat(shown.outlineWidth) >= 2;
}"""
_TOO_WIDE = """() => {
  const room = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= room) return [];
  return ["the page", ...[...document.querySelectorAll("body *")]
    .filter((one) => one.getBoundingClientRect().right > room + 1)
    .map((one) => one.outerHTML.slice(0, 120))];
}"""


@contextmanager
def chromium(request):
    """The browser. Without one the test is skipped loudly, and fails where CI must have one."""
    program = shutil.which("chromium")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail(LACKING)
        request.config.get_terminal_writer().line(f"\n{LACKING}", red=True, bold=True)
        pytest.skip(LACKING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=QUIET)
        yield browser
        browser.close()


class Window:
    """Somebody's browser at a server; `forgive` names console messages that a test provokes."""

    def __init__(self, browser, served, script=True, width=WIDE, **options):
        self.served, self.wrong, self.forgiven = served, [], []
        self.context = browser.new_context(
            java_script_enabled=script, base_url=served.address,
            viewport={"width": width, "height": 900}, **options,
        )  # fmt: skip
        self.context.set_default_timeout(PATIENCE)
        self.context.add_init_script(_TELLS_OF_POLICY)
        self.context.on("console", self._hear)
        self.context.on("weberror", lambda found: self.wrong.append(f"script: {found.error}"))
        self.context.on("dialog", self._dismiss)
        self.context.on("request", self._follow)
        self.page = self.context.new_page()

    def _hear(self, message):
        if message.type in ("error", "warning"):
            self.wrong.append(f"console: {message.text}")

    def _dismiss(self, dialog):
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _follow(self, request):
        if not request.url.startswith((f"{self.served.address}/", "data:")):
            self.wrong.append(f"elsewhere: {request.url}")

    def forgive(self, *patterns):
        """What the console may say, as patterns: of a refused form, of a server that is away."""
        self.forgiven += patterns

    def enter(self, role="admin", name="Ann"):
        """Come in by a link of one use."""
        self.page.goto(self.served.server.link(role, name))
        self.page.wait_for_url(lambda url: "/enter" not in url)
        return self.page

    def sign_in(self, role="admin", name="Ann"):
        """Come in by a token, as those do who have no script."""
        self.page.goto("/login")
        self.page.get_by_label("Token").fill(self.served.token(role, name))
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(lambda url: "/login" not in url)
        return self.page

    def close(self):
        """Close it, and fail if something was wrong in it."""
        self.context.close()
        if found := self.complaints():
            raise AssertionError("\n".join(found))

    def complaints(self):
        """What was wrong, except what was forgiven."""
        return [one for one in self.wrong if not any(re.search(p, one) for p in self.forgiven)]


def axe_says(page):
    """What axe has to say of a page as it is: one text for each rule that is broken."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes'][:3]]}"
        for one in found
    ]


def flaws(page):
    """What axe says in both colour schemes, wide and narrow, and what sticks out on a phone."""
    found = []
    for scheme, width in (("light", WIDE), ("dark", PHONE)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        found += [f"{scheme}, {width} px: {said}" for said in axe_says(page)]
    page.set_viewport_size({"width": NARROWEST, "height": 900})
    found += [f"{NARROWEST} px: sticks out: {one}" for one in page.evaluate(_TOO_WIDE)]
    page.set_viewport_size({"width": WIDE, "height": 900})
    page.emulate_media(color_scheme="light")
    return found


def open_all(page):
    """Unfold everything that is folded away, but what the server would have to work out first."""
    here = "details:not([hx-get])"
    page.evaluate(f"for (const one of document.querySelectorAll('{here}')) one.open = true")


def tab_to(page, target, most=60):
    """Press Tab until the target has the focus, which must be seen wherever it is."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            continue
        assert page.evaluate(_FOCUS), page.evaluate("document.activeElement.outerHTML")
        if target.evaluate("(one) => one === document.activeElement"):
            return
    raise AssertionError(f"{target} can't be reached by Tab")
