"""Families of worlds that are not drawn from our prior, for robust.py.

A family is a function from the number of a world to a `Setting`: the world, and the problem that
policies decide in, whose graph may be wrong. Worlds of one number are the same for all policies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations, product
from typing import Any

import numpy as np
from _stroke import STROKE_TRIAL, stroke_replay

from dowise import CausalGraph, Environment, Problem, load_problem, make_environment


@dataclass(frozen=True)
class Setting:
    """A world, and the problem that policies decide in."""

    world: Any
    drawn: Problem


@dataclass(frozen=True)
class Family:
    """Family of worlds, and how it is raced."""

    name: str
    make: Callable[[int], Setting]
    group: str
    horizon: int
    trials: int
    about: str
    late: int = 0
    """Number of rounds until a decision's outcome is learned."""
    expected: bool = False
    """True for worlds of our own flat prior, whose regret is the expected one."""
    is_right: bool = True
    """True if the graph is drawn as it is in the world."""
    policies: tuple[str, ...] = ("best", "ids", "ts", "bernoulli-ts", "arm-ids")
    reference: str | None = None
    """Family of the same worlds whose baselines are the reference, if not this one."""


# -- building tables ------------------------------------------------------------------------------


def logistic(x):
    """Return 1 / (1 + e^−x)."""
    return 1 / (1 + np.exp(-np.asarray(x, dtype=float)))


def log_odds(p):
    """Return log p / (1 − p)."""
    return np.log(p / (1 - p))


def effects(rng, sizes, spreads, joint=0.0):
    """Return log-odds by parents: normal main effects, and effects of each combination."""
    total = np.zeros(sizes)
    for axis, (size, spread) in enumerate(zip(sizes, spreads, strict=True)):
        shape = [1] * len(sizes)
        shape[axis] = size
        total = total + rng.normal(0, spread, size).reshape(shape)
    return total + rng.normal(0, joint, sizes) if joint else total


def binary(p):
    """Return a table with P(1) = p."""
    p = np.asarray(p, dtype=float)
    return np.stack([1 - p, p], axis=-1)


def ordinal(position, cuts):
    """Return a table of ordered levels, by a logistic model with these cuts."""
    below = [logistic(cut - position) for cut in np.sort(cuts)]
    ends = [np.zeros_like(position), *below, np.ones_like(position)]
    return np.diff(np.stack(ends, axis=-1), axis=-1)


def uniform(size):
    """Return a table without parents in which all values are as likely."""
    return np.full(size, 1 / size)


class Tables(dict):
    """CPTs of a graph; `put` takes a table whose axes are named in any order."""

    def __init__(self, graph: CausalGraph) -> None:
        super().__init__()
        self.graph = graph

    def put(self, variable, table, parents):
        """Store a table whose first axes belong to `parents`, a text such as "A B"."""
        names = parents.split()
        order = [names.index(name) for name in self.graph.parents(variable)]
        self[variable] = np.transpose(table, [*order, len(names)])


# -- rare events, clinics, shops: worlds of moderate effects --------------------------------------


@cache
def events_problem(events, treatments, doses, contexts):
    """A good outcome unless one of several events or a death happens."""
    names = [f"E{i}" for i in range(events)]
    edges = [f"A -> {e}; H -> {e}; C -> {e}; {e} -> D; {e} -> Ok" for e in names]
    return Problem(
        "; ".join([*edges, "C -> D; D -> Ok"]),
        "Ok",
        "C",
        [*names, "D"],
        {"A": range(treatments), "H": range(doses), "C": range(contexts)},
        name=f"events{events}",
    )


