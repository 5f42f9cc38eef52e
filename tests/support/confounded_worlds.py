"""Random worlds with hidden causes, and their exact distributions by enumeration."""

from itertools import product

import numpy as np


class Confounded:
    """A hidden binary cause for each bidirected edge; all rows of all CPTs from Dirichlet(1)."""

    def __init__(self, problem, rng):
        self.problem, graph = problem, problem.graph
        self.hidden = {edge: rng.dirichlet(np.ones(2)) for edge in graph.bidirected_edges}
        self.names = graph.variables
        self.size = {name: len(problem.domains[name]) for name in self.names}
        self.causes = {
            name: [*graph.parents(name), *(e for e in graph.bidirected_edges if name in e)]
            for name in self.names
        }
        self.cpts = {
            name: rng.dirichlet(
                np.ones(self.size[name]), size=[self.size.get(c, 2) for c in self.causes[name]]
            )
            for name in self.names
        }

    def joint(self, settings):
        """P(v | do(settings)) as an array with one axis for each variable, by name."""
        table = np.zeros([self.size[name] for name in self.names])
        for codes in product(range(2), repeat=len(self.hidden)):
            hidden = dict(zip(self.hidden, codes, strict=True))
            weight = np.prod([p[hidden[e]] for e, p in self.hidden.items()]) if hidden else 1.0
            for values in np.ndindex(table.shape):
                assignment = hidden | dict(zip(self.names, values, strict=True))
                p = weight
                for name in self.names:
                    if name in settings:
                        p *= assignment[name] == settings[name]
                    else:
                        p *= self.cpts[name][tuple(assignment[c] for c in self.causes[name])][
                            assignment[name]
                        ]
                table[values] += p
        return table
