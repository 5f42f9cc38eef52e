"""`python -m dowise` is the command line."""

from dowise.cli.main import main

main(prog_name="dowise")