def events(number, count=3, low=0.02, high=0.3, spread=0.5):
    """Events with base rates from `low` to `high`, and moderate effects of what is set."""
    sizes = 2, 3, 4
    problem, rng = events_problem(count, *sizes), np.random.default_rng([101, count, number])
    tables, names = Tables(problem.drawn), [f"E{i}" for i in range(count)]
    tables |= {"A": uniform(2), "H": uniform(3), "C": rng.dirichlet(np.full(4, 3.0))}
    for name in names:
        base = log_odds(rng.uniform(low, high))
        shifts = effects(rng, sizes, (spread,) * 3, 0.15)
        tables.put(name, binary(logistic(base + shifts)), "A H C")
    shifts = effects(rng, (4, *(2,) * count), (0.5, *(0.8,) * count))
    death = binary(logistic(log_odds(rng.uniform(0.02, 0.1)) + shifts))
    tables.put("D", death, " ".join(["C", *names]))
    tables.put("Ok", binary(none_of(count + 1)), " ".join([*names, "D"]))
    return right(Environment(problem, tables))


def none_of(count):
    """Return P(1) = 1 where none of `count` binary parents is 1, else 0."""
    p = np.zeros((2,) * count)
    p[(0,) * count] = 1
    return p


@cache
def events0_problem():
    """The same without context or death."""
    edges = [f"A -> E{i}; H -> E{i}; E{i} -> Ok" for i in range(4)]
    events = [f"E{i}" for i in range(4)]
    domains = {"H": range(3)}
    return Problem("; ".join(edges), "Ok", (), events, domains, name="events0")


def events0(number):
    """Four events with base rates of 2 to 15 %, without context."""
    problem, rng = events0_problem(), np.random.default_rng([102, number])
    tables = Tables(problem.drawn)
    tables |= {"A": uniform(2), "H": uniform(3)}
    for i in range(4):
        base = log_odds(rng.uniform(0.02, 0.15))
        tables.put(f"E{i}", binary(logistic(base + effects(rng, (2, 3), (0.5, 0.5), 0.2))), "A H")
    tables.put("Ok", binary(none_of(4)), "E0 E1 E2 E3")
    return right(Environment(problem, tables))


CLINIC = (
    "Age -> Adh; Age -> Off; Sev -> Pain; Sev -> Off; Th -> Pain; Se -> Pain; Se -> Adh; "
    "App -> Adh; Adh -> Pain; Adh -> Off; Pain -> Off"
)


@cache
def clinic_problem(money, ages, has_mood, graph=CLINIC):
    """Twelve treatments, contexts of age and severity, days off work that cost money."""
    arms = [
        f"do(Th={therapy}, Se={sessions}, App={app})"
        for therapy in range(3)
        for sessions in range(2)
        for app in range(2)
    ]
    return Problem(
        f"{graph}; M -> Adh; M -> Off" if has_mood else graph,
        "Off",
        ["Age", "Sev"],
        ["Adh", "Pain"],
        {"Age": range(ages), "Th": range(3), "Pain": range(3), "Off": range(3)},
        dict(zip("012", money, strict=True)),
        arms,
        minimise=True,
        hidden=["M"] if has_mood else [],
        name="hidden clinic" if has_mood else "clinic",
    )


def clinic(number, direct=0.0):
    """Six contexts, a mediator of three values, skewed money.

    `direct` is the spread of log-odds by which appointments move days off directly; that arrow is
    not drawn.
    """
    rng = np.random.default_rng([103, number])
    money = [(100.0, 900.0, 6000.0), (0.0, 50.0, 400.0), (0.0, 1000.0, 3000.0)][number % 3]
    drawn = clinic_problem(money, 3, False)
    problem = clinic_problem(money, 3, False, f"{CLINIC}; App -> Off") if direct else drawn
    tables = clinic_roots(Tables(problem.drawn), rng, 3)
    adherence = rng.normal(0, 0.5) + effects(rng, (3, 2, 2), (0.3, 0.4, 0.6), 0.2)
    tables.put("Adh", binary(logistic(adherence)), "Age Se App")
    pain = effects(rng, (2, 3, 2, 2), (0.4, 0.5, 0.3, 0.4), 0.3)
    tables.put("Pain", ordinal(pain, rng.normal([-1.0, 0.6], 0.3)), "Sev Th Se Adh")
    slope = rng.choice([-1, 1]) * rng.uniform(0.7, 1.3)
    off = effects(rng, (3, 2, 2), (0.3, 0.4, 0.4), 0.1)[..., None] - 0.2
    off, cuts = off + slope * np.array([-1.0, 0.0, 1.0]), rng.normal([0.3, 1.5], 0.3)
    parents = "Age Sev Adh Pain"
    if direct:
        off = off[..., None] + direct * rng.choice([-1, 1]) * np.array([-1.0, 1.0])
        parents += " App"
    tables.put("Off", ordinal(off, cuts), parents)
    return Setting(Environment(problem, tables), drawn)


