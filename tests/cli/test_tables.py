"""Tables for people, on a narrow terminal too."""

import pytest
from rich.console import Console

from dowise.cli.console import print_numbered, print_table, print_wrapped

COLUMNS = ("arm", "mean", "P(best)")
ROWS = [("do(Pain relief=nerve block)", "0.5", "0.25"), ("do()", "0.125", "0.75")]


@pytest.fixture
def shown():
    def show(width, draw, *arguments, **more):
        console = Console(width=width, highlight=False, markup=False)
        with console.capture() as captured:
            draw(console, *arguments, **more)
        return captured.get()

    return show


def test_a_table_that_fits_has_a_line_a_row_and_no_spaces_at_the_end(shown):
    assert shown(60, print_table, COLUMNS, ROWS, right=COLUMNS[1:2], alone="arm") == (
        "  arm                           mean  P(best)\n"
        "  do(Pain relief=nerve block)    0.5  0.25\n"
        "  do()                         0.125  0.75\n"
    )


def test_where_it_does_not_fit_the_arm_has_a_line_of_its_own(shown):
    assert shown(30, print_table, COLUMNS, ROWS, right=COLUMNS[1:], alone="arm") == (
        "     mean  P(best)\n"
        "  do(Pain relief=nerve block)\n"
        "      0.5     0.25\n"
        "  do()\n"
        "    0.125     0.75\n"
    )
    folded = shown(16, print_table, COLUMNS, ROWS, right=COLUMNS[1:], alone="arm")
    assert all(len(line) <= 16 and line == line.rstrip() for line in folded.splitlines())
    squeezed = "".join(folded.split())
    assert all(part in squeezed for part in ("relief", "0.75"))


def test_many_rows_are_cut_in_every_form(shown):
    rows = [(f"do(X={i})", "0", "0") for i in range(50)]  # 26 wide
    for width in (80, 22):
        drawn = shown(width, print_table, COLUMNS, rows, alone="arm")
        assert "do(X=39)" in drawn and "do(X=40)" not in drawn
        assert "and 10 more" in " ".join(drawn.split())


def test_rows_that_are_too_wide_are_numbered(shown):
    rows = [("9", "do(Dose=low)", "set Dose to low"), ("10", "do()", "nothing at all")]
    assert shown(22, print_numbered, rows) == (
        "   9  do(Dose=low)\n      set Dose to low\n  10  do()\n      nothing at all\n"
    )


def test_a_broken_line_has_no_spaces_at_its_end(shown):
    assert shown(24, print_wrapped, "one two three four five six", hanging=2, first="  ") == (
        "  one two three four\n  five six\n"
    )
