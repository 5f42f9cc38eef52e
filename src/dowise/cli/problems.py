"""Commands about a problem: problems, arms, formulas, bounds, and check against records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowise._core.document import Block, BulletList, Heading, Paragraph, Table, pluralize
from dowise.cli.arguments import parse_context, read_problem
from dowise.cli.console import (
    MAX_ROWS,
    print_blocks,
    print_document,
    print_json,
    progress_bar,
    spinner,
)
from dowise.cli.options import (
    Number,
    command,
    context_option,
    figure_option,
    flag_option,
    integer_option,
    json_option,
    problem_argument,
    seed_option,
)

if TYPE_CHECKING:
    from dowise.belief import Belief
    from dowise.belief.evidence import Evidence
    from dowise.problem import Problem

_MAX_EDGES = 12  # in a sentence; --json lists them all
_NOTABLE_ODDS_RATIO = 3.0  # of a doubtful edge, compared with its prior


@command()
@json_option
def problems(as_json: bool) -> None:
    """List the built-in problems.

    Examples:
      dowise problems
    """
    from dowise.problem import builtin_names

    loaded = [(name, read_problem(name)) for name in builtin_names()]
    if as_json:
        from dowise.problem.problem_file import describe_problems

        print_json(describe_problems(loaded))
        return
    rows = tuple(
        (name, str(len(problem.graph)), str(len(problem.arms)), problem.description or "")
        for name, problem in loaded
    )
    columns = ("problem", "variables", "arms", "description")
    print_blocks(Table(columns, rows, right=("variables", "arms")))


@command()
@problem_argument
@json_option
@figure_option("--picture", "the graph, with roles in colour,")
def arms(problem: str, as_json: bool, picture: Path | None) -> None:
    """List the interventions that can be optimal.

    Examples:
      dowise arms healthcare
      dowise arms my-problem.toml --picture graph.svg
      dowise arms task3 --json
    """
    loaded = read_problem(problem)
    if picture is not None:
        from dowise.plotting import draw
        from dowise.plotting import picture as make_picture

        draw(make_picture(loaded), picture)
    if as_json:
        from dowise.problem.problem_file import describe_arms

        print_json(describe_arms(loaded))
        return
    print_blocks(*_arms_blocks(loaded))
    if picture is not None:
        click.echo(f"\nThe graph is drawn in {picture}")


@command()
@problem_argument
@json_option
@flag_option("--latex", "Print LaTeX instead of text, and nothing else.")
@flag_option("--all", "Print all formulas, not only the first.", "show_all")
def formulas(problem: str, as_json: bool, latex: bool, show_all: bool) -> None:
    """Show each arm's expected reward as formulas.

    First, each arm's reward in factors. Without hidden common causes that is the truncated
    factorisation. With hidden causes a factor may contain a do(), and observations without an
    intervention do not count in it. Then, for each intervention set, the formulas by which its
    reward can be estimated from experiments on other sets (z²ID); P_{X=x} is the distribution under
    do(X=x). A lower-case letter is any value of its variable: Z=z.

    Examples:
      dowise formulas task1
      dowise formulas task2 --latex > formulas.tex
      dowise formulas insurance --all
    """
    loaded = read_problem(problem)
    if as_json:
        from dowise.identification.identify import describe_formulas

        print_json(describe_formulas(loaded))
    else:
        _print_formulas(loaded, latex, show_all)


@command()
@problem_argument
@json_option
@integer_option("--horizon", "T", "Number of rounds.", required=True)
@integer_option(
    "--samples",
    "M",
    "Draws at the prior, for p* and the entropy H(Π*).  [default: 50000, or 100 per arm]",
)
@integer_option(
    "--policy-samples", "N", "Draws in each round of the run.  [default: 1000, or 10 per arm]"
)
@click.option(
    "--delta",
    type=Number(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Probability that the intervals may fail, over the whole run.",
)
@seed_option
@flag_option("--certify", "Add a bound that holds at this N (docs/certificate.md).")
@integer_option(
    "--trials",
    "K",
    "Runs of certified-ids for --certify, each in another world.  [default: 100]",
    minimum=10,
)
def bounds(problem: str, as_json: bool, horizon: int, **options: Any) -> None:
    """Compute the paper's bounds of the regret.

    The bounds start from the prior, before anything is observed. Theorems 1 and 2 are evaluated
    along one run of Thompson Sampling in a world drawn from the prior.

    Examples:
      dowise bounds task1 --horizon 1000
      dowise bounds healthcare --horizon 500 --policy-samples 100000
      dowise bounds task1 --horizon 500 --certify
      dowise bounds my-problem.toml --horizon 1000 --json
    """
    from dowise.simulation import bounds as compute_bounds

    loaded = read_problem(problem)
    with progress_bar(off_terminal=True) as progress:
        result = compute_bounds(loaded, horizon, **options, progress=progress)
    if as_json:
        print_json(result.as_dict())
    else:
        print_document(result.document())


@command()
@problem_argument
@click.argument("data", type=click.Path(path_type=Path))
@json_option
@click.option(
    "--alpha",
    type=Number(1e-12, 1, max_open=True),
    default=0.05,
    show_default=True,
    help="Probability of a false alarm if the graph is right, over all edges and records.",
)
@flag_option("--strict", "Changes nothing: that probability is proven in any case.")
@figure_option("--picture", "the graph with the suspected edges")
def check(
    problem: str, data: Path, as_json: bool, alpha: float, strict: bool, picture: Path | None
) -> None:
    """Check past records against the graph.

    Reports evidence for edges that the graph lacks, and what the records say about doubtful edges.

    DATA is a CSV or Parquet file with a row for each record and a column for each variable. The
    column `arm` says what was set, such as do(X=1); without it nothing was. Empty cells are missing
    values.

    Examples:
      dowise check task2 records.csv
      dowise check ward.toml records.parquet --alpha 0.01
      dowise check ward.toml records.csv --json --picture ward.svg
    """
    from dowise.belief import Belief
    from dowise.belief.evidence import likely_soft_edges
    from dowise.problem.tables import prefix_errors, read_table

    belief = Belief(read_problem(problem), evidence=True)
    table = read_table(data, belief.problem)
    with prefix_errors(data):
        belief.learn_many(belief.problem.records(table))  # unused records are listed below
    evidence = belief.evidence(alpha, strict)
    if picture is not None:
        from dowise.plotting import draw
        from dowise.plotting import picture as make_picture

        suspected = (*evidence.suspected, *likely_soft_edges(belief))
        draw(make_picture(belief.problem, belief.edges(), suspected), picture)
    if as_json:
        more = {
            "edges": belief.edges(),
            "favoured": _favoured_edges(belief),
            "used": _used_records(belief),
            "unused": belief.unused,
        }
        print_json(evidence.as_dict() | more)
        return
    columns = {*table.sources.variables}
    print_blocks(*_evidence_blocks(belief, evidence, columns))
    if picture is not None:
        click.echo(f"\nThe graph is drawn in {picture}")


@command()
@problem_argument
@click.argument("data", type=click.Path(path_type=Path), required=False)
@json_option
@context_option("Show this context only; once for each context variable.")
def sensitivity(problem: str, data: Path | None, as_json: bool, context: tuple[str, ...]) -> None:
    """Show how much the prior matters, before and after data.

    For each context: the mean reward of every arm with its 90 % interval, its chance of being the
    best, and the recommended arm, under the priors flat, 0.5 and pooled, and under that of the
    problem if it states another one. Without --context all contexts are shown; if there are many,
    the most frequent ones in DATA.

    DATA is a CSV or Parquet file with past records, as for dowise check.

    Examples:
      dowise sensitivity task2
      dowise sensitivity ward.toml records.csv
      dowise sensitivity task2 -c C=1
      dowise sensitivity ward.toml records.csv --json
    """
    from dowise.experiment import sensitivity as compare_priors

    loaded = read_problem(problem)
    values = parse_context(context, loaded.context) if context else None
    with spinner("Comparing priors …"):
        result = compare_priors(loaded, data, context=values)
    if as_json:
        print_json(result.as_dict())
    else:
        print_document(result.document())


def _arms_blocks(problem: Problem) -> Iterator[Block]:
    """Yield the roles, the intervention sets, the arms, and why nothing else is an arm."""
    from dowise.problem.arms import explain_excluded_arms

    description = f": {problem.description}" if problem.description else ""
    yield Heading(f"{problem.name or 'The problem'}{description}")
    yield Table(("", ""), tuple(_role_rows(problem)))

    sizes = Counter(arm.variables for arm in problem.arms)
    kind = "minimal intervention set" if problem.arms_kind == "minimal" else "intervention set"
    is_free = not problem.forbidden and not problem.payoff.has_costs
    can_be_best = problem.arms_kind == "pomis" and is_free
    claim = " that can be optimal" if can_be_best else ""
    yield Heading(f"{pluralize(len(sizes), kind)}{claim}")
    sets = (("{" + ", ".join(sorted(names)) + "}", str(size)) for names, size in sizes.items())
    yield Table(("set", "arms"), tuple(sets), right=("arms",))

    yield Heading(pluralize(len(problem.arms), "arm"))
    costs = [f"{cost:g}" for cost in problem.payoff.costs.tolist()]
    has_costs = problem.payoff.has_costs
    rows = (
        (str(i), str(arm), *([costs[i - 1]] if has_costs else []), arm.in_words())
        for i, arm in enumerate(problem.arms, start=1)
    )
    columns = ("#", "arm", *(["cost"] if has_costs else []), "in words")
    yield Table(columns, tuple(rows), right=("#", "cost"))
    yield Paragraph(explain_excluded_arms(problem))


def _role_rows(problem: Problem) -> Iterator[tuple[str, str]]:
    from dowise.problem.problem_file import describe_costs, describe_edge_priors

    # The order of a domain is easily reversed, so the best value is named.
    domain, scaled = problem.domains[problem.reward], problem.payoff.scaled
    best, worst = domain[scaled.argmax()], domain[scaled.argmin()]
    prior: tuple[str, ...] = ()
    if isinstance(problem.prior, Mapping):
        prior = (f"counts for {', '.join(problem.prior)}",)
    elif problem.prior == "pooled":
        prior = ("pooled: rows of a table are learned together",)
    elif problem.prior != 1.0:
        prior = (f"a count of {problem.prior:g} for every entry",)
    rows: dict[str, tuple[str, ...]] = {
        "minimise" if problem.minimise else "maximise": (
            f"{problem.reward} (best {best}, worst {worst})",
        ),
        "you can set": problem.manipulable,
        "seen before the choice": problem.context,
        "can't be set": problem.non_manipulable,
        "hidden, never recorded": problem.hidden,
        "forbidden in an arm": tuple(map(str, problem.forbidden)),
        "costs": describe_costs(problem),
        "prior": prior,
    }
    for label, names in rows.items():
        if names:
            yield label, ", ".join(names)
    for i, line in enumerate(describe_edge_priors(problem)):
        yield "" if i else "doubtful edges", line


def _print_formulas(problem: Problem, latex: bool, show_all: bool) -> None:
    """Print each arm's reward in factors, then what other arms' data tell about it.

    Formulas are not wrapped; in LaTeX each is a display and the notes are comments.
    """
    from dowise.identification.identify import iter_estimators
    from dowise.problem.formulas import iter_formulas, notation_of

    def note(text: str) -> None:
        if latex:
            click.echo(f"% {text}")
        else:
            click.echo()
            print_blocks(Paragraph(text))

    def show(texts: Iterator[str], total: int = 0) -> None:
        for text in texts if show_all else islice(texts, MAX_ROWS):
            click.echo(rf"\[ {text} \]" if latex else text)
        if not show_all and next(texts, None) is not None:
            count = f"{total - MAX_ROWS:,} more" if total else "more"
            note(f"… and {count}; --all prints them all")

    write: Callable[[Any], str] = (lambda formula: formula.latex()) if latex else str
    notation = notation_of(problem)
    if latex:
        is_ascii = all(map(str.isascii, (*notation.variables, *notation.labels)))
        fonts = "; non-ASCII letters need XeLaTeX or LuaLaTeX and a font that has them"
        note(rf"needs \usepackage{{amsmath,amssymb}}{'' if is_ascii else fonts}")
    show(map(write, iter_formulas(problem)), len(problem.arms))
    example = notation.text.event((*problem.manipulable, problem.reward)[0])
    note(f"A lower-case letter is any value of its variable: {example}.")
    if problem.edge_priors:
        edges = list(problem.edge_priors)
        more = f" and {len(edges) - _MAX_EDGES} more" if len(edges) > _MAX_EDGES else ""
        note(
            "The formulas so far assume that every doubtful edge exists; without one, they may be "
            f"simpler. Doubtful: {', '.join(edges[:_MAX_EDGES])}{more}"
        )
    graph = ", in the graph as drawn" if problem.possible != problem.graph else ""
    context = ", within each context value" if problem.context else ""
    note(f"From the data of other arms{graph}{context}")

    def from_other_arms() -> Iterator[str]:
        alone = r" \quad\text{(only from its own data)}" if latex else ": only from its own data"
        for estimators in iter_estimators(problem):
            direct, *indirect = map(write, estimators)
            yield from (
                (f"{direct} = {other}" for other in indirect) if indirect else (direct + alone,)
            )

    show(from_other_arms())


def _used_records(belief: Belief) -> int:
    """Return the number of records from which something about the reward was learned."""
    return belief.times_learned()[belief.problem.reward]


def _favoured_edges(belief: Belief) -> list[str]:
    """Return doubtful edges that are now likely and whose odds have at least tripled.

    The edge whose odds grew most comes first. Two edges that cannot be told apart share one
    probability, so requiring one half for each would be too much.
    """
    from dowise.belief.evidence import LIKELY_EDGE

    chances, ratios = belief.edges(), _odds_ratios(belief)
    return [
        edge
        for edge, ratio in ratios.items()
        if chances[edge] > LIKELY_EDGE and ratio >= _NOTABLE_ODDS_RATIO
    ]


def _odds_ratios(belief: Belief) -> dict[str, float]:
    """Return the factor by which the odds of each doubtful edge have grown, largest first."""
    priors = belief.problem.edge_priors
    ratios = {
        edge: float("inf") if p >= 1 else p * (1 - priors[edge]) / ((1 - p) * priors[edge])
        for edge, p in belief.edges().items()
    }
    return dict(sorted(ratios.items(), key=lambda item: -item[1]))


def _evidence_blocks(
    belief: Belief, evidence: Evidence, columns: Container[str]
) -> Iterator[Block]:
    """Yield the alarm, missing and doubtful edges, and what was left out."""
    from dowise.belief.evidence import describe_bayes_factor
    from dowise.experiment.record_usage import describe_unused_values, why_no_record_counts

    priors, chances = belief.problem.edge_priors, belief.edges()
    used, records = _used_records(belief), evidence.records
    if not used:
        yield Paragraph(why_no_record_counts(belief, records, columns), "strong")
    if favoured := _favoured_edges(belief):
        edges = ", ".join(
            f"{edge} ({priors[edge]:.2f} before, {chances[edge]:.2f} now)" for edge in favoured
        )
        count = pluralize(len(favoured), "doubtful edge")
        yield Paragraph(f"The records favour {count}: {edges}.", "strong")
    if evidence.scored.any() or used:
        yield Paragraph(str(evidence), "strong" if evidence.alarms else "plain")
        if rows := evidence.rows():
            yield Heading("Edges that the graph lacks")
            yield Table(
                ("edge", "it would mean that", "e-value", "alarm needs", "based on"),
                tuple(rows),
                right=("e-value", "alarm needs", "based on"),
            )
        if silent := int((evidence.scored == 0).sum()):
            yield Paragraph(
                f"Not shown: {pluralize(silent, 'edge')} without evidence; --json lists them"
            )
    if priors:
        texts = {edge: describe_bayes_factor(ratio) for edge, ratio in _odds_ratios(belief).items()}
        for edge in belief.undecidable_edges:
            texts[edge] = "none: no arm needs it"
        yield Heading("Doubtful edges")
        yield Table(
            ("edge", "before", "now", "evidence for it"),
            tuple(
                (edge, f"{priors[edge]:.2f}", f"{chances[edge]:.2f}", text)
                for edge, text in texts.items()
            ),
            right=("before", "now"),
        )
    yield Heading(pluralize(records, "record"))
    unused = tuple(describe_unused_values(belief))
    if unused or records:
        yield BulletList(unused or ("used whole",))