def hidden_clinic(number):
    """The same with an unrecorded cause of adherence and days off, and smaller effects."""
    rng = np.random.default_rng([104, number])
    money = [(100.0, 900.0, 6000.0), (0.0, 300.0, 2000.0), (200.0, 1000.0, 3000.0)][number % 3]
    problem = clinic_problem(money, 2, True)
    graph, sides = CausalGraph.parse(f"{CLINIC}; M -> Adh; M -> Off"), np.array([-1.0, 1.0])
    tables = clinic_roots(Tables(graph), rng, 2)
    tables["M"] = uniform(2)
    adherence = rng.normal(0, 0.3) + effects(rng, (2, 2, 2), (0.2, 0.3, 0.4), 0.1)[..., None]
    adherence = adherence + rng.uniform(0.3, 0.8) * sides
    tables.put("Adh", binary(logistic(adherence)), "Age Se App M")
    pain = effects(rng, (2, 3, 2, 2), (0.3, 0.4, 0.2, 0.3), 0.2)
    tables.put("Pain", ordinal(pain, rng.normal([-0.9, 0.6], 0.3)), "Sev Th Se Adh")
    off = effects(rng, (2, 2, 2), (0.2, 0.3, 0.3), 0.1)[..., None] - 0.2
    off = (off + rng.uniform(0.6, 1.2) * np.array([1.0, 0.0, -1.0]))[..., None]
    off = off + rng.uniform(0.3, 0.6) * sides
    tables.put("Off", ordinal(off, rng.normal([0.3, 1.5], 0.3)), "Age Sev Adh Pain M")
    return right(Environment(problem, tables, graph=graph))


def clinic_roots(tables, rng, ages):
    """Fill in the contexts and what is set, and return the tables."""
    tables |= {"Age": rng.dirichlet(np.full(ages, 5.0)), "Sev": rng.dirichlet(np.full(2, 5.0))}
    tables |= {"Th": uniform(3), "Se": uniform(2), "App": uniform(2)}
    return tables


@cache
def rare_problem():
    """Clicks, then purchases, then money; nothing without a purchase."""
    return Problem(
        "A -> Click; B -> Click; C -> Click; Click -> Buy; C -> Buy; B -> Buy; Buy -> R; A -> R",
        "R",
        "C",
        ["Click", "Buy"],
        {"A": range(3), "C": range(3), "R": range(4)},
        {"0": 0.0, "1": 10.0, "2": 30.0, "3": 90.0},
        name="rare",
    )


def rare(number):
    """Clicks of 5 to 30 %, purchases of 5 to 25 % of these."""
    problem, rng = rare_problem(), np.random.default_rng([105, number])
    tables = Tables(problem.drawn)
    tables |= {"A": uniform(3), "B": uniform(2), "C": rng.dirichlet(np.full(3, 4.0))}
    base = log_odds(rng.uniform(0.05, 0.3))
    clicks = logistic(base + effects(rng, (3, 2, 3), (0.6, 0.6, 0.4), 0.2))
    tables.put("Click", binary(clicks), "A B C")
    base = log_odds(rng.uniform(0.05, 0.25))
    buys = logistic(base + 1 + effects(rng, (3, 2), (0.4, 0.5), 0.1))
    tables.put("Buy", binary(np.stack([np.full((3, 2), 0.003), buys])), "Click C B")
    money = np.zeros((3, 2, 4))
    money[:, 0, 0] = 1
    for a in range(3):
        money[a, 1, 1:] = rng.dirichlet(np.array([6.0, 4.0, 2.0]) * (1 + 0.3 * (a - 1)))
    tables.put("R", money, "A Buy")
    return right(Environment(problem, tables))


