"""Decisions by the interval: which worker or parameter server of which waiting job goes to which server.

env = Environment(case)
while not env.done:
    for job in env.waiting:
        while (mask := env.mask(job)).any():
            kind, server = choose(env, job, mask)
            env.place(job, kind, server)
    reward = env.end_interval()
outcome = env.outcome()
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.simulator.snapshots import Snapshots, Truth

from .case import InterferenceCase
from .places import servers_for, task_mask
from .speeds import advance
from .truths import HiddenTruth

WORKER, SERVER = range(2)
"""Kinds of task."""


class Environment:
    """A cluster that decides once an interval; jobs run from its beginning, and are never moved.

    A job that is begun is placed to its end before the next: every placement of several jobs can be reached like that.
    `mask` offers a task only if the rest of its job still fits, so that a gang is placed whole or waits. What arrives
    in an interval waits for the next; what ends in it leaves at once, and its room is given away at the next.

    Attributes:
        case: what is simulated.
        now: when the interval begins, seconds.
        waiting: jobs that wait, in the order of arrival.
        current: the job that is begun, -1 if there is none.
        running: jobs that run, the oldest first.
        free: what each server has left, float64 (m, 3).
        size: what the largest server has, float64 (3,).
        tasks: of each type on each server, float64 (m, K).
        profiled: seconds of each job by its profile, float64 (n,).
        intensity: bytes of each type over its compute, 1 in the mean, float64 (K,).
        done_epochs: of each job, float64 (n,).
        start, finish: of each job, seconds, infinite before, float64 (n,).
        speed: epochs a second that each job reported last, float64 (n,); nan before it ran.
        placements: tasks placed so far.
    """

    def __init__(self, case: InterferenceCase) -> None:
        n = len(case.jobs)
        self.case, self.free = case, case.capacity
        self.size = np.maximum(case.capacity.max(axis=0), 1e-9)
        self.tasks = np.zeros((len(self.free), len(case.jobs.types.names)))
        self.profiled, types = case.jobs.profiled, case.jobs.types
        self.intensity = types.gradient / types.compute / (types.gradient / types.compute).mean()
        self.waiting: list[int] = []
        self.running: list[int] = []
        self.current, self.placements = -1, 0
        self.done_epochs, self.speed = np.zeros(n), np.full(n, np.nan)
        self.start, self.finish = np.full(n, np.inf), np.full(n, np.inf)
        self._rows: dict[int, dict[int, tuple[int, int]]] = {}  # job -> server -> workers, parameter servers
        self._asked = case.jobs.workers.tolist(), case.jobs.servers.tolist()
        self._need, self._kind = [case.jobs.worker, case.jobs.server], case.jobs.kind.tolist()
        self._arrived, self.now = 0, 0.0
        self._admit()

    @property
    def done(self) -> bool:
        """Whether all jobs have ended."""
        return not self.waiting and not self.running and self._arrived == len(self.start)

    @property
    def stuck(self) -> bool:
        """Whether nothing happens any more unless a job that waits starts."""
        return bool(self.waiting) and not self.running and self._arrived == len(self.start)

    def rows(self, job: int) -> dict[int, tuple[int, int]]:
        """Return server -> (workers, parameter servers) of a job that runs, ran, or is begun."""
        return dict(self._rows.get(job, {}))

    def left(self, job: int) -> tuple[int, int]:
        """Return how many workers and parameter servers of a job are not placed."""
        w, p = self._asked[WORKER][job], self._asked[SERVER][job]
        for workers, servers in self._rows.get(job, {}).values():
            w, p = w - workers, p - servers
        return w, p

    def fits(self, job: int) -> bool:
        """Return whether all that is left of a job fits."""
        w, p = self.left(job)
        return servers_for(self.free, self._need[WORKER][job], self._need[SERVER][job], w, p) <= len(self.free)

    def mask(self, job: int) -> BoolArray:
        """Return which tasks of a job may go where, workers first, bool (2, m); nothing if it does not wait."""
        w, p = self.left(job)
        if (self.current >= 0 and job != self.current) or np.isfinite(self.start[job]):
            return np.zeros((2, len(self.free)), dtype=np.bool_)
        return task_mask(self.free, self._need[WORKER][job], self._need[SERVER][job], w, p)

    def place(self, job: int, kind: int, server: int) -> None:
        """Put a worker (`kind` 0) or parameter server (1) of a waiting job on a server.

        The last one starts the job. It is checked that the task fits the server, not that the rest of its job will.

        Raises:
            InstanceError: naming what is wrong with it.
        """
        if self.left(job)[kind] == 0 or not (job == self.current or (self.current < 0 and job in self.waiting)):
            raise InstanceError("job", f"{job!r} has no such task to place now")
        after = self.free[server] - self._need[kind][job]
        if (after < -1e-9 * self.size).any():
            raise InstanceError("server", f"{server!r} has no room for a task of job {job}")
        self.free[server] = after
        self.tasks[server, self._kind[job]] += 1
        rows = self.rows(job)
        w, p = rows.get(server, (0, 0))
        self._rows[job] = rows | {server: (w + (kind == WORKER), p + (kind == SERVER))}
        self.current, self.placements = job, self.placements + 1
        if self.left(job) == (0, 0):
            self.current = -1
            self.waiting.remove(job)
            self.running.append(job)
            self.start[job] = self.now

    def place_whole(self, job: int, rows: dict[int, tuple[int, int]]) -> None:
        """Put all tasks of a job: server -> (workers, parameter servers)."""
        for server, (w, p) in rows.items():
            for kind in [WORKER] * w + [SERVER] * p:
                self.place(job, kind, server)

    def fork(self) -> Environment:
        """Return a copy that goes its own way."""
        found = copy(self)
        for name in ("free", "tasks", "done_epochs", "start", "finish", "speed"):
            setattr(found, name, getattr(self, name).copy())
        found.waiting, found.running = list(self.waiting), list(self.running)
        found._rows = dict(self._rows)
        return found

    def part(self, case: InterferenceCase, servers: slice, waiting: list[int], running: list[int]) -> Environment:
        """Return what the owner of some servers sees: these, and jobs of its own; it cannot be run on.

        Args:
            case: this one's `at` these servers.
            servers: numbered from 0 on there.
            waiting, running: jobs; the latter lie on these servers.
        """
        found = copy(self)
        found.case, found.waiting, found.running, found.current = case, waiting, running, -1
        found.free, found.tasks, found.start = self.free[servers].copy(), self.tasks[servers].copy(), self.start.copy()
        found._rows = {job: {s - servers.start: row for s, row in self._rows[job].items()} for job in running}
        return found

    def take_back(self) -> None:
        """Take all tasks of the job that is begun off again."""
        job = self.current
        if job < 0:
            return
        self._leave(job)
        self.placements -= sum(w + p for w, p in self._rows.pop(job).values())
        self.current = -1

    def withdraw(self, job: int) -> None:
        """Take all tasks of a job that runs off, as if it had never been placed; it does not wait either."""
        self._leave(job)
        self.running.remove(job)
        self.start[job] = np.inf
        del self._rows[job]

    def _leave(self, job: int) -> None:
        for server, (w, p) in self._rows[job].items():
            self.free[server] += w * self._need[WORKER][job] + p * self._need[SERVER][job]
            self.tasks[server, self._kind[job]] -= w + p

    def in_order(self, shortest: bool) -> list[int]:
        """Return the waiting jobs by arrival, or those first that are shortest by what is profiled."""
        return sorted(self.waiting, key=self.profiled.__getitem__) if shortest else list(self.waiting)

    def snapshot(self, jobs: Sequence[int] | None = None) -> Snapshots:
        """Return who is where: the running jobs, or others that are begun, in their order."""
        some = self.running if jobs is None else jobs
        kind = self.case.jobs.kind[np.array(some, dtype=np.int64)]
        return Snapshots.of_rows(kind, [self._rows.get(j, {}) for j in some])

    def end_interval(self) -> float:
        """Run to the next interval; return the reward.

        It is Harmony's: the sum over the running jobs of the share of their epochs that they did. A job that is begun
        waits again. Where nobody runs or waits, the next interval is that after the next arrival.
        """
        self.take_back()
        interval, submit = self.case.interval, self.case.jobs.submit
        reward = self._run(self.now + interval) if self.running else 0.0
        self.now += interval
        if not self.running and not self.waiting and self._arrived < len(submit):
            self.now += max(0.0, float(np.ceil((submit[self._arrived] - self.now) / interval))) * interval
        self._admit()
        return reward

    def _admit(self) -> None:
        submit = self.case.jobs.submit
        while self._arrived < len(submit) and submit[self._arrived] <= self.now:
            self.waiting.append(self._arrived)
            self._arrived += 1

    def _run(self, until: float) -> float:
        jobs, total = np.array(self.running), self.case.jobs.epochs[self.running]
        left, now = total - self.done_epochs[jobs], self.snapshot()
        if isinstance(self.case.truth, HiddenTruth):
            epochs, end, opening = advance(self.case.truth.hidden, now, left, self.now, until)
        else:
            epochs, end, opening = self._advance(now, left, until)
        self.done_epochs[jobs] += epochs
        self.speed[jobs], self.finish[jobs] = opening, end
        for job in jobs[np.isfinite(end)].tolist():
            self._leave(job)
            self.done_epochs[job] = self.case.jobs.epochs[job]
            self.running.remove(job)
        return float((epochs / total).sum())

    def _advance(self, now: Snapshots, left: FloatArray, until: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Do what `advance` does, for a truth that is not compiled."""
        time, done, end = self.now, np.zeros(len(left)), np.full(len(left), np.inf)
        index, opening = np.arange(len(left)), np.zeros(0)
        while len(index):
            speed = self.case.truth.speeds(now)
            opening = opening if len(opening) else speed
            step = min(until - time, float(((left - done)[index] / speed).min()))
            done[index] += speed * step
            ended = (left - done)[index] / speed <= 1e-6
            time += step
            end[index[ended]], done[index[ended]] = time, left[index[ended]]
            if time >= until:
                break
            now, kept = now.keep(np.flatnonzero(~ended))
            index = index[kept]
        return done, end, opening

    def outcome(self) -> InterferenceOutcome:
        """Return what came of all jobs, once it is done."""
        return InterferenceOutcome(
            self.case, self.start.copy(), self.finish.copy(), self.snapshot(range(len(self.start)))
        )


