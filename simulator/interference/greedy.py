"""Put each job where predicted speeds are best for all: ours with learned speeds, the oracle with the true ones.

policy = Greedy(model)              # any `Truth`: model.speeds(snapshots) -> epochs/s
policy = Greedy(case.truth)         # the oracle
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, islice, product

import numpy as np

from gangplan.instances.arrays import FloatArray, require_number

from .baselines import in_order
from .environment import SERVER, WORKER, Environment
from .snapshots import Snapshots, Truth, offsets
from .truths import HiddenTruth

Rows = dict[int, tuple[int, int]]
"""Server -> workers, parameter servers."""
_MOST = 300
"""Places of a job that are looked at one and all; where there are more, a search begins with some of them."""
_ROUNDS = 3
"""Of moving single tasks of a job, each to the best of all places one task away."""


class Greedy:
    """Takes jobs, the shortest by the profile first; each goes where the remaining times of all add up to least.

    The remaining time of a job is what is left of its epochs over its predicted speed. A job waits if a place that
    costs as much as the best on an empty cluster, and `patience` intervals, is better than the best there is now.

    Args:
        truth: predicts the speeds.
        patience: intervals; infinite: no job waits for speed.
        consolidate: for so many intervals after its arrival a job waits rather than be on more servers than it needs.
        slack: the first place that costs no more than the best and this share of what the job takes alone is taken,
            where all are looked at: predicted differences that are noise do not scatter jobs over servers.
    """

    def __init__(self, truth: Truth, patience: float = np.inf, *, consolidate: float = 0.0, slack: float = 0.0) -> None:
        require_number(patience if np.isfinite(patience) else 0.0, "patience")
        require_number(consolidate, "consolidate")
        require_number(slack, "slack")
        self._truth, self._patience, self._consolidate, self._slack = truth, patience, consolidate, slack
        self._apart = isinstance(truth, HiddenTruth) and truth.apart
        self._alone: dict[int, float] = {}

    def place(self, env: Environment) -> None:
        """Place every job that fits and is not better off later."""
        self.place_in(env, in_order(env, shortest=True))

    def place_in(self, env: Environment, order: Iterable[int]) -> None:
        """Do so in some order of the waiting jobs."""
        for job in order:
            found, _ = self.offer(env, job)
            env.place_whole(job, found)

    def offer(self, env: Environment, job: int) -> tuple[Rows, float]:
        """Return the best place of a job and by how much remaining times then add up to more; no rows if it waits."""
        if not env.fits(job):
            return {}, np.inf
        insists = env.now - env.case.jobs.submit[job] < self._consolidate * env.case.interval
        found, cost = self._best(env, job, env.case.fewest[job] if insists else len(env.free))
        more = cost - self.remaining(env)
        if found and np.isfinite(self._patience) and more > self.least(env, job) + self._patience * env.case.interval:
            return {}, np.inf
        return found, more

    def _best(self, env: Environment, job: int, most: int) -> tuple[Rows, float]:
        """Return the best place on so many servers at most and its cost; no rows if there is none."""
        room = rooms(env, job)
        tried, whole = places(env, job, room)
        tried = [rows for rows in tried if len(rows) <= most]
        if not tried:
            return {}, np.inf
        beside = self._beside(env)
        jobs = [*beside, job]
        cost = self._cost(env, jobs, alternatives(env, job, tried, beside))
        margin = self._slack * self.least(env, job) if whole and self._slack else 0.0
        best = int(np.argmax(cost <= cost.min() + margin))
        found, least = tried[best], float(cost[best])
        for _ in range(0 if whole else _ROUNDS):
            near = [rows for rows in moves(found, room) if len(rows) <= most]
            cost = self._cost(env, jobs, alternatives(env, job, near, beside)) if near else np.array([np.inf])
            best = int(np.argmin(cost))
            if cost[best] >= least * (1 - 1e-9):
                break
            found, least = near[best], float(cost[best])
        return found, least

    def remaining(self, env: Environment) -> float:
        """Return the remaining times of the running jobs, added up, as predicted for who is where now, seconds.

        Where no job slows another down they cancel out of every difference, and are left out.
        """
        beside = self._beside(env)
        return float(self._cost(env, beside, env.snapshot(beside))[0]) if beside else 0.0

    def _beside(self, env: Environment) -> list[int]:
        return [] if self._apart else env.running

    def _cost(self, env: Environment, jobs: list[int], now: Snapshots) -> FloatArray:
        """Return the remaining times of these jobs, added up, for each snapshot of them."""
        left = env.case.jobs.epochs[jobs] - env.done_epochs[jobs]
        speed = self._truth.speeds(now).reshape(len(now), len(jobs))
        return np.asarray((left / np.maximum(speed, 1e-12)).sum(axis=1))

    def least(self, env: Environment, job: int) -> float:
        """Return the seconds that a job takes where it is best on an empty cluster, as predicted."""
        key = int(env.case.alike[job])
        if key not in self._alone:
            empty = Environment(env.case)
            tried, _ = places(empty, job, rooms(empty, job))
            speed = self._truth.speeds(alternatives(empty, job, tried, []))
            self._alone[key] = float(speed.max())
        return float(env.case.jobs.epochs[job] / max(self._alone[key], 1e-12))


def alternatives(env: Environment, job: int, tried: list[Rows], beside: Sequence[int]) -> Snapshots:
    """Return a snapshot for each place of a job: jobs that run beside it, and it."""
    base, count = env.snapshot(beside), len(tried)
    kind = np.append(base.kind, env.case.jobs.kind[job])
    own = [np.array([(s, w, p) for s, (w, p) in rows.items()], dtype=np.int64) for rows in tried]
    there = np.stack([base.server, base.workers, base.ps], axis=1)
    server, workers, ps = np.ascontiguousarray(np.concatenate([part for mine in own for part in (there, mine)]).T)
    sizes = np.tile(np.append(np.diff(base.rows), 0), (count, 1))
    sizes[:, -1] = [len(mine) for mine in own]
    first = np.arange(count + 1, dtype=np.int64) * len(kind)
    return Snapshots(first, np.tile(kind, count), offsets(sizes.ravel()), server, workers, ps)


def rooms(env: Environment, job: int) -> list[list[int]]:
    """Return of each server how many parameter servers it takes beside 0, 1, ... workers of a job that waits."""
    jobs = env.case.jobs
    w, p = int(jobs.workers[job]), int(jobs.servers[job])
    free = env.free[:, None, :] - np.arange(w + 1)[:, None] * jobs.worker[job] + 1e-9 * env.size
    with np.errstate(divide="ignore", invalid="ignore"):
        fits = np.where(jobs.server[job] > 0, free / jobs.server[job], np.inf).min(axis=2)
    beside = np.where((free >= 0).all(axis=2), np.minimum(np.floor(fits), p), -1).astype(int)
    return [[x for x in row if x >= 0] for row in beside.tolist()]


def places(env: Environment, job: int, room: list[list[int]]) -> tuple[list[Rows], bool]:
    """Return places of a whole job, and whether these are all there are; up to `_MOST` then, else some of each kind."""
    w, p = env.left(job)
    found = list(islice(_every(room, w, p), _MOST + 1))
    return (found, True) if len(found) <= _MOST else (list(_some(env, room, w, p)), False)


def _every(room: list[list[int]], w: int, p: int) -> Iterable[Rows]:
    """Yield every place of w workers and p parameter servers on the servers with room."""
    able = [s for s, beside in enumerate(room) if len(beside) > 1 or beside[0] > 0]
    most_w = list(accumulate((len(room[s]) - 1 for s in reversed(able)), initial=0))[::-1]
    most_p = list(accumulate((room[s][0] for s in reversed(able)), initial=0))[::-1]

    def rest(at: int, w: int, p: int, rows: Rows) -> Iterable[Rows]:
        if w == p == 0:
            yield dict(rows)
            return
        if at == len(able) or most_w[at] < w or most_p[at] < p:
            return
        beside = room[able[at]]
        for here in range(min(w, len(beside) - 1), -1, -1):
            for there in range(min(p, beside[here]), -1, -1):
                if here or there:
                    rows[able[at]] = (here, there)
                yield from rest(at + 1, w - here, p - there, rows)
                rows.pop(able[at], None)

    return rest(0, w, p, {})


def _some(env: Environment, room: list[list[int]], w: int, p: int) -> Iterable[Rows]:
    """Yield places around each server: as tight as possible, one worker a server; parameter servers beside or apart."""
    group = env.case.fleet.topology.group
    servers = [s for s, beside in enumerate(room) if len(beside) > 1 or beside[0] > 0]
    seen = set()
    for seed, tight, beside_first in product(servers, (True, False), (True, False) if p else (True,)):
        far = (group[:, servers] != group[:, [seed]]).sum(axis=0)
        order = sorted(range(len(servers)), key=lambda i: (far[i], servers[i] != seed, -len(room[servers[i]]), i))
        rows = _fill([servers[i] for i in order], room, w, p, tight, beside_first)
        key = tuple(sorted(rows.items()))
        if rows and key not in seen:
            seen.add(key)
            yield rows


def _fill(order: list[int], room: list[list[int]], w: int, p: int, tight: bool, beside_first: bool) -> Rows:
    """Return a place that takes servers in this order, nothing if that does not hold the job."""
    workers = dict.fromkeys(order, 0)
    while w:
        before = w
        for s in order:
            take = min(w, len(room[s]) - 1 - workers[s], w if tight else 1)
            workers[s] += take
            w -= take
        if w == before:
            return {}
    rows = {s: (count, 0) for s, count in workers.items() if count}
    others = [s for s in order if s not in rows]
    for s in [*rows, *others] if beside_first else [*others, *rows]:
        take = min(p, room[s][workers[s]])
        if take:
            rows[s] = (workers[s], take)
            p -= take
    return {} if p else rows


def moves(rows: Rows, room: list[list[int]]) -> Iterable[Rows]:
    """Yield every place that differs by where one task is."""
    for here, kind in product(list(rows), (WORKER, SERVER)):
        if rows[here][kind] == 0:
            continue
        for there in range(len(room)):
            if there == here:
                continue
            found = dict(rows)
            for server, sign in ((here, -1), (there, 1)):
                counts = list(found.get(server, (0, 0)))
                counts[kind] += sign
                found[server] = (counts[0], counts[1])
            w, p = found[there]
            if w < len(room[there]) and p <= room[there][w]:
                if found[here] == (0, 0):
                    del found[here]
                yield found