@cache
def high_problem():
    """Five arms, two mediators, three contexts."""
    return Problem(
        "X -> M1; X -> M2; C -> M1; C -> M2; M1 -> Y; M2 -> Y; C -> Y",
        "Y",
        "C",
        ["M1", "M2"],
        {"X": range(5), "C": range(3)},
        name="high",
    )


def high(number):
    """Success of 75 to 98 %, or failure of as much, with small effects."""
    problem, rng = high_problem(), np.random.default_rng([106, number])
    tables, sign = Tables(problem.drawn), rng.choice([-1, 1])
    tables |= {"X": uniform(5), "C": rng.dirichlet(np.full(3, 4.0))}
    for mediator in ("M1", "M2"):
        shifts = sign * rng.uniform(1, 3) + effects(rng, (5, 3), (0.7, 0.3), 0.2)
        tables.put(mediator, binary(logistic(shifts)), "X C")
    first, second, context = np.ix_([0, 1], [0, 1], rng.normal(0, 0.3, 3))
    y = sign * rng.uniform(0.5, 1.5) + first + second - 1 + context
    tables.put("Y", binary(logistic(y)), "M1 M2 C")
    return right(Environment(problem, tables))


# -- nearly certain mechanisms --------------------------------------------------------------------

BOOLEAN = (
    (
        "Z -> X -> Y; W -> Y; X <-> W!; Z <-> Y!",
        "Z -> X -> Y; W -> Y; U -> X; U -> W; V -> Z; V -> Y",
    ),
    ("X -> M -> Y; W -> M; X <-> Y!; W -> X", "X -> M -> Y; W -> M; W -> X; U -> X; U -> Y"),
    ("Z -> X; X -> Y; W -> Y; Z -> W; X <-> Y!", "Z -> X; X -> Y; W -> Y; Z -> W; U -> X; U -> Y"),
)


@cache
def drawn_problem(text, reward="Y", **roles):
    """Return a problem, the same object each time."""
    options = {name: dict(value) if name == "domains" else value for name, value in roles.items()}
    return Problem(text, reward, **options)


def boolean(number):
    """Parity or a random truth table of all parents, flipped with 2 to 10 %, and hidden causes.

    Worlds in which arms hardly differ are drawn again.
    """
    rng = np.random.default_rng([107, number])
    drawn, text = BOOLEAN[number % 3]
    problem, graph = drawn_problem(drawn), CausalGraph.parse(text)
    for _ in range(100):
        tables, flip = Tables(graph), rng.uniform(0.02, 0.1)
        for name in graph.variables:
            parents = len(graph.parents(name))
            if name in ("U", "V"):
                tables[name] = binary(rng.uniform(0.3, 0.7))
            elif not parents:
                tables[name] = binary(rng.uniform(0.1, 0.9))
            elif rng.random() < 0.5:
                tables[name] = parity(parents, int(rng.integers(2)), flip)
            else:
                truth = rng.integers(2, size=(2,) * parents)
                tables[name] = binary(np.where(truth, 1 - flip, flip))
        world = Environment(problem, tables, graph=graph)
        means = np.sort(world.means())
        if means[-1] - means[-2] > 0.02 or np.ptp(means) > 0.2:
            break
    return right(world)


def parity(parents, constant, flip):
    """Return the table of constant ⊕ the parity of binary parents, flipped with a probability."""
    value = (np.indices((2,) * parents).sum(axis=0) + constant) % 2
    return binary(np.where(value, 1 - flip, flip))


