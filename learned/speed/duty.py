"""Fit how much gangs that share a link slow one another, in the form that the cost model has."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.instances.readers.measured import Pairs

from .interference import added_shares, held_out
from .report import Fit

_ROUNDS = 500


def fit_duty(pairs: Pairs, seed: int = 0) -> tuple[list[Fit], FloatArray]:
    """Fit that job a keeps 1 / (1 + u_a d_b) of its throughput beside b, hold out a fifth of the pairs, judge.

    With s seconds of synchronisation that show in a step of t, and a link shared with one gang of duty d, a step takes
    t + s d: u = s / t is the share of its time that a job spends on links, and no more than 1, as is d. Fair sharing,
    for comparison, is d = 1.

    Args:
        pairs: the measurements, of jobs that share links and nothing else.
        seed: of what is held out.

    Returns:
        The fits, and (u, d) of each job fitted to everything, float64 (2, n).

    Raises:
        InstanceError: if there are too few pairs.
    """
    added, known = added_shares(pairs)
    held = held_out(known, seed)
    train, test = known & ~held, known & held
    fits = []
    for name, free in (("fair share", False), ("duty", True)):
        u, d = _shares(added, train, free)
        kept = 1 / (1 + np.outer(u, d))
        fits.append(Fit.judge(pairs.name, name, len(u) * (1 + free), kept[test], pairs.kept[test]))
    return fits, np.stack(_shares(added, known, True))


def _shares(added: FloatArray, known: BoolArray, free: bool) -> tuple[FloatArray, FloatArray]:
    """Return u and d, each from 0 to 1, with the least squares of u_a d_b - added where known; d = 1 unless free.

    One job at a time is set to its best value given the others, which ends where no single change helps.
    """
    data = np.where(known, added, 0.0)
    u, d = np.full(len(added), 0.5), np.ones(len(added))
    for _ in range(_ROUNDS if free else 1):
        u = np.clip((data @ d) / np.maximum(known @ d**2, 1e-12), 0.0, 1.0)
        if free:
            d = np.clip((data.T @ u) / np.maximum(known.T @ u**2, 1e-12), 0.0, 1.0)
    return u, d
