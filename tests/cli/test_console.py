"""Documents and progress on terminals, narrow ones included, and in logs."""

import io

import pytest
from rich.console import Console

from dowise._core.document import BulletList, Heading, Paragraph, Table
from dowise.cli import console as console_module
from dowise.cli.console import print_blocks, print_table, print_wrapped

COLUMNS = ("arm", "mean", "P(best)")
ROWS = (("do(Pain relief=nerve block)", "0.5", "0.25"), ("do()", "0.125", "0.75"))


@pytest.fixture
def rendered():
    def render(width, show, *arguments, **options):
        console = Console(width=width, highlight=False, markup=False)
        with console.capture() as captured:
            show(console, *arguments, **options)
        return captured.get()

    return render


def test_a_table_that_fits_has_a_line_per_row_and_no_trailing_spaces(rendered):
    assert rendered(60, print_table, Table(COLUMNS, ROWS, right=("mean",))) == (
        "  arm                           mean  P(best)\n"
        "  do(Pain relief=nerve block)    0.5  0.25\n"
        "  do()                         0.125  0.75\n"
    )


def test_a_wide_first_cell_gets_a_line_above_the_others(rendered):
    table = Table(COLUMNS, ROWS, right=COLUMNS[1:])
    assert rendered(30, print_table, table) == (
        "     mean  P(best)\n"
        "  do(Pain relief=nerve block)\n"
        "      0.5     0.25\n"
        "  do()\n"
        "    0.125     0.75\n"
    )
    folded = rendered(16, print_table, table)
    assert all(len(line) <= 16 and line == line.rstrip() for line in folded.splitlines())
    squeezed = "".join(folded.split())
    assert all(part in squeezed for part in ("relief", "0.75"))


def test_another_wide_cell_gets_a_line_below_the_others(rendered):
    rows = (("9", "do(Dose=low)", "set the dose to low"), ("10", "do()", "nothing at all"))
    table = Table(("#", "arm", "in words"), rows, right=("#",))
    assert rendered(26, print_table, table) == (
        "     #  arm\n     9  do(Dose=low)\n  set the dose to low\n    10  do()\n  nothing at all\n"
    )


def test_long_tables_are_truncated_at_every_width(rendered):
    table = Table(COLUMNS, tuple((f"do(X={i})", "0", "0") for i in range(50)))  # 26 wide
    for width in (80, 22):
        text = rendered(width, print_table, table)
        assert "do(X=39)" in text and "do(X=40)" not in text
        assert "and 10 more" in " ".join(text.split())


def test_tables_without_column_names_wrap_their_texts(rendered):
    table = Table(("", ""), (("arms", "one two three"), ("head", "four")))
    assert rendered(18, print_table, table) == ("  arms  one two\n        three\n  head  four\n")


def test_a_wrapped_line_has_no_trailing_spaces(rendered):
    assert rendered(24, print_wrapped, "one two three four five six", indent=2) == (
        "  one two three four\n  five six\n"
    )


def test_blocks_are_separated_by_blank_lines_except_after_headings(monkeypatch, capsys):
    console = Console(width=40, highlight=False, markup=False)
    monkeypatch.setattr(console_module, "make_console", lambda: console)
    print_blocks(Heading("Title"), Paragraph("One.\nTwo."), BulletList(("item",)), Heading("Next"))
    assert capsys.readouterr().out == "Title\nOne.\nTwo.\n\n  item\n\nNext\n"


@pytest.fixture
def stderr(monkeypatch):
    stream = io.StringIO()

    def replace(is_terminal):
        console = Console(file=stream, force_terminal=is_terminal, width=80)
        monkeypatch.setattr(console_module, "make_error_console", lambda: console)
        return stream

    return replace


def test_progress_in_a_log_is_a_line_now_and_then(stderr, monkeypatch):
    stream, clock = stderr(False), iter([0, 0, 5, 30, 31, 32])
    monkeypatch.setattr(console_module, "monotonic", lambda: next(clock))
    with console_module.progress_bars() as show:
        for completed in (0, 1, 3, 4, 10):
            show("simulation", completed, 10)
    assert stream.getvalue().splitlines() == [
        "simulation: 3 of 10 jobs done, about 70 s left",
        "simulation: 10 of 10 jobs done",
    ]


def test_progress_on_a_terminal_is_a_bar(stderr):
    stream = stderr(True)
    with console_module.progress_bars() as show:
        show("task1", 0, 4)
        show("task1", 3, 4)
    assert "task1" in stream.getvalue() and "3/4" in stream.getvalue()
