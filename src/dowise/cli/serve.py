"""The command that serves a store to browsers and programs."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowise.cli.arguments import WholeNumber, command, json_option, policy_module_option, quote_word
from dowise.cli.console import print_json
from dowise.errors import DowiseError, import_extra

if TYPE_CHECKING:
    from dowise.experiment.storage import Storage
    from dowise_web.server import Server
    from dowise_web.tokens import Made


_CLOSING = 2.0  # seconds to close the store, behind the last request


@command("""\
  dowise serve ward.db
  dowise serve ward.db --port 8080 --open
  dowise serve ward.db --url https://ward.example.org
  dowise serve ward.db --host ward.local --certificate ward.pem --key ward.key""")
@click.argument("store")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Where to listen; by default only this machine can reach it.",
)
@click.option(
    "--port",
    type=WholeNumber(0, 65_535),
    default=8000,
    show_default=True,
    metavar="P",
    help="The port; 0 takes any that is free.",
)
@click.option(
    "--url",
    metavar="URL",
    envvar="DOWISE_URL",
    show_envvar=True,
    help="The address that people open, where a reverse proxy stands in front.",
)
@click.option(
    "--certificate",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A certificate chain (PEM), for TLS without a proxy.",
)
@click.option("--key", type=click.Path(path_type=Path), metavar="FILE", help="Its private key.")
@click.option(
    "--plain-http", is_flag=True, help="Accept that tokens cross the network unencrypted."
)
@click.option("--create", is_flag=True, help="Make the store if it is not there.")
@click.option("--open", "open_browser", is_flag=True, help="Open the page in a browser here.")
@click.option("--log", is_flag=True, help="Write a line for each request to stderr.")
@policy_module_option
@json_option
def serve(
    store: str, create: bool, open_browser: bool, log: bool, as_json: bool, **settings: Any
) -> None:
    """Open the experiments of STORE in the browser, and as an HTTP API.

    Prints a link that opens the browser once, as an admin. Others get a token of their own with
    `dowise token`. Everything is compiled and read before the port opens; Ctrl-C ends it.
    """
    import_extra("uvicorn", "web", "serving an experiment")
    import_extra("fastapi", "web", "serving an experiment")
    from dowise.cli.console import shown_progress
    from dowise.cli.signals import set_stop_timeout
    from dowise_web.server import GRACE, Server
    from dowise_web.settings import Settings

    if store.lower().startswith(("http://", "https://")):
        raise DowiseError(f"{store} is served already: open it in a browser")
    logging.basicConfig(
        level=logging.INFO if log else logging.WARNING, format="%(asctime)s %(message)s"
    )
    with shown_progress(" experiments") as show:
        server = Server(
            store, Settings(**settings), create, lambda done, total: show("reading", done, total)
        )
    link = server.link()
    if as_json:
        print_json({"url": server.settings.address, "link": link})
    else:
        _say(server, store, link)
    if open_browser:
        _open(link)
    set_stop_timeout(GRACE + _CLOSING)
    server.run()


def _say(server: Server, store: str, link: str) -> None:
    click.secho(f"{store} is open at {server.settings.address}", bold=True)
    click.echo("  Open this link within 15 minutes; it works once, and makes you an admin:")
    click.echo(f"  {link}")
    click.echo(
        f"  For others, and for programs:  dowise token {quote_word(store)} --role ask --name WHO"
    )
    click.echo("  Ctrl-C ends it.")


def _open(link: str) -> None:
    """Show the link to a browser through a file of ours: arguments of programs are seen by all.

    The file goes when the server does; the link has done its work by then.
    """
    import atexit
    import tempfile
    import webbrowser
    from html import escape

    with tempfile.NamedTemporaryFile("w", suffix=".html", delete=False) as page:
        page.write(f'<meta http-equiv="refresh" content="0; url={escape(link)}">')
    atexit.register(Path(page.name).unlink, missing_ok=True)
    webbrowser.open(Path(page.name).as_uri())


_COLUMNS = ("id", "kind", "role", "name", "made (UTC)", "ends (UTC)", "state")
_USUAL = "http://127.0.0.1:8000"  # the address that `dowise serve` has unless another is given
_MAY = {
    "read": "may look",
    "tell": "may look, tell, amend and withdraw",
    "ask": "may look, tell, amend, withdraw and ask",
    "admin": "may do everything",
}


@command("""\
  dowise token ward.db --role ask --name ward-7
  dowise token ward.db --role read --name "Dr. Zoë" --days 30
  dowise token ward.db --role admin --link
  dowise token ward.db
  dowise token ward.db --revoke 2""")
@click.argument("store")
@click.option("--role", metavar="ROLE", help="Make a token: read, tell, ask or admin.")
@click.option(
    "--name",
    metavar="WHO",
    show_default="the system's user",
    help="Who gets it; what is done with it stands under this name in the journal.",
)
@click.option(
    "--days",
    type=WholeNumber(1, 36_500),
    metavar="N",
    show_default="until it is revoked",
    help="How long it is good.",
)
@click.option(
    "--link", is_flag=True, help="Make a link instead, which opens a browser once, within minutes."
)
@click.option("--revoke", metavar="ID", help="End a token, and the sessions that came from it.")
@json_option
def token(
    store: str,
    role: str | None,
    name: str | None,
    days: int | None,
    link: bool,
    revoke: str | None,
    as_json: bool,
) -> None:
    """Who may use STORE over HTTP: make, list and revoke tokens.

    With --role a token is made and its secret is printed, once: STORE keeps no more than a hash of
    it. Without --role tokens are listed. A role contains those before it: read is for looking, tell
    for telling, amending and withdrawing, ask for asking, admin for all the rest.
    """
    from dowise.experiment.storage import open_storage

    _check_options(role, revoke, {"--name": name, "--days": days, "--link": link or None})
    if re.match("(?i)https?:", store):
        raise DowiseError(
            "this command makes no tokens over HTTP: admins make them in the browser, on the page "
            "People; or name the store itself, such as ward.db, on the machine that has it"
        )
    storage = open_storage(store)
    try:
        if role is not None:
            _make(storage, role, name, days, link, as_json)
        elif revoke is not None:
            _revoke(storage, revoke, as_json)
        else:
            _list(storage, as_json)
    finally:
        storage.close()


def _check_options(role: str | None, revoke: str | None, others: dict[str, Any]) -> None:
    given = [option for option, value in others.items() if value is not None]
    if revoke is not None and (role is not None or given):
        first = "--role" if role is not None else given[0]
        raise DowiseError(f"--revoke takes nothing beside it: leave out {first}, or --revoke")
    if role is None and given:
        raise DowiseError(
            f"{given[0]} is for a token that is made: say --role too (read, tell, ask or admin)"
        )
    if {"--days", "--link"} <= {*given}:
        raise DowiseError("a link is good for minutes: leave out --days, or --link")


def _make(
    storage: Storage, role: str, name: str | None, days: int | None, link: bool, as_json: bool
) -> None:
    from dowise_web.tokens import make_link, make_token, page

    made = make_link(storage, role, name) if link else make_token(storage, role, name, days)
    if as_json:
        print_json({"secret": made.secret, **page(made.token)})
    elif link:
        _show_link(storage, made)
    else:
        _show_token(storage, made)


def _show_token(storage: Storage, made: Made) -> None:
    """The secret on a line of its own, then what to do with it."""
    token = made.token
    until = "it is revoked" if token.ends_at is None else f"{_when(token.ends_at)} UTC"
    click.echo(made.secret)
    click.echo(
        f"\nThis is token {token.id}, of {token.name}, who {_MAY[token.role]}. It is shown once.\n"
        "  for commands and programs  put it into DOWISE_TOKEN\n"
        "  for a browser              type it into the login page of `dowise serve`\n"
        f"  until                      {until}\n"
        f"  to revoke it               {_command(storage, '--revoke', token.id)}"
    )


def _show_link(storage: Storage, made: Made) -> None:
    from dowise_web.tokens import LINK_MINUTES

    token = made.token
    click.echo(f"{_USUAL}/enter#{made.secret}")
    click.echo(
        f"\nThis is link {token.id}, for {token.name}, who {_MAY[token.role]}. It works once, "
        f"within {LINK_MINUTES} minutes.\n"
        "  to use it     open it in a browser; if `dowise serve` has another address, put\n"
        "                that before /enter\n"
        f"  to revoke it  {_command(storage, '--revoke', token.id)}"
    )


def _list(storage: Storage, as_json: bool) -> None:
    """What is good comes first, then what is new."""
    from dowise.cli.console import plain_console, print_table
    from dowise_web.tokens import pages

    found = pages(storage)
    if as_json:
        print_json({"tokens": found})
        return
    if not found:
        click.echo(f"{storage} has no tokens. To make one:")
        click.echo(f"  {_command(storage, '--role', 'ask')}")
        return
    rows = [
        (
            str(one["id"]),
            one["kind"],
            one["role"],
            one["name"],
            _when(one["made_at"]),
            "" if one["ends_at"] is None else _when(one["ends_at"]),
            one["state"],
        )
        for one in sorted(found, key=lambda one: (one["state"] != "valid", -one["id"]))
    ]
    print_table(plain_console(), _COLUMNS, rows, right=("id",), alone="name")


def _revoke(storage: Storage, text: str, as_json: bool) -> None:
    from dowise_web.tokens import revoke

    if not (text.isascii() and text.isdigit()):  # and is not shown: it may be a secret
        raise DowiseError(
            f"--revoke takes the number of a token, not its secret: {_command(storage)} lists them"
        )
    number = int(text[:20])  # larger than any that there is
    if not revoke(storage, number):
        raise DowiseError(f"{storage} has no token {text:.20}: {_command(storage)} lists them")
    if as_json:
        print_json({"revoked": number})
    else:
        click.echo(f"{number} is revoked, and so are the sessions that came from it.")


def _command(storage: Storage, *rest: object) -> str:
    """The same command, as one would type it; the store's name shows no password."""
    return " ".join(quote_word(str(word)) for word in ("dowise", "token", storage, *rest))


def _when(text: str) -> str:
    """A time without its seconds."""
    return text[:16].replace("T", " ")
