"""The parameters of the placement cost model, from measurements, with the error on what was held out.

Beside another job a job keeps 1 / (1 + P[a, b]) of its throughput, P = U V' with U, V >= 0 of few columns: how much a
suffers from each kind of pressure times how much b exerts (the form of ESP, Mishra et al., HPDC 2017, without its pair
terms). Where only links are shared, P is how much of its time a is on links times the duty of b.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import BoolArray, FloatArray, IntArray
from gangplan.instances.readers.measured import MeasuredSteps, Pairs, Servers

_ROUNDS = 2000
_DAMPING = 1e-3
"""Keeps rows with few measurements from growing without bound."""
_DUTY_ROUNDS = 500
_LEAST = 4
"""Model types."""


@dataclass(frozen=True, slots=True)
class Fit:
    """One fit, judged.

    Attributes:
        data: the data set.
        model: what was fitted.
        parameters: how many numbers that took.
        held_out: how many measurements the errors are of.
        median, p90: of the absolute error over the measured value.
    """

    data: str
    model: str
    parameters: int
    held_out: int
    median: float
    p90: float

    @classmethod
    def judge(cls, data: str, model: str, parameters: int, predicted: FloatArray, measured: FloatArray) -> Fit:
        """Return the fit with the errors of `predicted`, (n,), against `measured`, (n,)."""
        error = np.abs(predicted - measured) / measured
        return cls(data, model, parameters, len(error), float(np.median(error)), float(np.quantile(error, 0.9)))


def fit_pairs(pairs: Pairs, ranks: tuple[int, ...] = (1, 2, 3), seed: int = 0) -> list[Fit]:
    """Fit constant and low-rank tables, hold out a fifth of the pairs, and judge each on them."""
    added, train, test = _split(pairs, seed)
    measured = pairs.kept[test]
    flat = float(np.median(added[train]))
    fits = [Fit.judge(pairs.name, "constant", 1, np.full(len(measured), 1 / (1 + flat)), measured)]
    for rank in ranks:
        table = low_rank(added, train, rank, seed)
        fits.append(Fit.judge(pairs.name, f"rank {rank}", 2 * rank * len(pairs.jobs), 1 / (1 + table[test]), measured))
    return fits


def _split(pairs: Pairs, seed: int) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Return by what share each job's time grows beside each other, where to fit that and where to judge, (n, n) each.

    A fifth of the pairs is held out, both directions of each together.
    """
    known = np.isfinite(pairs.kept)
    if known.sum() < 10:
        raise InstanceError("pairs", f"{known.sum()} measured pairs are too few to hold some out")
    added = np.maximum(np.divide(1.0, pairs.kept, where=known, out=np.ones_like(pairs.kept)) - 1.0, 0.0)
    chosen = np.argwhere(np.triu(known | known.T))
    np.random.default_rng(seed).shuffle(chosen)
    first, second = chosen[: len(chosen) // 5].T
    held = np.zeros_like(known)
    held[first, second] = held[second, first] = True
    return added, known & ~held, known & held


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


def fit_duty(pairs: Pairs, seed: int = 0) -> list[Fit]:
    """Fit that job a keeps 1 / (1 + u_a d_b) of its throughput beside b, hold out a fifth of the pairs, judge.

    With s seconds of synchronisation that show in a step of t, and a link shared with one gang of duty d, a step takes
    t + s d: u = s / t is the share of its time that a job spends on links, and no more than 1, as is d. Fair sharing,
    for comparison, is d = 1. The jobs share links and nothing else.
    """
    added, train, test = _split(pairs, seed)
    fits = []
    for name, free in (("fair share", False), ("duty", True)):
        u, d = _shares(added, train, free)
        kept = 1 / (1 + np.outer(u, d))
        fits.append(Fit.judge(pairs.name, name, len(u) * (1 + free), kept[test], pairs.kept[test]))
    return fits


def _shares(added: FloatArray, known: BoolArray, free: bool) -> tuple[FloatArray, FloatArray]:
    """Return u and d, each from 0 to 1, with the least squares of u_a d_b - added where known; d = 1 unless free.

    One job at a time is set to its best value given the others, which ends where no single change helps.
    """
    data = np.where(known, added, 0.0)
    u, d = np.full(len(added), 0.5), np.ones(len(added))
    for _ in range(_DUTY_ROUNDS if free else 1):
        u = np.clip((data @ d) / np.maximum(known @ d**2, 1e-12), 0.0, 1.0)
        if free:
            d = np.clip((data.T @ u) / np.maximum(known.T @ u**2, 1e-12), 0.0, 1.0)
    return u, d


def fit_servers(servers: Servers) -> list[Fit]:
    """Fit seconds = compute + a + gradient / bandwidth, with one a and one bandwidth a placement, both >= 0.

    One model type after the other is held out, with all its placements: what is judged is how fast a type runs that
    was never measured. Its compute and its gradient are known. The relative error is minimised. The fits are of compute
    alone, of a bandwidth, and of a latency too.
    """
    n = len(servers.models)
    if n < _LEAST:
        raise InstanceError("model", f"{n} model types are too few to hold each out, {_LEAST} are needed")
    bytes_only = servers.gradient[:, None]
    both = np.stack([np.ones(n), servers.gradient], axis=1)
    fits = []
    for name, columns in (("compute alone", bytes_only[:, :0]), ("bandwidth", bytes_only), ("latency too", both)):
        predicted = np.empty_like(servers.seconds)
        for i in range(n):
            train = np.arange(n) != i
            for k, seconds in enumerate(servers.seconds.T):
                beyond = np.maximum(seconds - servers.compute, 0.0)[train]
                predicted[i, k] = servers.compute[i] + columns[i] @ least_costs(columns[train], seconds[train], beyond)
        count = 3 * columns.shape[1]
        fits.append(Fit.judge(servers.name, name, count, predicted.ravel(), servers.seconds.ravel()))
    return fits


def least_costs(columns: FloatArray, seconds: FloatArray, beyond: FloatArray) -> FloatArray:
    """Return what one of each column takes, at least 0, with the least squares of relative errors of `beyond`.

    Of few columns all choices of those that are not 0 are tried.
    """
    rows, wanted, n = columns / seconds[:, None], beyond / seconds, columns.shape[1]
    best, least = np.zeros(n), float(wanted @ wanted)
    for mask in product((False, True), repeat=n):
        found = np.zeros(n)
        found[list(mask)] = np.linalg.lstsq(rows[:, mask], wanted)[0]
        error = rows @ found - wanted
        if (found >= 0).all() and error @ error < least:
            best, least = found, float(error @ error)
    return best


def fit_steps(steps: MeasuredSteps, seed: int = 0) -> list[Fit]:
    """Fit seconds = a + b batch + 2 (W - 1)/W (g / link within a node, or g / NIC across), all >= 0.

    A fifth of the placements is held out, with all their batches. The relative error is minimised. The fits are of
    compute alone, of a ring, and of a ring in a node and one between nodes.
    """
    kinds = np.array(sorted(set(steps.placement)))
    if len(kinds) < 5:
        raise InstanceError("placement", f"{len(kinds)} placements are too few to hold some out")
    np.random.default_rng(seed).shuffle(kinds)
    test = np.isin(steps.placement, kinds[: len(kinds) // 5])
    ring, apart = _ring(steps.workers), steps.nodes > 1
    compute = [np.ones(len(steps.batch)), steps.batch]
    designs = {
        "compute alone": compute,
        "ring": [*compute, ring * ~apart, ring * apart],
        "hierarchical": [*compute, _ring(steps.most), _ring(steps.nodes)],
    }
    fits, seconds = [], steps.seconds
    for name, parts in designs.items():
        columns = np.stack(parts, axis=1)
        found = least_costs(columns[~test], seconds[~test], seconds[~test])
        fits.append(Fit.judge(steps.name, name, len(parts), (columns @ found)[test], seconds[test]))
    return fits


def _ring(members: IntArray) -> FloatArray:
    return np.asarray(2.0 * (members - 1) / members)
