"""Commands for the web: serve a store, and manage its access tokens."""

from __future__ import annotations

import logging
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowise._core.document import Table
from dowise.cli.arguments import quote_word
from dowise.cli.console import print_blocks, print_json, progress_bars
from dowise.cli.options import (
    command,
    file_option,
    flag_option,
    integer_option,
    json_option,
    policy_module_option,
)
from dowise.errors import DowiseError, NotFoundError, import_extra

if TYPE_CHECKING:
    from dowise.experiment.storage import Storage
    from dowise_web.server import Server
    from dowise_web.tokens import CreatedToken


_CLOSE_TIMEOUT = 2.0  # seconds to close the store after the last request


@command()
@click.argument("store")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on; by default only this machine can reach it.",
)
@integer_option(
    "--port", "P", "Port; 0 takes any free one.", minimum=0, maximum=65_535, default=8000
)
@click.option(
    "--url",
    metavar="URL",
    envvar="DOWISE_URL",
    show_envvar=True,
    help="Public URL, if the server is behind a reverse proxy.",
)
@file_option("--certificate", "Certificate chain (PEM), for TLS without a proxy.")
@file_option("--key", "Private key of the certificate.")
@flag_option("--plain-http", "Allow tokens to cross the network unencrypted.")
@flag_option("--create", "Create the store if it does not exist.")
@flag_option("--open", "Open the page in a browser on this machine.", "open_browser")
@flag_option("--log", "Log each request to stderr.")
@policy_module_option
@json_option
def serve(
    store: str, create: bool, open_browser: bool, log: bool, as_json: bool, **settings: Any
) -> None:
    """Serve the experiments of STORE in the browser and as an HTTP API.

    Prints a link that logs in a browser as an admin, once. Create tokens for others with
    `dowise token`. Everything is compiled and read before the port opens; Ctrl-C stops the server.

    Examples:
      dowise serve ward.db
      dowise serve ward.db --port 8080 --open
      dowise serve ward.db --url https://ward.example.org
      dowise serve ward.db --host ward.local --certificate ward.pem --key ward.key
    """
    import_extra("uvicorn", "web", "serving an experiment")
    import_extra("fastapi", "web", "serving an experiment")
    from dowise.cli.signals import set_stop_timeout
    from dowise_web.server import SHUTDOWN_TIMEOUT, Server
    from dowise_web.settings import Settings

    if store.lower().startswith(("http://", "https://")):
        raise DowiseError(f"{store} is already served: open it in a browser", code="invalid-store")
    logging.basicConfig(
        level=logging.INFO if log else logging.WARNING, format="%(asctime)s %(message)s"
    )
    with progress_bars(" experiments") as show:
        server = Server(store, Settings(**settings), create, partial(show, "reading"))
    link = server.link()
    if as_json:
        print_json({"url": server.settings.address, "link": link})
    else:
        _print_server(server, store, link)
    if open_browser:
        _open_browser(link)
    set_stop_timeout(SHUTDOWN_TIMEOUT + _CLOSE_TIMEOUT)
    server.run()


def _print_server(server: Server, store: str, link: str) -> None:
    click.secho(f"{store} is served at {server.settings.address}", bold=True)
    click.echo("  Open this link within 15 minutes; it works once, and logs you in as an admin:")
    click.echo(f"  {link}")
    click.echo(
        f"  For other users and programs:  dowise token {quote_word(store)} --role ask --name WHO"
    )
    click.echo("  Ctrl-C stops the server.")


def _open_browser(link: str) -> None:
    """Pass the link to a browser in a file, because other users can see arguments of programs.

    The file is deleted with the server; the link has been used by then.
    """
    import atexit
    import tempfile
    import webbrowser
    from html import escape

    with tempfile.NamedTemporaryFile("w", suffix=".html", delete=False) as page:
        page.write(f'<meta http-equiv="refresh" content="0; url={escape(link)}">')
    atexit.register(Path(page.name).unlink, missing_ok=True)
    webbrowser.open(Path(page.name).as_uri())


_COLUMNS = ("id", "kind", "role", "name", "created (UTC)", "expires (UTC)", "state")
_DEFAULT_URL = "http://127.0.0.1:8000"  # of `dowise serve`
_PERMISSIONS = {
    "read": "may read",
    "tell": "may read, tell, amend and withdraw",
    "ask": "may read, tell, amend, withdraw and ask",
    "admin": "may do everything",
}


