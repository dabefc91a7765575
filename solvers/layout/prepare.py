"""What all methods for layouts share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from gangplan.instances.layout.problem import LayoutProblem

from .space import Space
from .split import Splitter


@dataclass
class PreparedLayout:
    """The problem, its costs, its space."""

    problem: LayoutProblem

    @cached_property
    def splitter(self) -> Splitter:
        """Splits families, and knows the costs of blocks."""
        return Splitter(self.problem)

    @cached_property
    def space(self) -> Space:
        """All combinations of degrees."""
        return Space(self.problem, self.splitter.costs)
