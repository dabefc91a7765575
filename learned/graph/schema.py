"""What the graphs of a problem are made of: kinds of nodes with their features, and relations between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gangplan.instances.arrays import require_choice

Relation = tuple[str, str, str]
"""Kind of the source, name, kind of the target: as PyG has it."""


@dataclass(frozen=True, slots=True)
class Schema:
    """Describe the graphs of a problem.

    Attributes:
        kinds: names of the features of each kind of node, by the name of the kind.
        relations: along which messages go.
        scored: the kind whose nodes are candidates, or whatever else gets scores.
        outputs: scores of each of these.
    """

    kinds: Mapping[str, tuple[str, ...]]
    relations: tuple[Relation, ...]
    scored: str
    outputs: int = 1

    def __post_init__(self) -> None:
        require_choice(self.scored, "scored", self.kinds)
        for i, (source, _, target) in enumerate(self.relations):
            require_choice(source, f"relations[{i}][0]", self.kinds)
            require_choice(target, f"relations[{i}][2]", self.kinds)

    @property
    def width(self) -> int:
        """The number of features of the kind that has most."""
        return max(map(len, self.kinds.values()))

    @property
    def ends(self) -> np.ndarray:
        """The kinds that each relation goes from and to, by number, int64 (relations, 2)."""
        names = list(self.kinds)
        return np.array([(names.index(a), names.index(b)) for a, _, b in self.relations], np.int64).reshape(-1, 2)

    def feature(self, number: int) -> str:
        """Return the name of a feature by its number, see `gangplan.learned.graph.compiled.strange`."""
        kind, at = list(self.kinds)[number // self.width], number % self.width
        return f"{kind}.{self.kinds[kind][at]}"