def sure(number):
    """Task 3's graph with nearly certain rows: Beta(.1, .1), cut at .01 and .99."""
    problem, rng = load_problem("task3"), np.random.default_rng([108, number])
    graph = problem.drawn
    tables = {
        name: binary(rng.beta(0.1, 0.1, (2,) * len(graph.parents(name))).clip(0.01, 0.99))
        for name in graph
    }
    return right(Environment(problem, tables))


# Lee and Bareinboim, "Structural causal bandits: where to intervene?" (NeurIPS 2018): the devised
# mechanisms of their experiments. Each equation is (parents, constant): the parity of both and of
# a noise, whose probability is that of a flip. U and V are the hidden causes.
XYZW = "Z -> X -> Y; W -> Y; X <-> W!; Z <-> Y!"
SCMS = {
    "IV": (
        "Z -> X -> Y; X <-> Y!",
        {"Z": ("", 0), "X": ("U Z", 0), "Y": ("U X", 1)},
        {"U": (0.4, 0.6), "Z": (0.01, 0.99), "X": (0.01, 0.2), "Y": (0.01, 0.2)},
    ),
    "XYZW": (
        XYZW,
        {"Z": ("V", 0), "W": ("U", 0), "X": ("Z U", 1), "Y": ("V X W", 0)},
        {"U": (0.4, 0.6), "V": (0.4, 0.6), **dict.fromkeys("ZWXY", (0.01, 0.1))},
    ),
    "XYZWST": (
        f"{XYZW}; S -> W; T -> X; T -> Y",
        {
            "S": ("", 0),
            "T": ("", 0),
            "Z": ("V", 0),
            "W": ("U S", 0),
            "X": ("Z U T", 1),
            "Y": ("V X W T", 0),
        },
        {
            **dict.fromkeys("UV", (0.4, 0.6)),
            **dict.fromkeys("ST", (0.1, 0.9)),
            **dict.fromkeys("ZWXY", (0.01, 0.1)),
        },
    ),
}


def scm(name, number):
    """A devised SCM with parities; parameters are drawn as in the paper's experiments."""
    text, equations, ranges = SCMS[name]
    rng = np.random.default_rng([109, *name.encode(), number])
    chances = {v: rng.uniform(*ends) for v, ends in ranges.items()}
    edges = [(p, v) for v, (parents, _) in equations.items() for p in parents.split()]
    hidden = [v for v in ranges if v not in equations]
    graph = CausalGraph(edges, variables=[*equations, *hidden])
    tables = {v: binary(chances[v]) for v in hidden}
    for v, (parents, constant) in equations.items():
        tables[v] = parity(len(parents.split()), constant, chances[v])
    return right(Environment(drawn_problem(text), tables, graph=graph))


def markovian(number):
    """Their Markovian SCM: two parities, and Y = noise or (X1 and X2)."""
    rng = np.random.default_rng([110, number])
    chances = rng.uniform(0.1, 0.9, 5)
    problem = drawn_problem("X1 -> Y; X2 -> Y; Z1 -> X1; Z1 -> X2; Z2 -> X1; Z2 -> X2")
    both = np.array([[0.0, 0.0], [0.0, 1.0]])
    tables = {
        "Z1": binary(chances[0]),
        "Z2": binary(chances[1]),
        "X1": parity(2, 0, chances[2]),
        "X2": parity(2, 1, chances[3]),
        "Y": binary(np.where(both, 1.0, chances[4])),
    }
    return right(Environment(problem, tables))


# -- unknown parents of the reward ----------------------------------------------------------------

CANDIDATES = ["X4", "X5", "X6", "X7"]


