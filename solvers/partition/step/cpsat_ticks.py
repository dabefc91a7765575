"""Times as whole numbers for CP-SAT, rounded so that a bound stays a bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gangplan.instances.arrays import FloatArray

from .model import Prepared

_FINENESS = 4_000_000
"""Ticks in the ceiling per task that may lie on one path: rounding costs a quarter of 1e-6 at most."""
MOST_TICKS = 1 << 40
"""Sums of so many stay far within 64 bits."""


def ceiling_of(p: Prepared) -> float:
    """Return seconds that suffice for any placement: one task after the other, each as slow as it can be."""
    slowest = np.where(np.isfinite(p.time), p.time, 0.0).max(axis=0)
    degree = np.minimum(np.bincount(p.edges[0], minlength=p.n), p.n_devices) if p.contention else 1
    sent = p.delay[p.used_levels].max(axis=0, initial=0.0) * degree
    return float(slowest.sum() + sent.sum())


def in_ticks(p: Prepared, ceiling: float) -> tuple[Prepared, float]:
    """Return the problem with all times in ticks, whole numbers rounded down, and the ticks of a second.

    As every time is rounded down, every schedule fits in as many ticks as it has seconds times the scale. The ceiling
    is `floor(ceiling * scale)` ticks; what is longer counts as twice that, equally forbidden.
    """
    units = min(_FINENESS * (p.n + 1), MOST_TICKS)
    scale = units / ceiling if ceiling > 0 else 1.0

    def rounded(seconds: FloatArray) -> FloatArray:
        ticks = np.floor(np.minimum(seconds * scale, 2.0 * units))
        return np.where(np.isfinite(seconds), ticks, np.inf)

    return replace(p, time=rounded(p.time), delay=rounded(p.delay)), scale
