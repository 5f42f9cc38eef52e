"""The page The graph: the picture, evidence against it, variables and arms."""

import re
from html.parser import HTMLParser
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

import numpy as np
import pytest

from dowise import CausalGraph, Problem

SVG = "{http://www.w3.org/2000/svg}"
SCRIPT = "<script>alert(1)</script>"
SHOP = Problem(
    CausalGraph.parse("Season -> Price -> Sales; Season -> Sales; Shelf -> Price; Staff ?-> Sales"),
    "Sales",
    context="Season",
    non_manipulable="Staff",
    name="shop",
)


class Links(HTMLParser):
    """URLs, attributes and tags of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.urls = set(), set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.urls += [value for name, value in attrs if name in ("href", "hx-get", "hx-push-url")]


def make_records(number, seed=1):
    """Return records in which Shelf affects Sales, unlike in the graph."""
    rng = np.random.default_rng(seed)
    season, shelf, staff, price = (rng.integers(2, size=number) for _ in range(4))
    sales = (rng.random(number) < 0.15 + 0.6 * shelf).astype(int)
    columns = {"Season": season, "Shelf": shelf, "Staff": staff, "Price": price, "Sales": sales}
    return {name: column.tolist() for name, column in columns.items()}


@pytest.fixture(scope="module")
def shop(ward):
    """The server with two more experiments: one with past records, one with hostile names."""
    options = {"policy": "ids", "options": {"samples": 50}, "seed": 7}
    ward.registry.create("shop/one", SHOP, records=make_records(600), **options)
    hostile = Problem(CausalGraph([(SCRIPT, "Y\"'&"), ("n" * 200, "Y\"'&")]), "Y\"'&")
    ward.registry.create(f"odd {SCRIPT}", hostile, **options)
    return ward


@pytest.fixture(scope="module")
def reader(shop):
    return shop.browser("read")


def page_path(name):
    return f"/experiments/{quote(name)}/graph"


def page(reader, name="shop/one", status=200, more="", **query):
    response = reader.get(page_path(name) + more, params=query)
    assert response.status_code == status, response.text
    return response.text


def picture_in(text):
    (svg,) = re.findall(r'<svg [^>]*class="graph[ "].*?</svg>', text, re.DOTALL)
    return ElementTree.fromstring(svg)


# -- the picture --------------------------------------------------------------------------------


def test_every_variable_links_to_its_details(reader):
    root = picture_in(page(reader))
    links = {a.find(f"{SVG}text").text: a for a in root.iter(f"{SVG}a")}
    assert {*links} == {*SHOP.graph.variables}
    assert root.get("role") == "group"
    assert links["Staff"].get("class") == "variable role-non_manipulable"
    for name, link in links.items():
        assert link.get("href").endswith(f"graph?variable={name}#panel")
        assert name in reader.get(link.get("hx-get")).text


def test_all_links_of_the_page_work(reader):
    text = page(reader, variable="Sales")
    local = {x for x in Links(text).urls if urlsplit(x).path.startswith(page_path("shop/one"))}
    assert len(local) > 10
    for url in local:
        assert reader.get(url.partition("#")[0]).status_code == 200, url
    for anchor in {x[1:] for x in Links(text).urls if x.startswith("#")}:
        assert f'id="{anchor}"' in text


def test_the_legend_lists_the_roles_and_edges_that_occur(reader):
    legend = page(reader).partition('id="graph-legend"')[2].partition("</ul>")[0]
    words = re.findall(r"<span>([^<]*)</span>", legend)
    assert words == [
        "manipulable",
        "non-manipulable",
        "context",
        "reward",
        "doubtful",
        "suspected",
    ]


def test_the_page_obeys_the_content_security_policy(reader):
    for query in ({}, {"variable": "Sales"}, {"arm": "do(Price=1)"}):
        answer = reader.get(page_path("shop/one"), params=query)
        links = Links(answer.text)
        assert "style" not in links.attributes | links.tags
        assert not any(name.startswith("on") for name in links.attributes)
        assert "style-src 'self'" in answer.headers["content-security-policy"]


def test_hostile_names_are_escaped(reader):
    name = f"odd {SCRIPT}"
    for query in ({}, {"variable": SCRIPT}, {"arm": f'do("{SCRIPT}"=1, {"n" * 200}=0)'}):
        text = page(reader, name, **query)
        assert SCRIPT not in text and "&lt;script&gt;alert(1)&lt;/script&gt;" in text
        texts = [element.text for element in picture_in(text).iter(f"{SVG}text")]
        assert {SCRIPT, "Y\"'&", "n" * 200} == {*texts}


# -- the evidence -------------------------------------------------------------------------------


def test_alarms_are_listed_and_drawn(reader):
    text = page(reader)
    assert "The data contradict this graph." in text
    assert "Strongest: Shelf -&gt; Sales" in text
    titles = [title.text for title in picture_in(text).iter(f"{SVG}title")]
    assert "Shelf -> Sales, suspected: the graph lacks it" in titles
    assert any(title.startswith("Staff -> Sales, doubtful, there with") for title in titles)


def test_soft_edges_are_listed_and_drawn(shop):
    soft = Problem(CausalGraph.parse("Z -> X -> Y"), "Y", soft=0.1)
    shop.registry.create("soft", soft, policy="ts", options={}, seed=7)
    text = shop.browser("read").get("/experiments/soft/graph").text
    drawn = ElementTree.fromstring(re.search(r"<svg .*?</svg>", text, re.DOTALL)[0])
    titles = [title.text for title in drawn.iter(f"{SVG}title")]
    listed = re.findall(r'<th scope="row"><code>([^<]*)</code>', text)
    for edge in ("X <-> Y", "X <-> Z", "Y <-> Z", "Z -> Y"):
        assert edge.replace(">", "&gt;").replace("<", "&lt;") in listed
        (description,) = [title for title in titles if title.startswith(edge)]
        assert ", doubtful, there with probability" in description
    assert "4 more edges might exist" in text
    assert "<span>doubtful hidden cause</span>" in text


def test_uncertain_edges_are_listed_with_their_priors(reader):
    edges = page(reader).partition('id="edges"')[2].partition("</section>")[0]
    assert "<code>Staff -&gt; Sales</code>" in edges and '<td class="number">50 %</td>' in edges


def test_the_absence_of_alarms_is_stated(reader):
    text = page(reader, "ward 7")
    assert "No record can tell about any of the" in text and "contradict" not in text


def test_slow_evidence_is_computed_on_request(shop, monkeypatch):
    from dowise.experiment import view as view_module

    monkeypatch.setattr(view_module, "EVIDENCE_TIMEOUT", 0.0)
    shop.registry.create(
        "slow", SHOP, records=make_records(50, 2), policy="ids", options={"samples": 50}
    )
    reader = shop.browser("read")
    text = page(reader, "slow")
    assert "it takes a while</p>" in text and "evidence=1" in text
    requested = page(reader, "slow", evidence="1")
    assert "at level 0.05" in requested and "was not computed" not in requested


# -- variables and arms -------------------------------------------------------------------------


def parse_rows(text):
    """Return the number of records, and (mean, low, high, count) of each value, of each row."""
    rows = re.findall(r"<tr>(.*?)</tr>", text.partition("<tbody>")[2], re.DOTALL)
    return [
        (
            int(re.search(r'data-label="Records: ">([\d,]+)<', row)[1].replace(",", "")),
            [
                (float(mean), float(low), float(high), int(count))
                for mean, low, high, count in re.findall(
                    r"<strong>([\d.]+)</strong>.*?([\d.]+) to ([\d.]+), (\d+) seen", row
                )
            ],
        )
        for row in rows
        if "Records: " in row
    ]


@pytest.mark.parametrize("more", ["", "/panel"])
def test_a_variable_shows_counts_means_and_intervals(reader, more):
    text = page(reader, more=more, variable="Price")
    panel = text.partition('id="panel"')[2].partition("</section>")[0]
    assert "P(Price | Season, Shelf)" in panel
    rows = parse_rows(panel)
    records = make_records(600)
    season, shelf = (np.array(records[name]) for name in ("Season", "Shelf"))
    price = np.array(records["Price"])
    assert len(rows) == 4
    for (number, values), (c, s) in zip(rows, [(0, 0), (0, 1), (1, 0), (1, 1)], strict=True):
        matching = (season == c) & (shelf == s)
        assert number == matching.sum()
        assert [count for *_, count in values] == [(matching & (price == k)).sum() for k in (0, 1)]
        for mean, low, high, count in values:
            assert mean == pytest.approx((count + 1) / (number + 2), abs=0.006)
            assert low < mean < high


def test_the_panel_alone_equals_the_panel_of_the_page(reader):
    alone = page(reader, more="/panel", variable="Sales")
    assert "<html" not in alone and alone.lstrip().startswith('<section id="panel"')
    normalized = re.sub(r"\s+", " ", alone.strip())
    assert normalized in re.sub(r"\s+", " ", page(reader, variable="Sales"))


def test_versions_are_listed_with_their_probabilities(reader):
    panel = page(reader, more="/panel", variable="Sales")
    assert "several versions of what this variable depends on" in panel
    assert "<code>P(Sales | Price, Season)</code></span></summary>" in panel


def test_the_selected_link_is_marked(reader):
    root = picture_in(page(reader, variable="Shelf"))
    current = [a for a in root.iter(f"{SVG}a") if a.get("aria-current") == "true"]
    assert [a.find(f"{SVG}text").text for a in current] == ["Shelf"]
    text = page(reader, arm="do(Price=1)")
    (link_id,) = re.findall(r'id="(arm-\d+)"[^>]*aria-current="true"', text)
    assert f'data-shows="{link_id}"' in text


def test_an_arm_shows_its_formula(reader):
    panel = page(reader, more="/panel", arm="do( Price = 1 )")
    assert "P(Sales=1 | do(Price=1), Season=s" in panel and "Set Price to 1." in panel
    assert "The formula is for the graph with all doubtful edges." in panel


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"variable": "Pricce"}, "did you mean &#39;Price&#39;?"),
        ({"arm": "do(Season=1)"}, "Season can&#39;t be set: it is context"),
        ({"arm": "nonsense"}, "An intervention reads do(X=1, …)"),
        ({"variable": SCRIPT}, "Unknown variable"),
    ],
)
@pytest.mark.parametrize("more", ["", "/panel"])
def test_unknown_variables_and_arms_are_reported_in_the_panel(reader, more, query, message):
    text = page(reader, status=422, more=more, **query)
    assert message in text and "<script>alert" not in text


def test_some_of_many_arms_are_listed_and_any_can_be_typed(shop):
    names = [f"X{i}" for i in range(7)]
    many = Problem(CausalGraph([(name, "Y") for name in names]), "Y")
    shop.registry.create("many", many, policy="ucb")
    reader = shop.browser("read")
    text = page(reader, "many")
    assert text.count('id="arm-') == 60 and "Another of 68 more arms" in text
    last = str(many.arms[-1])
    assert f"<code>{last}</code></h2>" in page(reader, "many", arm=last)


def test_a_graph_too_large_for_a_posterior_is_drawn(shop):
    names = [f"V{i}" for i in range(30)]
    graph = CausalGraph([(name, "Y") for name in names], [], [*names, "W", "Y"])
    large = Problem(graph, "Y", non_manipulable=[*names[1:], "W"])
    shop.registry.create("large", large, policy="ucb")
    reader = shop.browser("read")
    text = page(reader, "large", variable="Y")
    assert len(list(picture_in(text).iter(f"{SVG}a"))) == 32
    assert text.count("The graph is too large") == 2
    assert "entries, and the limit is" in page(reader, "large", evidence="1")


# -- errors -------------------------------------------------------------------------------------


def test_the_page_requires_a_session(shop):
    import httpx2

    for more in ("", "/panel"):
        answer = httpx2.get(f"{shop.address}{page_path('shop/one')}{more}")
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/login?next=")


def test_an_unknown_experiment_is_an_error_page(reader):
    assert "There is no experiment" in page(reader, "nowhere", status=404)


def test_the_panel_follows_the_journal(shop):
    shop.registry.create("moving", SHOP, policy="ids", options={"samples": 50}, seed=7)
    reader, experiment = shop.browser("read"), shop.registry.experiment("moving")
    assert "based on 0 records" in page(reader, "moving", more="/panel", variable="Shelf")
    decision = experiment.ask({"Season": 1}, allowed=["do(Price=1)"])
    experiment.tell(decision.id, {"Shelf": 1, "Staff": 0, "Sales": 1})
    assert "based on 1 record" in page(reader, "moving", more="/panel", variable="Shelf")
