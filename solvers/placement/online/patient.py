"""The three numbers of a rule that waits for close GPUs: a job starts where it is little slower than at best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gangplan.instances.arrays import check_fields, limited

MOST = {"gpus": 8.0, "slowdown": 8.0, "patience": 100.0}
"""The largest numbers: beyond, powers overflow, order and patience do not change."""


@dataclass(frozen=True, slots=True)
class Patient:
    """Start jobs in the order of log seconds + a log GPUs + b log least slowdown, each once it finds close GPUs.

    The least slowdown is that on an empty cluster. A job that would be more than exp(c) times as slow as that waits, as
    long as anything runs; those behind it may pass. The defaults are the best of cross-entropy search over 176
    workloads of TopDRL's cluster with training seeds.

    Attributes:
        gpus: a, from 0 to 8.
        slowdown: b, from 0 to 8.
        patience: c, from 0 to 100.
    """

    tier: ClassVar[str] = "patient"
    gpus: float = limited(0.777, most=MOST["gpus"])
    slowdown: float = limited(0.639, most=MOST["slowdown"])
    patience: float = limited(0.091, most=MOST["patience"])

    def __post_init__(self) -> None:
        check_fields(self)
        for name in MOST:
            object.__setattr__(self, name, float(getattr(self, name)))

    def most(self, least: Any) -> Any:
        """Return the largest slowdown with which a job starts, of its least one, a number or an array."""
        return least * np.exp(self.patience) + 1e-9
