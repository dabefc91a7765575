"""What the policy sees: a problem and its base as a graph of jobs and options, and compiled features of candidates.

A candidate is placing one job at one option next, or leaving it out.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import types

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.compiled.kernel import Floats, Floats2, Ints, Ints2, inner
from gangplan.solvers.schedule.lists import Base
from gangplan.solvers.schedule.prepare import NODES, RAMP, Prepared
from gangplan.solvers.schedule.profile import Data

from ..gnn.encoding import Encoding, first_positive, log_over, mean, over, signed_log_over

FEATURES = (
    *("first", "place", "own_best", "base", "dearer", "wait", "seconds", "gpus", "density", "weight", "start"),
    *("sooner", "later", "others", "spare", "idle", "out", "value", "efficiency", "slack", "released", "denser"),
    *("penalty", "backlog", "crowd", "to_go", "wants", "at_release"),
)
"""Names of the columns, see `describe`."""
WINDOW = 8
"""Jobs that compete for the next place: the first in the base order of those that have none."""


Singles2 = Annotated[Any, types.Array(types.float32, 2, "C")]
"""Arrays of float32."""


class Static(NamedTuple):
    """What does not change while a schedule is built.

    Attributes:
        second: seconds that are 1.
        slope: what a second costs each job, (n,).
        least: its fewest GPU-seconds, (n,).
        penalty: of each option what the base adds to its cost, (o,).
    """

    second: float
    slope: Floats
    least: Floats
    penalty: Floats


@inner
def _log(x: float) -> float:
    """Return log(1 + x) with the sign of x, at most 8."""
    y = float(np.log1p(min(abs(x), 3000.0)))
    return y if x >= 0 else -y


@inner
def describe(  # noqa: PLR0915, a line a feature
    cands: Ints2, count: int, jobs: Ints, k: int, state: Floats2, data: Data, static: Static, cheapest: Floats,
    total: float, left: float, x: Singles2,
) -> int:  # fmt: skip
    """Write features of `count` candidates to x (count, features); return which of them the base would take.

    Args:
        cands: (job's place in the window, option or -1), int64 (c, 2).
        count: how many.
        jobs: the window, int64 (w,), k of them count.
        k: see above.
        state: (start, finish, cost, spare GPUs at the start) of each candidate, float64 (c, 4); of leaving out its
            price is the cost.
        data, static: the problem.
        cheapest: written: the least cost of each of these jobs, (w,).
        total: GPUs.
        left: share of the jobs that are not placed.
    """
    gpus, seconds, release, deadline, price = data.gpus, data.seconds, data.release, data.deadline, data.price
    second, slope, least, penalty = static.second, static.slope, static.least, static.penalty
    base, base_cost = 0, np.inf
    for w in range(k):
        cheapest[w] = np.inf
    sooner, weigh, dense, area, crowd = np.inf, 0.0, 0.0, 0.0, 0.0
    for i in range(count):
        w = cands[i, 0]
        cheapest[w] = min(cheapest[w], state[i, 2])
        if cands[i, 1] >= 0:
            sooner = min(sooner, state[i, 0])
        if w == 0 and state[i, 2] < base_cost:
            base, base_cost = i, state[i, 2]
    for w in range(k):
        j = jobs[w]
        weigh += slope[j] / k
        dense += np.log(slope[j] / max(least[j], 1e-9)) / k
        area += least[j]
    if sooner == np.inf:
        sooner = release[jobs[0]]
    for w in range(k):
        crowd += 1.0 if release[jobs[w]] <= sooner else 0.0
    base_start = state[base, 0] if cands[base, 1] >= 0 else sooner
    base_finish = state[base, 1] if cands[base, 1] >= 0 else sooner
    for i in range(count):
        w, o = cands[i, 0], cands[i, 1]
        j = jobs[w]
        runs = o >= 0
        start, finish, cost = state[i, 0], state[i, 1], state[i, 2]
        unit = slope[j] * second
        lasts, need = (seconds[o], float(gpus[o])) if runs else (0.0, 0.0)
        others, there, denser, mine = 0.0, 0.0, 0.0, np.log(slope[j] / max(lasts * need if runs else least[j], 1e-9))
        for v in range(k):
            if v != w and release[jobs[v]] <= finish:
                others += slope[jobs[v]]
            if v != w and release[jobs[v]] <= start:
                there += 1.0
                if slope[jobs[v]] / max(least[jobs[v]], 1e-9) > slope[j] / max(least[j], 1e-9):
                    denser += 1.0
        row = x[i]
        row[0] = 1.0 if w == 0 else 0.0
        row[1] = w / 8.0
        row[2] = 1.0 if cost <= cheapest[w] else 0.0
        row[3] = 1.0 if i == base else 0.0
        row[4] = _log((cost - cheapest[w]) / unit)
        row[5] = _log((start - release[j]) / second) if runs else 0.0
        row[6] = _log(lasts / second)
        row[7] = need / total
        row[8] = min(max(mine - dense, -6.0), 6.0)
        row[9] = min(max(np.log(slope[j] / weigh), -6.0), 6.0)
        row[10] = _log((start - sooner) / second)
        row[11] = _log((start - base_start) / second)
        row[12] = _log((finish - base_finish) / second)
        row[13] = _log(others * need * lasts / total / unit)
        row[14] = (state[i, 3] - need) / total if runs else 0.0
        row[15] = state[i, 3] / total if runs else 0.0
        row[16] = 0.0 if runs else 1.0
        row[17] = _log((price[j] - cheapest[w]) / unit) if price[j] < np.inf else 8.0
        row[18] = least[j] / max(lasts * need, 1e-9) if runs else 0.0
        row[19] = _log((deadline[j] - finish) / second) if runs and deadline[j] < np.inf else 8.0
        row[20] = there / 8.0
        row[21] = denser / 8.0
        row[22] = _log(penalty[o] / unit) if runs else 0.0
        row[23] = _log(area / (total * second))
        row[24] = crowd / 8.0
        row[25] = left
        row[26] = min(need / max(state[i, 3], 1.0), 2.0) if runs else 0.0
        row[27] = 1.0 if runs and start <= release[j] else 0.0
    return base


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
    shortest, least = p.least(p.seconds), p.least(area)
    second = first_positive(mean(shortest[some]))
    total = float(p.total)
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
        "node": p.per / total,
        "nodes": float(p.kind == NODES),
        "ramp": float(p.kind == RAMP),
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
        "node": np.minimum(p.gpus / p.per, 4.0),
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


def _of(values: Any, chosen: Any) -> FloatArray:
    return np.asarray(values[chosen], dtype=float) if len(values) else np.zeros(len(chosen))


def _log_ratio(x: Any, y: Any) -> FloatArray:
    return np.asarray(np.log(np.maximum(x, 1e-12) / np.maximum(y, 1e-12)).clip(-8, 8))