def unknown_parents(number):
    """Eight variables, three values, rows from Dirichlet(1); two of four candidates cause Y.

    The graph of the others is random and known. Arms set two candidates, or nothing.
    """
    rng = np.random.default_rng([111, number])
    names = [f"X{i}" for i in range(1, 8)]
    edges = [(a, b) for a, b in combinations(names, 2) if rng.random() < 0.4]
    alone = set(names) - {name for edge in edges for name in edge}
    edges += [(name, "X7") if name != "X7" else ("X1", "X7") for name in sorted(alone)]
    parents = sorted(rng.choice(CANDIDATES, 2, replace=False).tolist())
    known = "; ".join(f"{a} -> {b}" for a, b in sorted(set(edges)))
    arms = [
        f"do({a}={x}, {b}={y})"
        for a, b in combinations(CANDIDATES, 2)
        for x, y in product(range(3), repeat=2)
    ]
    problem = Problem(
        "; ".join([known, *(f"{name} ?-> Y" for name in CANDIDATES)]),
        "Y",
        domains=dict.fromkeys(names, range(3)),
        arms=["do()", *arms],
        name="unknown parents",
    )
    graph = CausalGraph.parse("; ".join([known, *(f"{name} -> Y" for name in parents)]))
    tables = {
        name: rng.dirichlet(np.ones(2 if name == "Y" else 3), (3,) * len(graph.parents(name)))
        for name in graph
    }
    return right(Environment(problem, tables, graph=graph))


# -- wrong graphs ---------------------------------------------------------------------------------

TASK_2 = "C -> X1; C -> X2; X1 -> X2; Z -> X2; Z -> Y; X2 -> Y"
WITH_ARROW = f"{TASK_2}; X1 -> Y"
TURNED = WITH_ARROW.replace("X1 -> X2", "X2 -> X1")
TERNARY = "C -> X1; C -> X2; X1 -> X2; X2 -> X3; Z -> X3; Z -> Y; X3 -> Y"
FOUR = "C -> X1; C -> X2; X1 -> X2; X2 -> X3; X3 -> X4; Z -> X4; Z -> Y; X4 -> Y"


def exchanged(text, first, second):
    """Return a graph with two variables in each other's place."""
    return text.replace(first, "?").replace(second, first).replace("?", second)


THREE_VALUES = (("X1", ("0", "1", "2")), ("X2", ("0", "1", "2")))
WRONG = {  # graph of the world, graph as it is drawn, domains
    "missing": (WITH_ARROW, TASK_2, ()),
    "too many": (TASK_2, WITH_ARROW, ()),
    "turned": (WITH_ARROW, TURNED, ()),
    "swapped": (TASK_2, exchanged(TASK_2, "X1", "X2"), ()),
    "missing, 16 arms": (WITH_ARROW, TASK_2, THREE_VALUES),
    "too many, 16 arms": (TASK_2, WITH_ARROW, THREE_VALUES),
    "turned, 16 arms": (WITH_ARROW, TURNED, THREE_VALUES),
    "swapped, 16 arms": (TASK_2, exchanged(TASK_2, "X1", "X2"), THREE_VALUES),
    "missing, 64 arms": (
        f"{TERNARY}; X1 -> Y",
        TERNARY,
        (*THREE_VALUES, ("X3", ("0", "1", "2"))),
    ),
    "swapped, 64 arms": (
        TERNARY,
        exchanged(TERNARY, "X1", "X3"),
        (*THREE_VALUES, ("X3", ("0", "1", "2"))),
    ),
    "missing, 81 arms": (f"{FOUR}; X1 -> Y; X2 -> Y", FOUR, ()),
    "swapped, 81 arms": (FOUR, exchanged(FOUR, "X1", "X4"), ()),
}

ABOUT_WRONG = {
    "missing": "an arrow is not drawn",
    "too many": "an arrow too many is drawn",
    "turned": "an arrow is drawn the other way",
    "swapped": "two variables are drawn in each other's place",
}


def wrong(name, number, soft=None):
    """A world of the flat prior on one graph, and a problem with another; all arms."""
    true, drawn, domains = WRONG[name]
    roles = {"context": "C", "non_manipulable": "Z", "arms": "all", "domains": domains}
    world = make_environment(drawn_problem(true, **roles), 50_000 + number)
    options = roles if soft is None else {**roles, "soft": soft}
    return Setting(world, drawn_problem(drawn, **options))


# -- the stroke trial -----------------------------------------------------------------------------


