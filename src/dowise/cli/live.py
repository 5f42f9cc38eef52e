"""Commands that act on a live experiment: begin it, ask, tell, correct, change, erase."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dowise.cli.group import command, load, print_json, problem_argument
from dowise.cli.numbers import WholeNumber
from dowise.cli.own_policies import named_policy
from dowise.cli.store import Where, decision_number, on_store, reason_option
from dowise.errors import DowiseError

__all__ = ["amend", "ask", "erase", "new", "revise", "tell", "withdraw"]

_options = [
    click.option(
        "--option", "pairs", multiple=True, metavar="NAME=VALUE",
        help="An option of the policy, such as floor=0.1; may be repeated.",
    ),
    click.option(
        "--prior", metavar="NUMBER|FILE",
        help="What is known beforehand, in records: a number, or a TOML file by variable.",
    ),
]  # fmt: skip
_values = click.argument("values", nargs=-1, metavar="[NAME=VALUE]...")
_number = click.argument("number", metavar="ID")
_played = click.option(
    "--played", metavar="ARM", help="What was done instead of the arm that was decided on."
)
_unrelated = click.option(
    "--unrelated", is_flag=True,
    help="With --played: it had nothing to do with the unit, so learn from it.",
)  # fmt: skip


@command(
    """\
  dowise new ward.db ward.toml
  dowise new ward.db ward.toml --data past.csv --policy ts
  dowise new postgresql://ann@host/trials ward.toml --name ward-7
  dowise new ward.db ward.toml --policy ids --option samples=5000 --prior 0.5""",
    policies=True,
)
@on_store(policies=True, name="Its name; by default the problem's own, or the file's.")
@problem_argument
@click.option(
    "--policy", metavar="NAME", show_default="best", callback=named_policy,
    help="Who decides; all are listed below.",
)  # fmt: skip
@_options[0]
@_options[1]
@click.option(
    "--seed", type=WholeNumber(0), metavar="S", show_default="128 bits of the system's",
    help="Of everything random; whoever knows it can foresee arms.",
)  # fmt: skip
@click.option(
    "--learn-restricted/--no-learn-restricted", default=True,
    help="Whether to learn from decisions among fewer than all arms.",
)  # fmt: skip
@click.option(
    "--data", type=click.Path(path_type=Path), metavar="FILE",
    help="Past records to begin with, CSV or Parquet, as `dowise import` takes them.",
)  # fmt: skip
@click.option("--skip-bad", is_flag=True, help="Leave bad rows of --data out.")
def new(
    where: Where, problem: str, policy: str | None, pairs: tuple[str, ...], prior: str | None,
    data: Path | None, skip_bad: bool, as_json: bool, **rest: Any,
) -> None:  # fmt: skip
    """Begin an experiment: a problem, a policy, and a journal in STORE.

    STORE is a file, which is made if it is not there, or a URL: sqlite:///ward.db,
    postgresql://user@host/base, or that of a `dowise serve`, http://127.0.0.1:8000. It holds any
    number of experiments.
    """
    from dowise.cli.records import listing_bad_rows, read
    from dowise.cli.show_live import new_page, show_new
    from dowise.experiment.advice import soft_advice
    from dowise.policies.registry import is_known

    if where.store.lower().endswith(".toml"):
        raise DowiseError(
            f"{where.store} is a problem by its name, and no store: the store comes first, "
            "dowise new ward.db ward.toml"
        )
    loaded = load(problem)
    options = policy_options(pairs, prior)
    found = None if data is None else read(data, loaded)
    named: dict[str, Any] = {} if policy is None else {"policy": policy}
    with listing_bad_rows(data, as_json):
        experiment = where.create(
            loaded, options=options, records=found, source=None if data is None else data.name,
            skip_bad=skip_bad, **named, **rest,
        )  # fmt: skip
    with experiment:
        policy = experiment.policy
        advice = soft_advice(loaded, policy) if is_known(policy) else None
        if as_json:
            print_json(new_page(experiment, found, advice))
        else:
            show_new(experiment, where, found, advice)


@command("""\
  dowise ask ward.db -c Age=1
  dowise ask ward.db -c Age=1 --forbid 'do(Dose=high)'
  dowise ask ward.db -c Age=0 --request-id 2026-03-02/17
  dowise ask ward.db -c Age=0 -n 5 --json""")
@on_store(policies=True)
@click.option(
    "-c", "--context", "context", multiple=True, metavar="NAME=VALUE",
    help="What is seen before the choice; once for each context variable.",
)  # fmt: skip
@click.option(
    "--allow", multiple=True, metavar="ARM", help="Choose among these arms only, such as do(X=1)."
)
@click.option(
    "--forbid", multiple=True, metavar="ARM",
    help="Rule out every arm that sets this, such as do(X=1).",
)  # fmt: skip
@click.option(
    "--request-id", metavar="R",
    help="The same request made again gives the same decision; name no person.",
)  # fmt: skip
@click.option(
    "-n", "--number", "count", type=WholeNumber(1), metavar="K",
    help="So many decisions for this context at once.",
)  # fmt: skip
def ask(
    where: Where, context: tuple[str, ...], allow: tuple[str, ...], forbid: tuple[str, ...],
    request_id: str | None, count: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Which arm to play next. The decision is pending until its outcome is told.

    Where what makes you allow or forbid arms also affects the outcome and is not in the context,
    learning is biased: see --no-learn-restricted of `dowise new`.
    """
    from dowise.cli.pairs import context_of
    from dowise.cli.show_live import show_asked

    with where.open() as experiment:
        seen = context_of(context, experiment.problem.context)
        asked = experiment.ask_many(
            [seen] * (count or 1), request_id, list(allow) or None, list(forbid) or None
        )
        if not as_json:
            show_asked(experiment, where, asked)
        elif count is None:
            print_json(asked[0].as_dict())
        else:
            print_json({"decisions": [one.as_dict() for one in asked]})


