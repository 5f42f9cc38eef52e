"""Where the variables of a problem and their labels stand: what arrays have instead of names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError, suggestion
from dowise.frozen import Frozen
from dowise.graph import CausalGraph
from dowise.problem.roles import known_variable
from dowise.problem.values import MISSING, as_mapping, find_label, label_of

__all__ = ["Context", "Positions"]

_MOST_LABELS = 1024  # contexts whose labels are kept

Context = Mapping[str, object] | None


class Positions(Frozen):
    """Variables stand in the order of names, labels in that of their domain."""

    graph: CausalGraph
    """The graph of what is recorded."""
    domains: Mapping[str, tuple[str, ...]]
    """The labels of what is recorded."""
    reward: str
    context: tuple[str, ...]
    hidden: tuple[str, ...]

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Where each variable stands among all, in the order of names."""
        return {name: v for v, name in enumerate(self.graph.variables)}

    @cached_property
    def reward_position(self) -> int:
        """Where the reward stands among all variables."""
        return self.positions[self.reward]

    @cached_property
    def context_positions(self) -> NDArray[np.int64]:
        """Where the context variables stand among all."""
        return np.array([self.positions[name] for name in self.context], dtype=np.int64)

    @cached_property
    def label_codes(self) -> dict[str, dict[str | int, int]]:
        """For each variable the positions of its labels, and of the ints that they are texts of."""
        codes: dict[str, dict[str | int, int]] = {}
        for name, domain in self.domains.items():
            by_text: dict[str | int, int] = {label: i for i, label in enumerate(domain)}
            numbers: dict[str | int, int] = {
                i: by_text[str(i)] for i in range(len(domain)) if str(i) in by_text
            }
            codes[name] = by_text | numbers
        return codes

    def find_code(self, name: str, text: str) -> int | None:
        """The position of the label that a text stands for, or None where there is none."""
        code = self.label_codes[name].get(text)
        if code is not None:
            return code
        label = find_label(text, self.domains[name])
        return None if label is None else self.label_codes[name][label]

    def code(self, name: str, value: object) -> int:
        """The position of a value in the variable's domain, or MISSING (−1) where it is missing."""
        known = self.label_codes.get(name) or self.label_codes[self._known(name, "variable")]
        if (type(value) is str or type(value) is int) and value in known:
            return known[value]
        label = label_of(name, value, self.domains[name])
        return MISSING if label is None else known[label]

    def context_codes(self, context: Context) -> tuple[int, ...]:
        """The positions of the context's values, in the order of names; all must be there."""
        given = as_mapping(context, "the context")
        if len(given) != len(self.context):
            self._check_names(given)
        codes = tuple([self.code(name, given.get(name)) for name in self.context])
        if MISSING in codes:
            self._check_names(given)
            raise DowiseError(
                f"the context has no value for {self.context[codes.index(MISSING)]}: give all of "
                f"{', '.join(self.context)}"
            )
        return codes

    def _check_names(self, context: Mapping[str, object]) -> None:
        for name in context:
            if name not in self.context:
                raise DowiseError(
                    f"{name!r} is not a context variable{suggestion(str(name), self.context)}"
                )

    def context_labels(self, codes: Iterable[int]) -> dict[str, str]:
        """The context with these positions, the way back from `context_codes`."""
        found = self._labels.get(key := tuple(codes))
        if found is None:
            if len(self._labels) >= _MOST_LABELS:
                self._labels.clear()
            pairs = zip(self.context, key, strict=True)
            found = self._labels[key] = {name: self.domains[name][code] for name, code in pairs}
        return found.copy()

    @cached_property
    def _labels(self) -> dict[tuple[int, ...], dict[str, str]]:
        """The labels of contexts that were asked for: a decision has a copy of them."""
        return {}

    def _known(self, name: str, role: str) -> str:
        return known_variable(self.graph, name, role, self.hidden)
