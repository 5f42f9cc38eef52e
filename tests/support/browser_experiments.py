"""Two experiments for the tests in a browser, one of them with names that attack, and their use."""

import re

from dowise import CausalGraph, Problem

WARD = Problem(
    CausalGraph.parse(
        "Age -> Dose -> Recovery; Age -> Recovery; Frailty -> Dose; Frailty ?-> Recovery"
    ),
    "Recovery",
    "Age",
    "Frailty",
    domains={"Age": ["young", "old"], "Dose": ["none", "low", "high"], "Frailty": ["fit", "frail"]},
)
PLACE = "/experiments/ward%207"

# Names that would run, close an attribute or end a script where somebody forgot to escape them.
AGE, DOSE, WHY = 'Age "<i>年齢</i>"', "Dose' 💊 <svg onload=hacked=1>", "</script><b>W"
OUTCOME = "<img src=x onerror=hacked=1>"
LABELS = ["<script>window.hacked=1</script>", "\"quoted\" & 'so'", "低い", "🏥 {{7*7}} ${7*7}"]
HOSTILE = Problem(
    CausalGraph([(AGE, DOSE), (DOSE, OUTCOME), (AGE, OUTCOME), (WHY, OUTCOME), (WHY, DOSE)]),
    OUTCOME, AGE, WHY, domains={DOSE: LABELS, AGE: ["<svg/onload=hacked=1>", "老"]},
)  # fmt: skip
HOSTILE_NAME = '<script>window.hacked=1</script> "病棟" 🏥'


def play(experiment):
    problem = experiment.problem
    for number in range(1, 13):
        context = {name: problem.domains[name][number % 2] for name in problem.context}
        asked = experiment.ask(context)
        others = [name for name in problem.domains if name not in context and name not in asked.arm]
        seen = {name: problem.domains[name][number // 2 % 2] for name in others}
        if number % 5 == 0:
            experiment.tell(
                asked.id, {name: seen[name] for name in others if name != problem.reward}
            )
        elif number % 5:
            experiment.tell(asked.id, seen)
    experiment.amend(1, {problem.reward: "1"}, reason="a slip of the pen <b>")
    experiment.withdraw(5, reason="moved away")


def count(served, name="ward 7"):
    return served.registry.experiment(name).counts()["asked"]


def choose(within, name, label):
    """Tick a value of a variable, within a form."""
    group = within.get_by_role("group", name=name)
    group.get_by_role("radio", name=label, exact=True).check()


def ask(page, age="young"):
    """Ask for a decision, and give its number."""
    choose(page.locator("#ask"), "Age", age)
    page.get_by_role("button", name="Ask for a decision").click()
    page.wait_for_url("**said=asked")
    return int(re.search(r"decision=(\d+)", page.url)[1])