@command("""\
  dowise tell ward.db 1 Frailty=0
  dowise tell ward.db 1 Recovery=1
  dowise tell ward.db 2 Frailty= Recovery=0
  dowise tell ward.db 3 --played 'do(Dose=low)' Recovery=1""")
@on_store()
@_number
@_values
@_played
@_unrelated
def tell(
    where: Where, number: str, values: tuple[str, ...], played: str | None, unrelated: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """What was seen after decision ID: in pieces, at any time, in any order.

    The context and what the arm set are known. `Frailty=` says that a value is missing for good.
    Telling the same again changes nothing; `dowise amend` corrects.
    """
    from dowise.cli.pairs import values_of

    seen = values_of(values)
    _say(where, number, as_json, lambda experiment, decision: experiment.tell(
        decision, seen, played=played, unrelated=unrelated
    ), seen)  # fmt: skip


@command("""\
  dowise amend ward.db 1 Recovery=0 --reason "typing error"
  dowise amend ward.db 1 Age=0 --reason "wrong file"
  dowise amend ward.db 3 --played 'do(Dose=none)' --reason "misheard" """)
@on_store()
@_number
@_values
@_played
@_unrelated
@reason_option
def amend(
    where: Where, number: str, values: tuple[str, ...], played: str | None, unrelated: bool,
    reason: str, as_json: bool,
) -> None:  # fmt: skip
    """Correct what was told of decision ID, or its context; the journal keeps what was before."""
    from dowise.cli.pairs import values_of

    seen = values_of(values)
    _say(where, number, as_json, lambda experiment, decision: experiment.amend(
        decision, seen, reason, played=played, unrelated=unrelated
    ))  # fmt: skip


@command('  dowise withdraw ward.db 2 --reason "moved away"')
@on_store()
@_number
@reason_option
def withdraw(where: Where, number: str, reason: str, as_json: bool) -> None:
    """End a pending decision of which nothing more will be told."""
    _say(where, number, as_json, lambda experiment, decision: experiment.withdraw(decision, reason))


def _say(where: Where, number: str, as_json: bool, say: Any, told: Any = None) -> None:
    """Say something of a decision, and show where it stands then."""
    from dowise.cli.show_live import case_page, show_case

    decision = decision_number(number)
    with where.open() as experiment:
        case = say(experiment, decision)
        if as_json:
            print_json(case_page(experiment, case))
        else:
            show_case(experiment, where, case, told)


@command(
    """\
  dowise revise ward.db --problem ward2.toml --reason "age was missing in the graph"
  dowise revise ward.db --policy ts --reason "faster"
  dowise revise ward.db --option floor=0.1 --reason "to evaluate others" """,
    policies=True,
)
@on_store(policies=True)
@click.option("--problem", metavar="PROBLEM", help="The problem from here on.")
@click.option(
    "--policy", metavar="NAME", callback=named_policy, help="Who decides; all are listed below."
)
@_options[0]
@_options[1]
@click.option(
    "--learn-restricted/--no-learn-restricted", default=None,
    help="Whether to learn from decisions among fewer than all arms.",
)  # fmt: skip
@reason_option
def revise(
    where: Where, problem: str | None, policy: str | None, pairs: tuple[str, ...],
    prior: str | None, learn_restricted: bool | None, reason: str, as_json: bool,
) -> None:  # fmt: skip
    """Another problem, policy or prior from here on; past records count again under it.

    Options stay as they are unless given; with another policy they begin anew.
    """
    from dowise.cli.show_live import revised_page, show_revised

    options = policy_options(pairs, prior)
    changes = (problem, policy, options or None, learn_restricted)
    if all(change is None for change in changes):
        raise DowiseError(
            "say what changes: --problem, --policy, --option, --prior or --learn-restricted"
        )
    loaded = None if problem is None else load(problem)
    with where.open() as experiment:
        is_news = experiment.revise(
            loaded, policy, options or None, reason, learn_restricted=learn_restricted
        )
        if as_json:
            print_json(revised_page(experiment, is_news))
        else:
            show_revised(experiment, is_news)


@command("""\
  dowise erase ward.db 2 --reason "asked to be forgotten"
  dowise erase ward.db 2 --reason "asked to be forgotten" --yes""")
@on_store()
@_number
@reason_option
@click.option("--yes", is_flag=True, help="It is meant: do not ask; needed off a terminal.")
def erase(where: Where, number: str, reason: str, yes: bool, as_json: bool) -> None:
    """Blank all that was said of decision ID, for good: a person's right.

    The journal says that it was done, and still verifies. Exports and backups are yours to erase.
    """
    from dowise.cli.show_live import erased_page, show_erased
    from dowise.cli.store import confirm
    from dowise.experiment.telling import checked_reason

    decision, why = decision_number(number), checked_reason(reason, "erase")
    with where.open() as experiment:
        case = experiment.case(decision)
        if case.status != "erased" and not yes:
            confirm(f"Erase {case}? This can't be undone")
        is_news = experiment.erase(decision, why)
        if as_json:
            print_json(erased_page(experiment, decision, is_news))
        else:
            show_erased(experiment, decision, is_news)


def policy_options(pairs: tuple[str, ...], prior: str | None) -> dict[str, Any]:
    """The options of a policy, the prior among them."""
    from dowise.cli.pairs import options_of

    options = options_of(pairs)
    if prior is not None:
        if "prior" in options:
            raise DowiseError("the prior is given twice: by --prior and by --option prior=…")
        try:
            options["prior"] = float(prior)
        except ValueError:
            options["prior"] = prior
    return options
