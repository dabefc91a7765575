"""The three numbers of a rule that waits for close GPUs: a job starts where it is little slower than at best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gangplan.instances.arrays import require_number


@dataclass(frozen=True, slots=True)
class Patient:
    """Start jobs in the order of log seconds + a log GPUs + b log least slowdown, each once it finds close GPUs.

    The least slowdown is that on an empty cluster. A job that would be more than exp(c) times as slow as that waits, as
    long as anything runs; those behind it may pass. The defaults are the best of cross-entropy search over 176
    workloads of TopDRL's cluster with training seeds.

    Attributes:
        gpus: a.
        slowdown: b.
        patience: c, at least 0.
    """

    gpus: float = 0.777
    slowdown: float = 0.639
    patience: float = 0.091

    def __post_init__(self) -> None:
        for name in ("gpus", "slowdown"):
            require_number(abs(getattr(self, name)), name)
        require_number(self.patience, "patience")

    def most(self, least: Any) -> Any:
        """Return the largest slowdown with which a job starts, of its least one, a number or an array."""
        return least * np.exp(self.patience) + 1e-9
