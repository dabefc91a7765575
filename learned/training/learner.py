"""What the loop trains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from .checkpoint import Tensors


class Learner(Protocol):
    """Something that gets better by updates, and whose whole state can be written down.

    The state holds whatever the next update depends on: parameters, the optimizer's state, and the random generators
    (`gangplan.learned.training.state` packs them). A learner that was loaded goes on exactly as the one that was saved.
    The tensors of the policy itself have names that begin with ``policy.``.
    """

    def update(self, step: int) -> dict[str, float]:
        """Make update number `step`, from 1 on, and return the figures to log."""

    def validate(self) -> dict[str, float]:
        """Return figures on the validation seeds; ``score`` is among them, and smaller is better."""

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return tensors by name, and everything else as what JSON can hold."""

    def load(self, tensors: Tensors, plain: Mapping[str, Any]) -> None:
        """Go back to what `state` returned."""