_TOLERANCE = 1e-6
"""Of epochs, as a share of all."""


@dataclass(frozen=True, slots=True, eq=False)
class InterferenceOutcome:
    """When n jobs ran, and where, each from its start to its end.

    Attributes:
        case: what was simulated.
        start, finish: seconds, float64 (n,).
        where: all jobs, in one snapshot.
    """

    case: InterferenceCase
    start: FloatArray
    finish: FloatArray
    where: Snapshots

    @property
    def jct(self) -> FloatArray:
        """Seconds from submission to end, float64 (n,)."""
        return np.asarray(self.finish - self.case.jobs.submit)

    @property
    def makespan(self) -> float:
        """Seconds from the first submission to the last end."""
        return float(self.finish.max() - self.case.jobs.submit[0])


def check(outcome: InterferenceOutcome, before: tuple[float, Truth] | None = None) -> list[str]:
    """Return what is wrong with an outcome, nothing if all is well.

    Every job is of its type and has the tasks it asked for, on one set of rows from start to end, which says that it
    was never moved; it starts with an interval and after its submission; no server holds more than it has; and the
    epochs that the truth gives to who is where, from event to event, add up to those of the job.

    Args:
        before: when an interval began with which the truth became that of the case, and what it was before.
    """
    case, jobs = outcome.case, outcome.case.jobs
    if faults := _shape(outcome):
        return faults
    where = outcome.where
    for name, tasks, asked in (("workers", where.workers, jobs.workers), ("ps", where.ps, jobs.servers)):
        wrong = np.flatnonzero(where.total(tasks) != asked)
        faults += [f"job {j} does not have the {name} it asked for" for j in wrong[:3].tolist()]
    beat = outcome.start / case.interval
    faults += [f"job {j} starts amid an interval" for j in np.flatnonzero(np.abs(beat - np.round(beat)) > 1e-9)[:3]]
    faults += [f"job {j} starts before it is there" for j in np.flatnonzero(outcome.start < jobs.submit)[:3]]
    return faults or _capacity(outcome) + _progress(outcome, before)


