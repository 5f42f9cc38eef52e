"""Two experiments for tests in a browser, one of them with hostile names."""

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
WARD_URL = "/experiments/ward%207"

# Names that run, close an attribute or end a script if they are not escaped.
AGE, DOSE, HIDDEN = 'Age "<i>年齢</i>"', "Dose' 💊 <svg onload=hacked=1>", "</script><b>W"
OUTCOME = "<img src=x onerror=hacked=1>"
LABELS = ["<script>window.hacked=1</script>", "\"quoted\" & 'so'", "低い", "🏥 {{7*7}} ${7*7}"]
HOSTILE = Problem(
    CausalGraph([(AGE, DOSE), (DOSE, OUTCOME), (AGE, OUTCOME), (HIDDEN, OUTCOME), (HIDDEN, DOSE)]),
    OUTCOME,
    AGE,
    HIDDEN,
    domains={DOSE: LABELS, AGE: ["<svg/onload=hacked=1>", "老"]},
)
HOSTILE_NAME = '<script>window.hacked=1</script> "病棟" 🏥'


def play(experiment):
    """Ask twelve times, tell most outcomes, amend one decision and withdraw another."""
    problem = experiment.problem
    for number in range(1, 13):
        context = {name: problem.domains[name][number % 2] for name in problem.context}
        decision = experiment.ask(context)
        values = {
            name: labels[number // 2 % 2]
            for name, labels in problem.domains.items()
            if name not in context and name not in decision.arm
        }
        if number % 5 == 0:
            del values[problem.reward]
        experiment.tell(decision.id, values)
    experiment.amend(1, {problem.reward: "1"}, reason="a slip of the pen <b>")
    experiment.withdraw(5, reason="moved away")


def count(served, name="ward 7"):
    """Return the number of decisions."""
    return served.registry.experiment(name).counts()["asked"]


def choose(within, name, label):
    """Choose a value of a variable in a form."""
    group = within.get_by_role("group", name=name)
    group.get_by_role("radio", name=label, exact=True).check()


def ask(page, age="young"):
    """Ask for a decision, and return its number."""
    choose(page.locator("#ask"), "Age", age)
    page.get_by_role("button", name="Ask for a decision").click()
    page.wait_for_url("**said=asked")
    return int(re.search(r"decision=(\d+)", page.url)[1])
