"""Put each job where predicted speeds are best for all: ours with learned speeds, the oracle with the true ones.

policy = Greedy(model)              # any `Truth`: model.speeds(snapshots) -> epochs/s
policy = Greedy(case.truth)         # the oracle
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray, offsets, require_number
from gangplan.simulator.snapshots import Long, Snapshots, Truth

from .environment import Environment
from .places import every, fills, moves
from .truths import HiddenTruth

MOST = 300
"""Places of a job that are looked at one and all; where there are more, a search begins with some of them."""


def rooms(env: Environment, job: int) -> Long:
    """Return how many parameter servers each server takes beside 0, 1, ... workers, int64 (m, w + 1); -1 beyond."""
    jobs = env.case.jobs
    w, p = int(jobs.workers[job]), int(jobs.servers[job])
    free = env.free[:, None, :] - np.arange(w + 1)[:, None] * jobs.worker[job] + 1e-9 * env.size
    with np.errstate(divide="ignore", invalid="ignore"):
        fits = np.where(jobs.server[job] > 0, free / jobs.server[job], np.inf).min(axis=2)
    return np.where((free >= 0).all(axis=2), np.minimum(np.floor(fits), p), -1).astype(np.int64)


def places(env: Environment, job: int, room: Long, most: int = MOST) -> tuple[Long, bool]:
    """Return places of a whole job, int64 (c, m, 2), and whether these are all there are: so up to `most` of them."""
    w, p = env.left(job)
    able = np.flatnonzero((room[:, 0] > 0) | (room[:, 1:] >= 0).any(axis=1))
    found = every(room, able, w, p, most)
    if len(found) <= most:
        return found, True
    some = fills(room, _orders(env.case.fleet.topology.group, room, able), w, p)
    _, first = np.unique(some.reshape(len(some), -1), axis=0, return_index=True)
    return some[np.sort(first)], False


def _orders(group: IntArray, room: Long, able: Long) -> Long:
    """Return for each server with room these servers, the nearest first, then the roomiest, int64 (a, a)."""
    near = group[:, able]
    far = (near[:, :, None] != near[:, None, :]).sum(axis=0)
    full = np.tile((room[able] < 0).sum(axis=1), (len(able), 1))
    # the server itself before others that are as near
    return able[np.lexsort((full, ~np.eye(len(able), dtype=np.bool_), far), axis=1)]


Rows = dict[int, tuple[int, int]]
"""Server -> workers, parameter servers."""
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
        self.place_in(env, env.in_order(True))

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
        tried = _on(tried, most)
        if not len(tried):
            return {}, np.inf
        beside = self._beside(env)
        jobs = [*beside, job]
        cost = self._cost(env, jobs, alternatives(env, job, tried, beside))
        best = self._chosen(env, job, tried, cost, whole)
        found, least = tried[best], float(cost[best])
        for _ in range(0 if whole else _ROUNDS):
            near = _on(moves(found, room), most)
            cost = self._cost(env, jobs, alternatives(env, job, near, beside)) if len(near) else np.array([np.inf])
            best = int(np.argmin(cost))
            if cost[best] >= least * (1 - 1e-9):
                break
            found, least = near[best], float(cost[best])
        return {s: (int(found[s, 0]), int(found[s, 1])) for s in np.flatnonzero(found.any(axis=1)).tolist()}, least

    def _chosen(self, env: Environment, job: int, tried: Long, cost: FloatArray, whole: bool) -> int:
        """Return which of some places of these costs is the best; `whole` if they are all there are."""
        margin = self._slack * self.least(env, job) if whole and self._slack else 0.0
        return int(np.argmax(cost <= cost.min() + margin))

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


def _on(tried: Long, most: int) -> Long:
    """Return those of some places that are on so many servers at most."""
    return np.asarray(tried[np.count_nonzero(tried.any(axis=2), axis=1) <= most])


def alternatives(env: Environment, job: int, tried: Long, beside: Sequence[int]) -> Snapshots:
    """Return a snapshot for each place of a job, int64 (c, m, 2): jobs that run beside it, and it."""
    base, count = env.snapshot(beside), len(tried)
    kind = np.append(base.kind, env.case.jobs.kind[job])
    place, server = np.nonzero(tried.any(axis=2))
    own = (place + 1) * len(base.server) + np.arange(len(place))
    columns = np.empty((3, count * len(base.server) + len(own)), dtype=np.int64)
    there = np.ones(columns.shape[1], dtype=np.bool_)
    there[own] = False
    columns[:, there] = np.tile(np.stack([base.server, base.workers, base.ps]), count)
    columns[:, own] = server, *tried[place, server].T
    sizes = np.tile(np.append(np.diff(base.rows), 0), (count, 1))
    sizes[:, -1] = np.bincount(place, minlength=count)
    first = np.arange(count + 1, dtype=np.int64) * len(kind)
    return Snapshots(first, np.tile(kind, count), offsets(sizes.ravel()), *columns)


_ABOVE = 0.1
"""Weight of a level, over that of the one below."""
_SAME = 1e-6
"""Share of what a job takes alone by which places may differ and cost the same."""


class Packing(Greedy):
    """As `Greedy`, but of the places that cost nearly the least, that which leaves least free on what it touches.

    They cost up to `slack` times used over free GPUs times what the job takes alone more than the best: where much is
    free, speed counts; where little is, room for gangs. GPUs that stay free count on the servers of a place and, a
    tenth as much each level up, on the groups below the rack.
    """

    def _chosen(self, env: Environment, job: int, tried: Long, cost: FloatArray, whole: bool) -> int:
        gpus, free = float(env.case.fleet.gpus.sum()), max(float(env.free[:, 0].sum()), 1e-3)
        margin = (self._slack * max(gpus - free, 0.0) / free + _SAME) * self.least(env, job)
        near = np.flatnonzero(cost <= cost.min() + margin)
        return int(near[np.argmin(left_over(env, job, tried[near]))])


def left_over(env: Environment, job: int, tried: Long) -> FloatArray:
    """Return the GPUs that stay free on what each place of a job, int64 (c, m, 2), touches, see `Packing`."""
    topology, weight = env.case.fleet.topology, 1.0
    free, used = env.free[:, 0], tried[:, :, 0] * env.case.jobs.worker[job, 0]
    found = ((free - used) * tried.any(axis=2)).sum(axis=1)
    for level, group in zip(topology.levels, topology.group, strict=False):
        if level.name == "rack":
            break
        weight *= _ABOVE
        inside = (group[:, None] == np.unique(group)).astype(np.float64)
        found = found + weight * ((free @ inside - used @ inside) * ((tried.any(axis=2) @ inside) > 0)).sum(axis=1)
    return np.asarray(found)
