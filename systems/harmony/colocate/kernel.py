"""The speeds that an ensemble of `pressure` models predicts, compiled: decisions need no torch.

The formulas are those of `gangplan.learned.training.interference.pressure`, which a test holds this to.
"""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

import numpy as np

from gangplan.solvers.compiled.kernel import Floats2, Floats3, Ints, Ints2, inner, kernel

from ...interference.speeds import Where, crossed


class Fitted(NamedTuple):
    """An ensemble: E members, K types, m servers, X links of L levels, R kinds of pressure.

    Attributes:
        link: by which link a server's traffic leaves its group of each level, (L, m).
        unit: logarithm of the speed of one worker of each type alone, epochs a second, (1, K).
        passes: seconds, over the compute alone, of bytes that pass once, and beyond, (E, K, 2).
        suffers: what a type suffers as workers, parameter servers, and on links, (E, K, 3 R).
        exerts: what a worker and a parameter server exert, (E, K, 2 R).
        crosses: what is exerted on a link: by crossing it, by bytes once, and beyond, (E, K, 3 R).
        fellow: what a type suffers from each further worker of its own on a server, (E, K, 1).
        compute: of a step over that alone, (E, K).
        site: factor of each server, then of each link, (E, m + X).
        curve: of workers, parameter servers and links, (E, 3).
    """

    link: Ints2
    unit: Floats2
    passes: Floats3
    suffers: Floats3
    exerts: Floats3
    crosses: Floats3
    fellow: Floats3
    compute: Floats2
    site: Floats2
    curve: Floats2


class Crossing(NamedTuple):
    """Links that the jobs of one snapshot cross, x rows; float64 and int64.

    Attributes:
        first: rows of the snapshot's job i begin there, (n + 1,).
        link: of each row, (x,).
        once, more: how many times bytes pass, up to once and beyond, (x, 2).
    """

    first: Ints
    link: Ints
    amount: Floats2


@inner
def list_crossings(fitted: Fitted, where: Where, begin: int, end: int, out: Crossing, behind: Ints2) -> None:
    """Write the links that each job of a snapshot crosses, and how often its bytes pass there."""
    for job in range(begin, end):
        start = out.first[job - begin]
        stop = crossed(fitted.link, where, job, start, out.link, behind)
        out.first[job - begin + 1] = stop
        w, p = 0.0, 0.0
        for row in range(where.rows[job], where.rows[job + 1]):
            w += where.workers[row]
            p += where.ps[row]
        for at in range(start, stop):
            times = 2.0 * (w - 1.0) / max(w, 1.0)
            if p > 0:
                times = (behind[at, 0] * (p - behind[at, 1]) + behind[at, 1] * (w - behind[at, 0])) / p
            out.amount[at, 0], out.amount[at, 1] = min(times, 1.0), max(times - 1.0, 0.0)


@inner
def exert(
    fitted: Fitted, e: int, where: Where, begin: int, end: int, crossing: Crossing, total: Floats2, sign: float
) -> None:
    """Add the pressures of jobs at all places, or take them off."""
    m, kinds = fitted.link.shape[1], total.shape[1]
    for job in range(begin, end):
        kind = where.kind[job]
        for row in range(where.rows[job], where.rows[job + 1]):
            for r in range(kinds):
                by = fitted.exerts[e, kind, r] * where.workers[row] + fitted.exerts[e, kind, kinds + r] * where.ps[row]
                total[where.server[row], r] += sign * by
        for row in range(crossing.first[job - begin], crossing.first[job - begin + 1]):
            once, more, of = crossing.amount[row, 0], crossing.amount[row, 1], fitted.crosses[e, kind]
            for r in range(kinds):
                by = of[r] + of[kinds + r] * once + of[2 * kinds + r] * more
                total[m + crossing.link[row], r] += sign * by


@inner
def slower(fitted: Fitted, e: int, part: int, kind: int, felt: float) -> float:
    """Return by what others slow a type down at a place; `felt` is what it suffers there."""
    curve = fitted.curve[e, part]
    return float(exp(log(1.0 + curve * max(felt, 0.0)) / curve))


@kernel
def all_logs(fitted: Fitted, where: Where) -> Floats2:
    """Return what each member says of the logarithm of the speed of each job of all snapshots, epochs/s, (E, n)."""
    members, m, n = len(fitted.site), fitted.link.shape[1], len(where.kind)
    kinds, most = fitted.exerts.shape[2] // 2, len(where.server) * len(fitted.link) + 1
    out, total = np.zeros((members, n)), np.zeros((fitted.site.shape[1], kinds))
    crossing = Crossing(np.zeros(n + 1, dtype=np.int64), np.zeros(most, dtype=np.int64), np.zeros((most, 2)))
    behind = np.zeros((most, 2), dtype=np.int64)
    for at in range(len(where.first) - 1):
        begin, end = where.first[at], where.first[at + 1]
        list_crossings(fitted, where, begin, end, crossing, behind)
        for e in range(members):
            exert(fitted, e, where, begin, end, crossing, total, 1.0)
            for job in range(begin, end):
                kind, compute, waits, sync, workers = where.kind[job], 1.0, 1.0, 0.0, 0
                for row in range(where.rows[job], where.rows[job + 1]):
                    server, w, p = where.server[row], where.workers[row], where.ps[row]
                    workers += w
                    by_workers, by_servers, site = 0.0, 0.0, fitted.site[e, server]
                    for r in range(kinds):
                        own = fitted.exerts[e, kind, r] * w + fitted.exerts[e, kind, kinds + r] * p
                        beside = total[server, r] - own
                        by_workers += fitted.suffers[e, kind, r] * beside
                        by_servers += fitted.suffers[e, kind, kinds + r] * beside
                    if w > 0:
                        fellow = fitted.fellow[e, kind, 0] * (w - 1)
                        compute = max(compute, slower(fitted, e, 0, kind, by_workers * site + fellow))
                    if p > 0:
                        waits = max(waits, slower(fitted, e, 1, kind, by_servers * site))
                for row in range(crossing.first[job - begin], crossing.first[job - begin + 1]):
                    once, more, felt = crossing.amount[row, 0], crossing.amount[row, 1], 0.0
                    link = m + crossing.link[row]
                    for r in range(kinds):
                        of = fitted.crosses[e, kind]
                        own = of[r] + of[kinds + r] * once + of[2 * kinds + r] * more
                        felt += fitted.suffers[e, kind, 2 * kinds + r] * (total[link, r] - own)
                    seconds = fitted.passes[e, kind, 0] * once + fitted.passes[e, kind, 1] * more
                    sync = max(sync, seconds * fitted.site[e, link] * slower(fitted, e, 2, kind, felt))
                step = fitted.compute[e, kind] * compute + sync * waits
                out[e, job] = log(workers) + fitted.unit[0, kind] - log(step)
            exert(fitted, e, where, begin, end, crossing, total, -1.0)
    return out
