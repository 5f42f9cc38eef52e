"""Small random problems, for comparisons with all interventions."""

from dowise import CausalGraph


def random_problem(rng):
    """Return a graph with hidden causes, its roles, and forbidden assignments."""
    names = [f"V{i}" for i in rng.permutation(rng.integers(3, 6))]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    directed = [pair for pair in pairs if rng.random() < 0.6]
    tied = [pair for pair in pairs if rng.random() < 0.25]
    texts = [f"{a} <-> {b}" for a, b in map(sorted, tied)]
    graph = CausalGraph(directed, tied, names, certain=texts)
    reward = names[-1]
    candidates = {name for name in names[:-1] if rng.random() < 0.25}
    context = {name for name in graph.ancestors(candidates) if reward not in graph.ancestors(name)}
    context = {name for name in context if graph.ancestors(name) <= context}
    immovable = {name for name in graph if rng.random() < 0.2} - context - {reward}
    settable = sorted({*graph} - context - immovable - {reward})
    domains = {name: [str(i) for i in range(rng.integers(2, 4))] for name in settable}
    forbidden = []
    for _ in range(rng.integers(2, 6)):
        size = min(len(settable), int(rng.choice([1, 1, 2])))
        chosen = rng.choice(settable, size, replace=False) if settable else ()
        forbidden.append({str(name): str(rng.choice(domains[name])) for name in chosen})
    roles = {"reward": reward, "context": context, "non_manipulable": immovable, "domains": domains}
    return graph, roles, [assignment for assignment in forbidden if assignment]
