"""The command that serves a store to browsers and programs."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowise.cli.group import command, json_option, print_json
from dowise.cli.numbers import WholeNumber
from dowise.cli.own_policies import policy_module_option
from dowise.cli.store import as_typed
from dowise.errors import DowiseError, import_extra

if TYPE_CHECKING:
    from dowise.service.serving import Server

__all__ = ["serve"]

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
@json_option  # fmt: skip
def serve(
    store: str, create: bool, open_browser: bool, log: bool, as_json: bool, **settings: Any
) -> None:
    """Open the experiments of STORE in the browser, and as an HTTP API.

    Prints a link that opens the browser once, as an admin. Others get a token of their own with
    `dowise token`. Everything is compiled and read before the port opens; Ctrl-C ends it.
    """
    import_extra("uvicorn", "web", "serving an experiment")
    import_extra("fastapi", "web", "serving an experiment")
    from dowise.cli.progress import shown_progress
    from dowise.cli.stopping import take_time
    from dowise.service.serving import GRACE, Server
    from dowise.service.settings import Settings

    if store.lower().startswith(("http://", "https://")):
        raise DowiseError(f"{store} is served already: open it in a browser")
    logging.basicConfig(level=logging.INFO if log else logging.WARNING,
                        format="%(asctime)s %(message)s")  # fmt: skip
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
    take_time(GRACE + _CLOSING)
    server.run()


def _say(server: Server, store: str, link: str) -> None:
    click.secho(f"{store} is open at {server.settings.address}", bold=True)
    click.echo("  Open this link within 15 minutes; it works once, and makes you an admin:")
    click.echo(f"  {link}")
    click.echo(
        f"  For others, and for programs:  dowise token {as_typed(store)} --role ask --name WHO"
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
