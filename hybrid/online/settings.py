"""What a scheduler is told when it is made, checked."""

from __future__ import annotations

from dataclasses import dataclass

from gangplan.instances.arrays import require_number

USUAL, STOPPING = 0.0, 0.5
"""The exponent of GPUs in the order of jobs where none is given, without and with stops, and no rollout says better."""

DEAR = 2.0
"""Times its price that a stop has to be worth: who was stopped once is often stopped again."""


@dataclass(frozen=True, slots=True)
class Settings:
    """See `Scheduler`."""

    together: bool
    reserve: bool
    order: float
    ahead: bool
    price: float | None

    def __post_init__(self) -> None:
        require_number(self.order, "order")
        require_number(self.price, "price", optional=True)