def _shape(outcome: InterferenceOutcome) -> list[str]:
    """Return what keeps the rows and times from being those of the jobs of the case."""
    where, jobs, m = outcome.where, outcome.case.jobs, outcome.case.fleet.n_nodes
    if len(where) != 1 or {len(x) for x in (where.kind, outcome.start, outcome.finish)} != {len(jobs)}:
        return [f"the outcome is not of the {len(jobs)} jobs of the case"]
    if not (np.isfinite(outcome.finish).all() and np.isfinite(outcome.start).all()):
        return ["a job did not run to its end"]
    bad = (where.server < 0) | (where.server >= m) | (np.minimum(where.workers, where.ps) < 0)
    bad |= where.workers + where.ps < 1
    faults = [f"job {j} is of another type" for j in np.flatnonzero(where.kind != jobs.kind)[:3].tolist()]
    faults += [f"job {j} has a row that is no server with tasks" for j in np.unique(where.job[bad])[:3].tolist()]
    twice = len(np.unique(where.job * m + where.server)) < len(where.server)
    return faults + ["a job has a server twice"] * (twice and not faults)


def _capacity(outcome: InterferenceOutcome) -> list[str]:
    where, jobs, case = outcome.where, outcome.case.jobs, outcome.case
    job = where.job
    need = where.workers[:, None] * jobs.worker[job] + where.ps[:, None] * jobs.server[job]
    faults = []
    for time in np.unique(outcome.start):
        there = (outcome.start[job] <= time) & (outcome.finish[job] > time)
        used = np.stack([np.bincount(where.server[there], need[there, x], case.fleet.n_nodes) for x in range(3)])
        over = (case.capacity < used.T / (1 + 1e-9)).any(axis=1)
        faults += [f"server {s} holds more than it has at {time:g} s" for s in np.flatnonzero(over)[:1].tolist()]
    return faults[:3]


def _progress(outcome: InterferenceOutcome, before: tuple[float, Truth] | None) -> list[str]:
    """Add up the epochs under the truth between all events."""
    until, early = (0.0, outcome.case.truth) if before is None else before
    jobs = outcome.case.jobs
    done = np.zeros(len(jobs))
    times = np.unique(np.concatenate([outcome.start, outcome.finish, [until]]))
    for begin, end in pairwise(times.tolist()):
        there = np.flatnonzero((outcome.start <= begin) & (outcome.finish > begin))
        if len(there):
            done[there] += (end - begin) * (early if begin < until else outcome.case.truth).speeds(
                outcome.where.keep(there)[0]
            )
    wrong = np.flatnonzero(np.abs(done / jobs.epochs - 1) > _TOLERANCE)
    return [f"job {j} did {done[j]:g} of {jobs.epochs[j]:g} epochs" for j in wrong[:3].tolist()]
