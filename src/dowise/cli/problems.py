"""Commands about one problem: its arms, formulas and bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dowise.belief import Belief
from dowise.belief.evidence import LIKELY, Evidence, in_words
from dowise.cli.arguments import (
    Number,
    WholeNumber,
    command,
    json_option,
    problem_argument,
    read_problem,
)
from dowise.cli.console import (
    MOST_ROWS,
    count,
    is_narrow_enough,
    plain_console,
    print_json,
    print_numbered,
    print_stripped,
    print_table,
    print_wrapped,
)
from dowise.identification.identify import iter_estimators
from dowise.problem import Problem
from dowise.problem.arms import why_others_are_out
from dowise.problem.formulas import iter_formulas, notation_of
from dowise.problem.problem_file import costs_in_words, doubts_in_words


@command("""\
  dowise arms healthcare
  dowise arms my-problem.toml --picture graph.svg
  dowise arms task3 --json""")
@problem_argument
@json_option
@click.option(
    "--picture",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw the graph, roles in colour, to a .svg, .png or .pdf file.",
)
def arms(problem: str, as_json: bool, picture: Path | None) -> None:
    """The interventions that can possibly be optimal."""
    loaded = read_problem(problem)
    if picture is not None:
        from dowise.plotting import draw
        from dowise.plotting import picture as picture_of

        draw(picture_of(loaded), picture)
    if as_json:
        from dowise.problem.problem_file import describe_arms

        print_json(describe_arms(loaded))
        return

    show_arms(loaded)
    if picture is not None:
        click.echo(f"\nThe graph is drawn in {picture}")


@command("""\
  dowise formulas task1
  dowise formulas task2 --latex > formulas.tex
  dowise formulas insurance --all""")
@problem_argument
@json_option
@click.option("--latex", is_flag=True, help="Print LaTeX instead of text, and nothing else.")
@click.option(
    "--all", "everything", is_flag=True, help="Print them all, not only the first of many."
)
def formulas(problem: str, as_json: bool, latex: bool, everything: bool) -> None:
    """Each arm's expected reward as a formula, and what the other arms' data tell of it.

    First each arm's reward in factors. Without hidden common causes that is the truncated
    factorisation. With them a factor may have a do() of its own: then what is seen where nothing is
    set does not count in it. Then, for each intervention set, the formulas by which its reward can
    be estimated from experiments on other sets (z²ID); P_{X=x} is the distribution under do(X=x).
    Names stand as they are spelled, and a small letter for any value of a variable: Z=z.
    """
    loaded = read_problem(problem)
    if as_json:
        from dowise.identification.identify import describe_formulas

        print_json(describe_formulas(loaded))
        return

    show_formulas(loaded, latex, everything)


@command("""\
  dowise bounds task1 --horizon 1000
  dowise bounds healthcare --horizon 500 --policy-samples 100000
  dowise bounds task1 --horizon 500 --certify
  dowise bounds my-problem.toml --horizon 1000 --json""")
@problem_argument
@json_option
@click.option(
    "--horizon", type=WholeNumber(1), required=True, metavar="T", help="The number of rounds."
)
@click.option(
    "--samples",
    type=WholeNumber(1),
    metavar="M",
    help="Draws at the prior, for p* and the entropy H(Π*).  [default: 50000, or 100 for each arm]",
)
@click.option(
    "--policy-samples",
    type=WholeNumber(1),
    metavar="N",
    help="Draws in each round of the run.  [default: 1000, or 10 for each arm]",
)
@click.option(
    "--delta",
    type=Number(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="The intervals may fail with this probability, over the whole run.",
)
@click.option(
    "--seed",
    type=WholeNumber(0),
    default=0,
    show_default=True,
    help="Of the draws, and of the worlds of the runs.",
)
@click.option(
    "--certify",
    is_flag=True,
    help="Also a bound that holds at this N: docs/certificate.md.",
)
@click.option(
    "--trials",
    type=WholeNumber(10),
    metavar="K",
    help="Runs of certified-ids for --certify, each in a world of its own.  [default: 100]",
)
def bounds(problem: str, as_json: bool, horizon: int, **options: Any) -> None:
    """How much regret to expect at most: the paper's bounds, with numbers.

    From the prior on, where nothing has been seen yet. Theorems 1 and 2 are taken along one run of
    Thompson Sampling in a world drawn from the prior.
    """
    from dowise.cli.console import bar
    from dowise.cli.simulate import show_bounds
    from dowise.simulation import bounds as bounds_of

    loaded = read_problem(problem)
    with bar(off_terminal=True) as progress:
        found = bounds_of(loaded, horizon, **options, progress=progress)
    if as_json:
        print_json(found.as_dict())
    else:
        show_bounds(found)


@command("  dowise problems")
@json_option
def problems(as_json: bool) -> None:
    """The problems that come built in."""
    from dowise.problem import builtin_names

    found = [(name, read_problem(name)) for name in builtin_names()]
    if as_json:
        from dowise.problem.problem_file import describe_problems

        print_json(describe_problems(found))
        return

    show_problems(found)


@command("""\
  dowise check task2 records.csv
  dowise check ward.toml records.parquet --alpha 0.01 --strict
  dowise check ward.toml records.csv --json --picture ward.svg""")
@problem_argument
@click.argument("data", type=click.Path(path_type=Path))
@json_option
@click.option(
    "--alpha",
    type=Number(1e-12, 1, max_open=True),
    default=0.05,
    show_default=True,
    help="The chance of an alarm where the graph is right, over all edges and records together.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Keep to that chance by proof, not by simulation; it takes more records to see the same.",
)
@click.option(
    "--picture",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw the graph with what is suspected to a .svg, .png or .pdf file.",
)
def check(
    problem: str, data: Path, as_json: bool, alpha: float, strict: bool, picture: Path | None
) -> None:
    """What past records say against the graph: edges that it lacks, and doubtful ones.

    DATA is a CSV or Parquet file with a row for each record and a column for each variable. A
    column `arm` says what was set, such as do(X=1); without it nothing was. Empty cells are missing
    values.
    """
    from dowise.belief import Belief
    from dowise.belief.evidence import risen
    from dowise.problem.tables import naming_the_file, read_table

    belief = Belief(read_problem(problem), evidence=True)
    table = read_table(data, belief.problem)
    with naming_the_file(data):
        belief.learn_many(belief.problem.records(table))  # what was of no use is shown below
    evidence = belief.evidence(alpha, strict)
    if picture is not None:
        from dowise.plotting import draw
        from dowise.plotting import picture as picture_of

        suspected = (*evidence.suspected, *risen(belief))
        draw(picture_of(belief.problem, belief.edges(), suspected), picture)
    if as_json:
        more = {"edges": belief.edges(), "favoured": favoured(belief), "used": used(belief)}
        print_json(evidence.as_dict() | more | {"unused": belief.unused})
        return
    columns = getattr(table, "column_names", table)
    show_evidence(belief, evidence, {*columns})
    if picture is not None:
        click.echo(f"\nThe graph is drawn in {picture}")


def show_arms(problem: Problem) -> None:
    """The roles, the intervention sets, the arms in words, and why nothing else is an arm."""
    console = plain_console()
    title = Text(problem.name or "The problem", style="bold")
    console.print(title + Text(f": {problem.description}" if problem.description else ""))
    roles = Table.grid(padding=(0, 2))
    for role, names in (
        ("minimise" if problem.minimise else "maximise", (_reward(problem),)),
        ("you can set", problem.manipulable),
        ("seen before the choice", problem.context),
        ("can't be set", problem.non_manipulable),
        ("hidden, never recorded", problem.hidden),
        ("forbidden in an arm", tuple(map(str, problem.forbidden))),
        ("costs", costs_in_words(problem)),
        ("known beforehand", _prior(problem)),
    ):
        if names:
            roles.add_row("", role, Text(", ".join(names)))
    for i, line in enumerate(doubts_in_words(problem)):
        roles.add_row("", "" if i else "edges in doubt", Text(line))
    print_stripped(console, roles)

    sizes = Counter(arm.variables for arm in problem.arms)
    kind = "minimal intervention set" if problem.arms_kind == "minimal" else "intervention set"
    is_free = not problem.forbidden and not problem.payoff.has_costs
    can_be_best = problem.arms_kind == "pomis" and is_free
    claim = " that can be optimal" if can_be_best else ""
    console.print(f"\n{count(len(sizes), kind)}{claim}", style="bold")
    print_table(
        console,
        ("set", "arms"),
        [("{" + ", ".join(sorted(names)) + "}", str(size)) for names, size in sizes.items()],
        right=("arms",),
    )
    console.print(f"\n{count(len(problem.arms), 'arm')}", style="bold")
    columns, rows = _arm_rows(problem)
    if is_narrow_enough(console, columns, rows):
        print_table(console, columns, rows, right=("#",))
    else:
        print_numbered(console, rows)
    console.print()
    print_wrapped(console, why_others_are_out(problem))


def _arm_rows(problem: Problem) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The columns of the table of arms and its rows; where there are costs, these too."""
    costs, priced = problem.payoff.costs.tolist(), problem.payoff.has_costs
    rows: list[tuple[str, ...]] = [
        (str(i), str(arm), *([f"costs {costs[i - 1]:g}"] * priced), arm.in_words())
        for i, arm in enumerate(problem.arms, start=1)
    ]
    return ("#", "arm", *(["cost"] * priced), "in words"), rows


