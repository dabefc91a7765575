"""The best of several arguments."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from ..errors import InstanceError
from ..kinds import PROBLEMS
from .document import Certificate


@dataclass(frozen=True, slots=True)
class Best(Certificate):
    """Each of some certificates holds, so the greatest of their bounds does.

    Attributes:
        parts: certificates of the same problem.
    """

    argument: ClassVar[str] = "best"
    objectives: ClassVar[tuple[str, ...]] = tuple(PROBLEMS)

    parts: tuple[Certificate, ...]

    def bound(self, problem: Any) -> Fraction | float:
        """Return the greatest of the bounds of the parts."""
        if not self.parts:
            raise InstanceError("parts", "names no certificate")
        from . import check

        return max(check(problem, part) for part in self.parts)
