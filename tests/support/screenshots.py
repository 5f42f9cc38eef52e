"""Renew the screenshots of the docs: `PYTHONPATH=tests python tests/support/screenshots.py`.

Sixty decisions of a ward, a few hours apart, are simulated and served, and a browser opens the
pages. Look at the pictures before you commit them.
"""

import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from dowise import Experiment
from dowise.experiment import event as event_module
from dowise.problem.problem_file import parse_problem
from support.browser import ARGUMENTS, WIDE
from support.servers import running

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
PROBLEM = """
name = "ward 7"
graph = "Age -> Dose; Age -> Recovery; Dose -> Recovery; Frailty -> Dose; Frailty ?-> Recovery"
reward = "Recovery"
context = "Age"
non_manipulable = "Frailty"
[domains]
Age = ["young", "old"]
Frailty = ["fit", "frail"]
Dose = ["none", "low", "high"]
"""
RECOVERY = {"none": 0.3, "low": 0.55, "high": 0.75}
PENDING = {55: (), 58: ("Frailty",), 60: ()}  # variables that were told so far
PAGES = {
    "now": "now?decision=58",
    "known": "known",
    "graph": "graph?variable=Recovery",
}


def recovery_probability(age, frailty, dose):
    harm = 0.35 * (dose == "high") * (age == "old")
    return RECOVERY[dose] + 0.2 * (frailty == "fit") * (dose == "high") - harm


def play(store):
    """Make sixty decisions, of which three are pending."""
    rng, real_now = np.random.default_rng(11), event_module.now
    hours = timedelta(hours=5)
    start = datetime.now(UTC) - 61 * hours
    event_module.now = lambda: start
    with Experiment.create(store, "ward 7", parse_problem(PROBLEM), seed=7) as experiment:
        for number in range(1, 61):
            event_module.now = lambda number=number: start + number * hours
            age = str(rng.choice(["young", "old"], p=[0.75, 0.25]))
            decision = experiment.ask({"Age": age})
            values = {"Frailty": str(rng.choice(["fit", "frail"], p=[0.6, 0.4]))}
            dose = dict(decision.arm).get("Dose", "none")
            chance = recovery_probability(age, values["Frailty"], dose)
            values["Recovery"] = str(int(rng.random() < chance))
            if "Dose" not in dict(decision.arm):
                values["Dose"] = dose
            outcome = {name: values[name] for name in PENDING.get(number, values)}
            if outcome:
                experiment.tell(decision.id, outcome)
    event_module.now = real_now


def take_screenshots(store):
    with running(store) as served, sync_playwright() as playwright:
        program = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": WIDE, "height": 900})
        page.goto(served.server.link("admin", "Ann"))
        page.wait_for_url(lambda url: "/enter" not in url)
        for name, address in PAGES.items():
            page.goto(f"{served.address}/experiments/ward%207/{address}")
            page.wait_for_selector(".waiting", state="detached")
            page.wait_for_timeout(500)  # charts are drawn
            page.screenshot(path=FOLDER / f"web-{name}.png", full_page=True)
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        play(Path(folder) / "ward.db")
        take_screenshots(Path(folder) / "ward.db")
