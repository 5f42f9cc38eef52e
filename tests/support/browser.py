"""A real browser for tests of pages: Debian's Chromium, headless, driven by Playwright.

A `Window` is the browser of one user. Console messages, requests to other servers and dialogs of
its pages are recorded, and fail the test when the window is closed.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import contextmanager

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

MISSING = "NO BROWSER IS INSTALLED, SO PAGES ARE NOT TESTED: install Debian's package chromium"
TIMEOUT = 60_000  # milliseconds for a page, on busy machines
WIDE, PHONE, NARROWEST = 1280, 390, 360  # pixels

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-sync",
    "--disable-component-update",
    "--no-first-run",
]
_REPORT_POLICY_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""
_HAS_VISIBLE_FOCUS = """() => {
  const one = document.activeElement;
  const shown = getComputedStyle(one.closest(".chip, .editor, label.button") ?? one);
  return shown.outlineStyle !== "none" && parseFloat(shown.outlineWidth) >= 2;
}"""
_FIND_OVERFLOW = """() => {
  const room = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= room) return [];
  return ["the page", ...[...document.querySelectorAll("body *")]
    .filter((one) => one.getBoundingClientRect().right > room + 1)
    .map((one) => one.outerHTML.slice(0, 120))];
}"""


@contextmanager
def chromium(request):
    """Run the browser. If it is not installed, the test is skipped, and fails on CI."""
    program = shutil.which("chromium")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        request.config.get_terminal_writer().line(f"\n{MISSING}", red=True, bold=True)
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


class Window:
    """Browser of one user at a server."""

    def __init__(self, browser, served, script=True, width=WIDE, **options):
        self.served, self.problems, self.expected = served, [], []
        self.context = browser.new_context(
            java_script_enabled=script,
            base_url=served.address,
            viewport={"width": width, "height": 900},
            **options,
        )
        self.context.set_default_timeout(TIMEOUT)
        self.context.add_init_script(_REPORT_POLICY_VIOLATIONS)
        self.context.on("console", self._record_message)
        self.context.on("weberror", lambda event: self.problems.append(f"script: {event.error}"))
        self.context.on("dialog", self._record_dialog)
        self.context.on("request", self._check_request)
        self.page = self.context.new_page()

    def _record_message(self, message):
        if message.type in ("error", "warning"):
            self.problems.append(f"console: {message.text}")

    def _record_dialog(self, dialog):
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _check_request(self, request):
        if not request.url.startswith((f"{self.served.address}/", "data:")):
            self.problems.append(f"other server: {request.url}")

    def expect(self, *patterns):
        """Expect problems that match these patterns, such as the status of a refused form."""
        self.expected += patterns

    def enter(self, role="admin", name="Ann"):
        """Sign in by a one-time link."""
        self.page.goto(self.served.server.link(role, name))
        self.page.wait_for_url(lambda url: "/enter" not in url)
        return self.page

    def sign_in(self, role="admin", name="Ann"):
        """Sign in by a token, as users without scripts do."""
        self.page.goto("/login")
        self.page.get_by_label("Token").fill(self.served.token(role, name))
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(lambda url: "/login" not in url)
        return self.page

    def close(self):
        """Close the window, and fail if it had unexpected problems."""
        self.context.close()
        if problems := self.unexpected_problems():
            raise AssertionError("\n".join(problems))

    def unexpected_problems(self):
        """Return the recorded problems that no pattern expects."""
        return [
            problem
            for problem in self.problems
            if not any(re.search(pattern, problem) for pattern in self.expected)
        ]


def axe_violations(page):
    """Return one text for each rule of axe that the page violates."""
    return [
        f"{rule['id']}: {rule['help']}: {[node['html'][:200] for node in rule['nodes'][:3]]}"
        for rule in Axe().run(page).response["violations"]
    ]


def accessibility_problems(page):
    """Return violations of axe in both colour schemes, and what is too wide for a phone."""
    problems = []
    for scheme, width in (("light", WIDE), ("dark", PHONE)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        problems += [f"{scheme}, {width} px: {text}" for text in axe_violations(page)]
    page.set_viewport_size({"width": NARROWEST, "height": 900})
    problems += [f"{NARROWEST} px: too wide: {html}" for html in page.evaluate(_FIND_OVERFLOW)]
    page.set_viewport_size({"width": WIDE, "height": 900})
    page.emulate_media(color_scheme="light")
    return problems


def open_details(page):
    """Unfold all details, except those that are loaded from the server."""
    page.evaluate(
        "for (const element of document.querySelectorAll('details:not([hx-get])'))"
        " element.open = true"
    )


def tab_to(page, target, max_steps=60):
    """Press Tab until the target has the focus, which must be visible at every step."""
    for _ in range(max_steps):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            continue
        assert page.evaluate(_HAS_VISIBLE_FOCUS), page.evaluate("document.activeElement.outerHTML")
        if target.evaluate("(element) => element === document.activeElement"):
            return
    raise AssertionError(f"{target} can't be reached by Tab")