def show_problems(problems: Iterable[tuple[str, Problem]]) -> None:
    """One line for each built-in problem."""
    print_table(
        plain_console(),
        ("problem", "variables", "arms", "what it is"),
        [
            (name, str(len(problem.graph)), str(len(problem.arms)), problem.description or "")
            for name, problem in problems
        ],
        right=("variables", "arms"),
    )


def _reward(problem: Problem) -> str:
    """The reward, and which of its values is the best: the order of a domain is easily turned."""
    domain, scaled = problem.domains[problem.reward], problem.payoff.scaled
    best, worst = domain[scaled.argmax()], domain[scaled.argmin()]
    return f"{problem.reward} (best {best}, worst {worst})"


def _prior(problem: Problem) -> tuple[str, ...]:
    """What the prior says, if anything."""
    if isinstance(problem.prior, Mapping):
        return (f"counts for {', '.join(problem.prior)}",)
    return () if problem.prior == 1.0 else (f"a prior count of {problem.prior:g} for every entry",)


_MOST_EDGES = 12  # in a sentence; --json lists them all


class _Page(Protocol):
    """Where formulas and what is said about them go."""

    def formula(self, written: str) -> None: ...

    def note(self, text: str) -> None: ...


class _Text:
    """Formulas are not broken: a terminal does that, and a file need not have it."""

    def formula(self, written: str) -> None:
        click.echo(written)

    def note(self, text: str) -> None:
        click.echo()
        print_wrapped(plain_console(), text)