def stroke(is_reversed, _number):
    """The stroke trial by replay; the number of the trial does not change the world."""
    replay = stroke_replay(is_reversed)
    return Setting(replay, replay.problem)


# -- all families ---------------------------------------------------------------------------------


def right(world):
    """A world whose graph is drawn as it is."""
    return Setting(world, world.problem)


def prior_world(name, number):
    """A world of one of the paper's tasks, from our own flat prior."""
    return right(make_environment(load_problem(name), 60_000 + number))


def _families():
    few, four = "moderate effects", "four of 3 to 12 %"
    narrow = partial(events, count=4, low=0.03, high=0.12, spread=0.35)
    for name, make, about in (
        ("events0", events0, "four rare events, no context"),
        ("events", events, "three events of 2 to 30 %"),
        ("events5", narrow, four),
        ("clinic", clinic, "twelve arms, six contexts, skewed money"),
        ("hidden clinic", hidden_clinic, "the same with an unrecorded cause"),
        ("rare", rare, "clicks, then purchases"),
        ("high", high, "success or failure of 75 to 98 %"),
    ):
        yield Family(name, make, few, 500, 80, about)
    sharp = "nearly certain mechanisms"
    yield Family("Boolean", boolean, sharp, 500, 80, "parity and truth tables, hidden causes")
    yield Family("sure", sure, sharp, 500, 80, "task 3 with Beta(.1, .1) rows")
    for name in SCMS:
        about = "Lee and Bareinboim's SCM, devised parities"
        yield Family(name, partial(scm, name), sharp, 1000, 40, about)
    yield Family("Markovian", markovian, sharp, 1000, 40, "Lee and Bareinboim's Markovian SCM")
    yield Family(
        "unknown parents",
        unknown_parents,
        "unknown parents of the reward",
        2000,
        16,
        "8 variables, 3 values, 55 arms",
    )
    for name in WRONG:
        arms = int(name.split(", ")[1].removesuffix(" arms")) if "," in name else 9
        horizon, trials = (600, 100) if arms == 9 else (500, 100) if arms == 16 else (1000, 30)
        about = ABOUT_WRONG[name.partition(",")[0]] + (", 9 arms" if arms == 9 else "")
        make = partial(wrong, name)
        yield Family(name, make, "wrong graphs", horizon, trials, about, is_right=False)
    yield Family(
        "clinic, missing",
        partial(clinic, direct=0.6),
        "wrong graphs",
        500,
        80,
        "appointments act on days off directly, which is not drawn",
        is_right=False,
    )
    yield Family(
        "missing, soft",
        partial(wrong, "missing", soft=0.1),
        "wrong graphs",
        600,
        100,
        "the same worlds, soft = 0.1",
        is_right=False,
        policies=("best", "ids", "ts"),
        reference="missing",
    )
    late = "outcomes ten late"
    for name in ("missing", "swapped"):
        make = partial(wrong, name)
        about = ABOUT_WRONG[name]
        yield Family(f"{name}, late", make, late, 600, 100, about, 10, is_right=False)
    yield Family("clinic, late", clinic, late, 300, 48, "the clinic above", 10)
    for is_reversed in (False, True):
        name = "stroke, reversed" if is_reversed else "stroke"
        about = "14 days of the stroke trial by replay, labels " + (
            "reversed" if is_reversed else "as written"
        )
        yield Family(name, partial(stroke, is_reversed), "stroke trial", 1200, 12, about)
    for name in ("task1", "task2", "task3", "healthcare"):
        yield Family(
            name,
            partial(prior_world, name),
            "our own prior",
            500,
            250,
            "the paper's task",
            expected=True,
            policies=("best", "commit-kg", "ids", "ts", "bernoulli-ts", "arm-ids"),
        )


FAMILIES = {family.name: family for family in _families()}


def why_absent(family):
    """Return why a family can't be raced here, or None."""
    if family.group == "stroke trial" and not (STROKE_TRIAL / "ist.csv.gz").exists():
        return f"its data are not at {STROKE_TRIAL}"
    return None
