"""Documents as text and as HTML; the terminal is tested with `dowise.cli.console`."""

from dowise._core.document import BulletList, Document, Documented, Heading, Paragraph, Table

DOCUMENT = Document(
    (
        Heading("Results & more"),
        Paragraph("Stop <now>.", tone="warning"),
        BulletList(("first", "second")),
        Table(("arm", "plays"), (("do()", "3"), ("do(X=1)", "12")), ("plays",), "Arms"),
        Table(("", ""), (("policy", "ids"),)),
    )
)


def test_documents_are_written_as_text():
    assert DOCUMENT.to_text() == (
        "Results & more\n\nStop <now>.\n\n- first\n- second\n\n"
        "Arms\narm      plays\ndo()         3\ndo(X=1)     12\n\npolicy  ids"
    )


def test_html_is_escaped():
    html = DOCUMENT.to_html()
    assert html.startswith("<h3>Results &amp; more</h3>\n")
    assert '<p class="warning">Stop &lt;now&gt;.</p>' in html
    assert "<ul><li>first</li><li>second</li></ul>" in html
    assert "<caption>Arms</caption>" in html
    assert '<td style="text-align: right">12</td>' in html and "<td>do(X=1)</td>" in html


def test_results_show_their_document():
    class Result(Documented):
        def document(self):
            return DOCUMENT

    assert str(Result()) == DOCUMENT.to_text() and Result()._repr_html_() == DOCUMENT.to_html()
