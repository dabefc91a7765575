"""A schedule problem and its base schedule as a graph: jobs, their options, and jobs that start one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.schedule.prepare import NODES, RAMP, Prepared

from ..encode.encoding import Encoding, first_positive, log_over, mean, over, signed_log_over
from .base import Base

NEAR = (1, 2, 3, 5, 8, 13)
"""How far apart in the order of starts two jobs are that send each other messages."""
_ORDERS = ("fifo", "shortest", "smith", "smith_now")


def graph_of(p: Prepared, base: Base) -> Encoding:
    """Return the graph: types ``jobs`` and ``options``, relations ``of`` and ``before`` with their reverses.

    Times are shares of the mean duration, GPU-seconds of what the cluster does meanwhile, costs of what waiting so long
    costs the job: units do not show, nor how many jobs there are.
    """
    encoding, owner, n = Encoding(), p.owner, p.n
    some, area = np.diff(p.first) > 0, p.gpus * p.seconds
    shortest, least = _least(p, p.seconds, some), _least(p, area, some)
    second = first_positive(mean(shortest[some]))
    total = float(p.cluster.total)
    slope = slopes(p)
    runs = base.option >= 0
    chosen = np.where(runs, base.option, np.minimum(p.first[:-1], max(len(p.gpus) - 1, 0)))
    taken, lasts = _of(p.gpus, chosen) * runs, _of(p.seconds, chosen) * runs
    end = base.start + lasts
    wait = np.where(runs, base.start - p.release, 0.0)
    used, behind, waits = _around(base.start, end, taken, p.release, slope, runs)
    density = slope / np.maximum(least, 1e-12)
    here = float(density[some].mean()) if some.any() else 1.0
    bounded, optional = np.isfinite(p.deadline), np.isfinite(p.price)
    price = np.where(optional, p.price, 0.0)
    jobs: dict[str, Any] = {
        "seconds": log_over(shortest, second),
        "area": log_over(least, second * total),
        "gpus": taken / total,
        "lasts": log_over(lasts, second),
        "weight": _log_ratio(slope, slope.mean()),
        "density": _log_ratio(density, here),
        "wait": log_over(wait, second),
        "waited_long": over(wait, lasts + 1e-9).clip(0, 50),
        "release": log_over(p.release - p.release.min(), second),
        "runs": runs,
        "bounded": bounded,
        "slack": np.where(bounded, signed_log_over(np.where(bounded, p.deadline, 0.0) - end, second), 0.0),
        "optional": optional,
        "value": np.where(optional, signed_log_over(price - slope * end, slope * second), 0.0),
        "used": used / total,
        "behind": log_over(behind, slope.mean() * total),
        "waits": log_over(waits, total),
        "last": base.rank / max(n - 1, 1),
        "gpu": 1.0 / total,
        "node": p.cluster.gpus / total,
        "nodes": float(p.cluster.kind == NODES),
        "ramp": float(p.cluster.kind == RAMP),
        "makespan": float(p.makespan),
        "price": np.log1p(base.price),
    }
    jobs |= {f"order_{name}": float(base.order == name) for name in _ORDERS}
    encoding.add("jobs", n, jobs)
    unit = slope * second
    value = slope[owner] * np.where(np.isfinite(base.finish), base.finish, 0.0) + base.penalty
    mine = np.where(runs, _of(value, chosen), 0.0)
    options = {
        "gpus": p.gpus / total,
        "node": np.minimum(p.gpus / p.cluster.gpus, 4.0),
        "seconds": log_over(p.seconds, second),
        "area": log_over(area, second * total),
        "efficiency": over(least[owner], area),
        "slower": log_over(p.seconds, shortest[owner]),
        "chosen": base.option[owner] == np.arange(len(owner)),
        "penalty": signed_log_over(base.penalty, unit[owner]),
        "worse": signed_log_over(value - mine[owner], unit[owner]),
        "later": signed_log_over(np.where(np.isfinite(base.finish), base.finish, 0.0) - end[owner], second),
        "late": ~(base.finish <= p.deadline[owner]),
    }
    encoding.add("options", len(owner), options)
    encoding.join(("options", "of", "jobs"), np.arange(len(owner)), owner)
    _join_near(encoding, p, base, density, taken, wait, second)
    return encoding


def slopes(p: Prepared) -> FloatArray:
    """Return what a second costs each job, positive; where it costs nothing, the same for all."""
    if p.slope.any():
        return np.asarray(np.maximum(p.slope, 1e-6 * p.slope.mean()))
    return np.full(p.n, 1.0 / p.n)


def _join_near(
    encoding: Encoding, p: Prepared, base: Base, density: FloatArray, taken: FloatArray, wait: FloatArray, second: float
) -> None:
    order = np.argsort(base.rank, kind="stable")
    pairs = [(order[:-k], order[k:]) for k in NEAR if k < p.n]
    a = np.concatenate([np.zeros(0, dtype=np.int64), *(x for x, _ in pairs)])
    b = np.concatenate([np.zeros(0, dtype=np.int64), *(y for _, y in pairs)])
    apart = base.start[b] - base.start[a]
    columns = {
        "rank": (base.rank[b] - base.rank[a]) / 8.0,
        "apart": signed_log_over(apart, second),
        "there": p.release[b] <= base.start[a],
        "denser": _log_ratio(density[b], density[a]),
        "fits": taken[b] <= taken[a],
        "waits": (wait[a] > 0) & (wait[b] > 0),
    }
    encoding.join(("jobs", "before", "jobs"), a, b, columns)


def _around(
    start: FloatArray, end: FloatArray, taken: FloatArray, release: FloatArray, slope: FloatArray, runs: Any
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return, at each job's start: GPUs in use, what a second costs all jobs that wait, and how many GPUs they want."""
    gone = ~runs
    begin = np.where(gone, np.inf, start)
    up, down = _running_sum(begin, taken, start), _running_sum(np.where(gone, np.inf, end), taken, start)
    here = _running_sum(np.where(gone, np.inf, release), slope, start) - _running_sum(begin, slope, start)
    want = _running_sum(np.where(gone, np.inf, release), taken, start) - up
    return up - down, np.maximum(here, 0.0), np.maximum(want, 0.0)


def _running_sum(at: FloatArray, value: FloatArray, when: FloatArray) -> FloatArray:
    order = np.argsort(at, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(value[order])])
    return np.asarray(total[np.searchsorted(at[order], when, side="right")])


def _least(p: Prepared, values: FloatArray, some: Any) -> FloatArray:
    found = np.zeros(p.n)
    if len(values):
        found[some] = np.minimum.reduceat(values, p.first[:-1][some])
    return found


def _of(values: Any, chosen: Any) -> FloatArray:
    return np.asarray(values[chosen], dtype=float) if len(values) else np.zeros(len(chosen))


def _log_ratio(x: Any, y: Any) -> FloatArray:
    return np.asarray(np.log(np.maximum(x, 1e-12) / np.maximum(y, 1e-12)).clip(-8, 8))
