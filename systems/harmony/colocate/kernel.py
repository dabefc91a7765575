"""The speeds that an ensemble of `pressure` models predicts, compiled: decisions need no torch.

The formulas are those of `gangplan.learned.training.interference.pressure`, which a test holds this to.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython import cclass, cfunc, final, nogil, void
from cython.cimports.libc.math import exp, log
from numpy.typing import NDArray

from ...interference.speeds import Crossings, SnapshotArrays

if not cython.compiled:
    from gangplan.solvers.native import Float, Int

    from ...interference.speeds import crossed


@final
@cclass
class FittedArrays:
    """The arrays of `policy.Fitted`, see there, of some snapshots, and what is written to between two of them.

    Attributes:
        cross: links that the jobs of one snapshot cross, x rows at most.
        first: rows of the snapshot's job i begin there, (n + 1,).
        amount: how many times bytes pass on each row's link, up to once and beyond, (x, 2).
        total: pressures on each server, then on each link, (m + X, R).
        logs: of the speed of each job as each member predicts it, (E, n).
    """

    def __init__(self, fitted: Any, n: Int, rows: Int) -> None:
        link, *arrays = fitted
        self.unit, self.passes, self.suffers, self.exerts, self.crosses, self.fellow, *rest = arrays
        self.compute, self.site, self.curve = rest
        (levels, m), (e, sites), k, r = link.shape, rest[1].shape, arrays[0].shape[1], arrays[3].shape[2] // 2
        shapes = [(1, k), (e, k, 2), (e, k, 3 * r), (e, k, 2 * r), (e, k, 3 * r), (e, k, 1), (e, k), (e, sites), (e, 3)]
        if [x.shape for x in arrays] != shapes:
            raise ValueError(f"{[x.shape for x in arrays]} are not {shapes}")
        self.cross, self.amount = Crossings(link, sites - m, rows * levels + 1), np.zeros((rows * levels + 1, 2))
        self.first, self.total, self.logs = np.zeros(n + 1, np.int64), np.zeros((sites, r)), np.zeros((e, n))


@cfunc
@nogil
def _list_crossings(fitted: FittedArrays, now: SnapshotArrays, begin: Int, end: Int) -> void:
    """Write the links that each job of a snapshot crosses, and how often its bytes pass there."""
    for job in range(begin, end):
        start = fitted.first[job - begin]
        stop = crossed(fitted.cross, now, job, start)
        fitted.first[job - begin + 1] = stop
        w: Float = 0.0
        p: Float = 0.0
        for row in range(now.rows[job], now.rows[job + 1]):
            w += now.workers[row]
            p += now.ps[row]
        for at in range(start, stop):
            here, beside = fitted.cross.behind[at, 0], fitted.cross.behind[at, 1]
            times: Float = 2.0 * (w - 1.0) / max(w, 1.0)
            if p > 0:
                times = (here * (p - beside) + beside * (w - here)) / p
            fitted.amount[at, 0], fitted.amount[at, 1] = min(times, 1.0), max(times - 1.0, 0.0)


@cfunc
@nogil
def _on_server(fitted: FittedArrays, now: SnapshotArrays, e: Int, kind: Int, row: Int, r: Int) -> Float:
    """Return the pressure of one kind of a job on a server, row by row."""
    kinds = fitted.total.shape[1]
    return fitted.exerts[e, kind, r] * now.workers[row] + fitted.exerts[e, kind, kinds + r] * now.ps[row]


@cfunc
@nogil
def _on_link(fitted: FittedArrays, e: Int, kind: Int, row: Int, r: Int) -> Float:
    """Return the pressure of one kind of a job on a link that it crosses."""
    kinds, once, more = fitted.total.shape[1], fitted.amount[row, 0], fitted.amount[row, 1]
    crosses = fitted.crosses[e, kind, r] + fitted.crosses[e, kind, kinds + r] * once
    return crosses + fitted.crosses[e, kind, 2 * kinds + r] * more


@cfunc
@nogil
def _exert(fitted: FittedArrays, e: Int, now: SnapshotArrays, begin: Int, end: Int, sign: Float) -> void:
    """Add the pressures of jobs at all places, or take them off."""
    for job in range(begin, end):
        kind = now.kind[job]
        for row in range(now.rows[job], now.rows[job + 1]):
            for r in range(fitted.total.shape[1]):
                fitted.total[now.server[row], r] += sign * _on_server(fitted, now, e, kind, row, r)
        for row in range(fitted.first[job - begin], fitted.first[job - begin + 1]):
            link = fitted.cross.link.shape[1] + fitted.cross.links[row]
            for r in range(fitted.total.shape[1]):
                fitted.total[link, r] += sign * _on_link(fitted, e, kind, row, r)


@cfunc
@nogil
def _slower(fitted: FittedArrays, e: Int, part: Int, felt: Float) -> Float:
    """Return by what others slow a job down at a place; `felt` is what it suffers there."""
    curve = fitted.curve[e, part]
    return exp(log(1.0 + curve * max(felt, 0.0)) / curve)


@cfunc
@nogil
def _log(fitted: FittedArrays, e: Int, now: SnapshotArrays, job: Int, begin: Int) -> Float:
    """Return what a member says of the logarithm of the speed of a job of the snapshot that begins there."""
    compute: Float = 1.0
    waits: Float = 1.0
    sync: Float = 0.0
    workers: Int = 0
    kind, kinds = now.kind[job], fitted.total.shape[1]
    for row in range(now.rows[job], now.rows[job + 1]):
        server = now.server[row]
        workers += now.workers[row]
        by_workers: Float = 0.0
        by_servers: Float = 0.0
        site = fitted.site[e, server]
        for r in range(kinds):
            beside = fitted.total[server, r] - _on_server(fitted, now, e, kind, row, r)
            by_workers += fitted.suffers[e, kind, r] * beside
            by_servers += fitted.suffers[e, kind, kinds + r] * beside
        if now.workers[row] > 0:
            fellow = fitted.fellow[e, kind, 0] * (now.workers[row] - 1)
            compute = max(compute, _slower(fitted, e, 0, by_workers * site + fellow))
        if now.ps[row] > 0:
            waits = max(waits, _slower(fitted, e, 1, by_servers * site))
    for row in range(fitted.first[job - begin], fitted.first[job - begin + 1]):
        link = fitted.cross.link.shape[1] + fitted.cross.links[row]
        felt: Float = 0.0
        for r in range(kinds):
            felt += fitted.suffers[e, kind, 2 * kinds + r] * (fitted.total[link, r] - _on_link(fitted, e, kind, row, r))
        once, more = fitted.amount[row, 0], fitted.amount[row, 1]
        seconds = fitted.passes[e, kind, 0] * once + fitted.passes[e, kind, 1] * more
        sync = max(sync, seconds * fitted.site[e, link] * _slower(fitted, e, 2, felt))
    step = fitted.compute[e, kind] * compute + sync * waits
    return log(workers) + fitted.unit[0, kind] - log(step)


@cfunc
@nogil
def _write_logs(fitted: FittedArrays, now: SnapshotArrays, begin: Int, end: Int) -> void:
    """Write what all members say of the jobs of one snapshot."""
    _list_crossings(fitted, now, begin, end)
    for e in range(len(fitted.site)):
        _exert(fitted, e, now, begin, end, 1.0)
        for job in range(begin, end):
            fitted.logs[e, job] = _log(fitted, e, now, job, begin)
        _exert(fitted, e, now, begin, end, -1.0)


def all_logs(fitted: Any, now: Any) -> NDArray[np.float64]:
    """Return what each member of a `policy.Fitted` says of the logarithm of the speed of each job of all `Snapshots`.

    Epochs a second, float64 (E, n).
    """
    arrays = FittedArrays(fitted, len(now.kind), len(now.server))
    jobs = SnapshotArrays(now, arrays.unit.shape[1], arrays.cross.link.shape[1])
    with nogil:
        for at in range(len(jobs.first) - 1):
            _write_logs(arrays, jobs, jobs.first[at], jobs.first[at + 1])
    return np.asarray(arrays.logs)
