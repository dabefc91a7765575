"""What a scheduler is told when it is made, checked."""

from __future__ import annotations

from dataclasses import dataclass

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number

from .kept import Rule


@dataclass(frozen=True, slots=True)
class Settings:
    """See `Scheduler`."""

    together: bool
    rollouts: int
    history: int
    lengths: tuple[float, ...]
    shares: tuple[float, ...]
    reserve: bool
    order: float
    seed: int
    price: float | None = None

    def __post_init__(self) -> None:
        for name in ("rollouts", "seed"):
            require_number(getattr(self, name), name, whole=True)
        require_number(self.history, "history", positive=True, whole=True)
        require_number(self.order, "order")
        require_number(self.price, "price", optional=True)
        Rule(self.lengths)
        if len(self.lengths) > 15:
            raise InstanceError("lengths", f"are {len(self.lengths)}, more than 15")
        if not self.shares:
            raise InstanceError("shares", "names no share")
        for i, share in enumerate(self.shares):
            require_number(share, f"shares[{i}]")
            if share > 1:
                raise InstanceError(f"shares[{i}]", f"{share!r} is more than 1")
