"""Fit what jobs add to one another's time: a constant, or a low-rank table of added shares.

A pair keeps 1 / (1 + P[a, b]) of a's throughput, P = U V' with U, V >= 0 of few columns: how much a suffers from each
kind of pressure times how much b exerts (the form of ESP, Mishra et al., HPDC 2017, without its pair terms).
"""

from __future__ import annotations

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.instances.readers.measured import Pairs

from .report import Fit

_ROUNDS = 2000
_DAMPING = 1e-3
"""Keeps rows with few measurements from growing without bound."""


def fit_pairs(pairs: Pairs, ranks: tuple[int, ...] = (1, 2, 3), seed: int = 0) -> tuple[list[Fit], FloatArray]:
    """Fit constant and low-rank tables, hold out a fifth of the pairs, and judge each on them.

    Both directions of a pair are held out together.

    Args:
        pairs: the measurements.
        ranks: to try.
        seed: of what is held out and of the start of the fit.

    Returns:
        The fits, and the table of the last rank fitted to everything, float64 (n, n): what column adds to row.

    Raises:
        InstanceError: if there are too few pairs.
    """
    added, known = added_shares(pairs)
    held = held_out(known, seed)
    train, test = known & ~held, known & held
    measured = pairs.kept[test]
    flat = float(np.median(added[train]))
    fits = [Fit.judge(pairs.name, "constant", 1, np.full(len(measured), 1 / (1 + flat)), measured)]
    for rank in ranks:
        table = low_rank(added, train, rank, seed)
        count = 2 * rank * len(pairs.jobs)
        fits.append(Fit.judge(pairs.name, f"rank {rank}", count, 1 / (1 + table[test]), measured))
    return fits, low_rank(added, known, ranks[-1], seed)


def added_shares(pairs: Pairs) -> tuple[FloatArray, BoolArray]:
    """Return what each job's time grows by beside each other, as a share of it, and where that is known, (n, n) each.

    Raises:
        InstanceError: if there are too few pairs.
    """
    known = np.isfinite(pairs.kept)
    if known.sum() < 10:
        raise InstanceError("pairs", f"{known.sum()} measured pairs are too few to hold some out")
    return np.maximum(np.divide(1.0, pairs.kept, where=known, out=np.ones_like(pairs.kept)) - 1.0, 0.0), known


def low_rank(values: FloatArray, known: BoolArray, rank: int, seed: int = 0) -> FloatArray:
    """Return the non-negative table of `rank` nearest to `values` where `known`, float64 (n, m).

    Multiplicative updates (Lee and Seung, NIPS 2000) with a weight of 0 on what is unknown.
    """
    rng = np.random.default_rng(seed)
    n, m = values.shape
    u, v = rng.uniform(0.1, 1.0, (n, rank)), rng.uniform(0.1, 1.0, (m, rank))
    data = np.where(known, values, 0.0)
    for _ in range(_ROUNDS):
        u *= (data @ v) / ((known * (u @ v.T)) @ v + _DAMPING * u + 1e-12)
        v *= (data.T @ u) / ((known * (u @ v.T)).T @ u + _DAMPING * v + 1e-12)
    return np.asarray(u @ v.T)


def held_out(known: BoolArray, seed: int) -> BoolArray:
    """Return a fifth of the known pairs, bool (n, n), both directions of each."""
    pairs = np.argwhere(np.triu(known | known.T))
    np.random.default_rng(seed).shuffle(pairs)
    held = np.zeros_like(known)
    chosen = pairs[: len(pairs) // 5]
    held[chosen[:, 0], chosen[:, 1]] = held[chosen[:, 1], chosen[:, 0]] = True
    return held