class _Latex:
    """A display for each formula; what is said about them is a comment."""

    def formula(self, written: str) -> None:
        click.echo(rf"\[ {written} \]")

    def note(self, text: str) -> None:
        click.echo(f"% {text}")


def show_formulas(problem: Problem, latex: bool, everything: bool) -> None:
    """Each arm's reward in factors, then what other arms' data tell of it."""
    page = _Latex() if latex else _Text()
    if latex:
        page.note(_needs(problem))
    of_arms = (found.latex() if latex else str(found) for found in iter_formulas(problem))
    _show(page, of_arms, everything, len(problem.arms))
    page.note(_legend(problem))
    if problem.edge_priors:
        page.note(_doubts(problem))
    where = ", in the graph as drawn" if problem.possible != problem.graph else ""
    where += ", within each context value" if problem.context else ""
    page.note(f"From the data of other arms{where}")
    _show(page, _from_other_arms(problem, latex), everything)


def _show(page: _Page, formulas: Iterator[str], everything: bool, total: int = 0) -> None:
    """All formulas, or as many as people read; without a total it is not known how many follow."""
    for written in formulas if everything else islice(formulas, MOST_ROWS):
        page.formula(written)
    if not everything and next(formulas, None) is not None:
        rest = f"{total - MOST_ROWS:,} more" if total else "more"
        page.note(f"… and {rest}; --all prints them all")


def _from_other_arms(problem: Problem, latex: bool) -> Iterator[str]:
    """For each intervention set how its reward can be estimated from other sets' experiments."""
    for found in iter_estimators(problem):
        direct, *others = (way.latex() if latex else str(way) for way in found)
        alone = r" \quad\text{(only from its own data)}" if latex else ": only from its own data"
        yield from (f"{direct} = {other}" for other in others) if others else (direct + alone,)


def _legend(problem: Problem) -> str:
    example = notation_of(problem).text.event((*problem.manipulable, problem.reward)[0])
    return f"A small letter is any value of its variable: {example}."