@command()
@click.argument("store")
@click.option(
    "--role", metavar="ROLE", help="Create a token with this role: read, tell, ask or admin."
)
@click.option(
    "--name",
    metavar="WHO",
    show_default="the OS user",
    help="Name of its owner; the journal records actions under this name.",
)
@integer_option(
    "--days",
    "N",
    "Number of days the token is valid.",
    maximum=36_500,
    show_default="until revoked",
)
@flag_option("--link", "Create a link instead, which logs in a browser once, within minutes.")
@click.option("--revoke", metavar="ID", help="Revoke a token and its sessions.")
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
    """Create, list and revoke tokens for the HTTP API of STORE.

    --role creates a token and prints its secret once; STORE keeps only a hash of it. Without --role
    tokens are listed. Each role includes those before it: read (view everything), tell (tell, amend
    and withdraw), ask (ask for decisions), admin (everything else).

    Examples:
      dowise token ward.db --role ask --name ward-7
      dowise token ward.db --role read --name "Dr. Zoë" --days 30
      dowise token ward.db --role admin --link
      dowise token ward.db
      dowise token ward.db --revoke 2
    """
    from dowise.experiment.storage import open_storage

    _check_options(role, revoke, {"--name": name, "--days": days, "--link": link or None})
    if re.match("(?i)https?:", store):
        raise DowiseError(
            "tokens cannot be created over HTTP by this command: use the page People in the "
            "browser as an admin, or pass the store itself, such as ward.db, on its machine",
            code="invalid-store",
        )
    storage = open_storage(store)
    try:
        if role is not None:
            _create_token(storage, role, name, days, link, as_json)
        elif revoke is not None:
            _revoke_token(storage, revoke, as_json)
        else:
            _list_tokens(storage, as_json)
    finally:
        storage.close()


def _check_options(role: str | None, revoke: str | None, new_token_options: dict[str, Any]) -> None:
    used = [option for option, value in new_token_options.items() if value is not None]
    if revoke is not None and (role is not None or used):
        first = "--role" if role is not None else used[0]
        raise DowiseError(
            f"--revoke cannot be combined with {first}: leave out one of them",
            code="conflicting-options",
        )
    if role is None and used:
        raise DowiseError(
            f"{used[0]} is for a new token: add --role (read, tell, ask or admin)",
            code="missing-value",
        )
    if {"--days", "--link"} <= {*used}:
        raise DowiseError(
            "--days cannot be combined with --link, which is valid for minutes",
            code="conflicting-options",
        )


def _create_token(
    storage: Storage, role: str, name: str | None, days: int | None, link: bool, as_json: bool
) -> None:
    from dowise_web.tokens import create_link, create_token, token_to_json

    created = create_link(storage, role, name) if link else create_token(storage, role, name, days)
    if as_json:
        print_json({"secret": created.secret, **token_to_json(created.token)})
    elif link:
        _show_link(storage, created)
    else:
        _show_token(storage, created)


def _show_token(storage: Storage, created: CreatedToken) -> None:
    """Print the secret on a separate line, then what to do with it."""
    token = created.token
    until = "revoked" if token.ends_at is None else f"{_format_time(token.ends_at)} UTC"
    click.echo(created.secret)
    click.echo(
        f"\nThis is token {token.id} of {token.name}, who {_PERMISSIONS[token.role]}. "
        "It is shown once.\n"
        "  for commands and programs  put it into DOWISE_TOKEN\n"
        "  for a browser              type it into the login page of `dowise serve`\n"
        f"  valid until                {until}\n"
        f"  to revoke it               {_command_line(storage, '--revoke', token.id)}"
    )


def _show_link(storage: Storage, created: CreatedToken) -> None:
    from dowise_web.tokens import LINK_MINUTES

    token = created.token
    click.echo(f"{_DEFAULT_URL}/enter#{created.secret}")
    click.echo(
        f"\nThis is link {token.id}, for {token.name}, who {_PERMISSIONS[token.role]}. "
        f"It works once, within {LINK_MINUTES} minutes.\n"
        "  to use it     open it in a browser; if `dowise serve` has another address, put\n"
        "                that before /enter\n"
        f"  to revoke it  {_command_line(storage, '--revoke', token.id)}"
    )


def _list_tokens(storage: Storage, as_json: bool) -> None:
    """List tokens: valid ones first, then the newest."""
    from dowise_web.tokens import list_tokens

    tokens = list_tokens(storage)
    if as_json:
        print_json({"tokens": tokens})
        return
    if not tokens:
        click.echo(f"{storage} has no tokens. To create one:")
        click.echo(f"  {_command_line(storage, '--role', 'ask')}")
        return
    rows = tuple(
        (
            str(token["id"]),
            token["kind"],
            token["role"],
            token["name"],
            _format_time(token["made_at"]),
            "" if token["ends_at"] is None else _format_time(token["ends_at"]),
            token["state"],
        )
        for token in sorted(tokens, key=lambda token: (token["state"] != "valid", -token["id"]))
    )
    print_blocks(Table(_COLUMNS, rows, right=("id",)))


def _revoke_token(storage: Storage, text: str, as_json: bool) -> None:
    from dowise_web.tokens import revoke

    if not (text.isascii() and text.isdigit()):  # not shown: it may be a secret
        raise DowiseError(
            "--revoke takes the number of a token, not its secret: "
            f"{_command_line(storage)} lists them",
            code="invalid-number",
        )
    number = int(text[:20])
    if not revoke(storage, number):
        raise NotFoundError(
            f"{storage} has no token {text:.20}: {_command_line(storage)} lists them",
            code="unknown-token",
        )
    if as_json:
        print_json({"revoked": number})
    else:
        click.echo(f"Token {number} and its sessions are revoked.")


def _command_line(storage: Storage, *arguments: object) -> str:
    """Return this command as it would be typed; the name of the store shows no password."""
    return " ".join(quote_word(str(word)) for word in ("dowise", "token", storage, *arguments))


def _format_time(text: str) -> str:
    """Format a time without seconds."""
    return text[:16].replace("T", " ")