def _needs(problem: Problem) -> str:
    notation = notation_of(problem)
    plain = all(map(str.isascii, (*notation.variables, *notation.labels)))
    other = "" if plain else "; letters beyond ASCII need XeLaTeX or LuaLaTeX, and a font with them"
    return rf"needs \usepackage{{amsmath,amssymb}}{other}"


def _doubts(problem: Problem) -> str:
    """Which doubtful edges the formulas take for granted."""
    edges = list(problem.edge_priors)
    rest = f" and {len(edges) - _MOST_EDGES} more" if len(edges) > _MOST_EDGES else ""
    return (
        "So far as if every doubtful edge were there; where one is not, formulas may be simpler. "
        f"Doubtful: {', '.join(edges[:_MOST_EDGES])}{rest}"
    )


GROWN = 3.0  # times the odds that an edge had before


def used(belief: Belief) -> int:
    """How many records taught something about the reward."""
    return belief.times_learned()[belief.problem.reward]


def favoured(belief: Belief) -> list[str]:
    """The doubtful edges that are now likely, and whose odds have grown threefold or more.

    The one that has grown most comes first. Two that look alike share one probability, so that a
    half each would be too much to ask for.
    """
    priors, chances = belief.problem.edge_priors, belief.edges()
    return [
        x
        for x in _by_change(belief)
        if chances[x] > LIKELY and _factor(priors[x], chances[x]) >= GROWN
    ]


def show_evidence(belief: Belief, evidence: Evidence, columns: Container[str]) -> None:
    """The alarm, the edges that the graph lacks, the doubtful ones, and what was left out."""
    console = plain_console()
    if not used(belief):
        console.print(_why_none(belief, evidence.records, columns), style="bold")
    likely, chances = favoured(belief), belief.edges()
    if likely:
        each = ", ".join(
            f"{x} ({belief.problem.edge_priors[x]:.2f} before, {chances[x]:.2f} now)"
            for x in likely
        )
        console.print(
            f"The records favour {count(len(likely), 'doubtful edge')}: {each}.", style="bold"
        )
    if evidence.scored.any() or used(belief):
        console.print(str(evidence), style="bold" if evidence.alarms else None)
        _show_alternatives(console, evidence)
    if belief.problem.edge_priors:
        _show_doubtful(console, belief)
    console.print(f"\n{count(evidence.records, 'record')}", style="bold")
    if not belief.unused and evidence.records:
        console.print("  used whole")
    for name, reasons in belief.unused.items():
        for reason, times in reasons.items():
            console.print(f"  {name} was left out of {count(times, 'record')}: {reason}")


def _why_none(belief: Belief, records: int, columns: Container[str]) -> str:
    if not records:
        return "There are no records: the table has no rows."
    lacking = filter(None, belief.lacking().get(belief.problem.reward, {}))
    why = [f"{x} was not seen" if x in columns else f"the table has no column {x}" for x in lacking]
    reasons = ", ".join(why) or "no arm needs what they tell"
    return (
        f"None of {count(records, 'record')} could be used for {belief.problem.reward}: {reasons}."
    )


def _show_alternatives(console: Console, evidence: Evidence) -> None:
    rows, silent = evidence.rows(), int((evidence.scored == 0).sum())
    if rows:
        console.print("\nEdges that the graph lacks", style="bold")
        print_table(
            console,
            ("edge", "it would mean that", "Bayes factor", "the records speak", "judged by"),
            rows,
            right=("Bayes factor", "judged by"),
        )
    if silent:
        console.print(f"  {count(silent, 'edge')} that no record tells of left out; --json has all")


def _show_doubtful(console: Console, belief: Belief) -> None:
    console.print("\nDoubtful edges", style="bold")
    priors, chances = belief.problem.edge_priors, belief.edges()
    silent = belief.undecidable_edges
    words = {x: in_words(_factor(priors[x], chances[x])) for x in chances}
    words |= dict.fromkeys(silent, "nothing: no arm needs it")
    print_table(
        console,
        ("edge", "before", "now", "the records speak"),
        [(x, f"{priors[x]:.2f}", f"{chances[x]:.2f}", words[x]) for x in _by_change(belief)],
        right=("before", "now"),
    )


def _by_change(belief: Belief) -> list[str]:
    priors, chances = belief.problem.edge_priors, belief.edges()
    return sorted(chances, key=lambda x: -_factor(priors[x], chances[x]))


def _factor(before: float, now: float) -> float:
    """By what the odds have grown."""
    return float("inf") if now >= 1 else now * (1 - before) / ((1 - now) * before)
