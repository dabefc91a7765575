"""One decision: who stops, who starts, on how many GPUs, and where."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances import InstanceError

from ..asking import converted
from ..fit import next_claim, next_spare
from .conservative import Reservations
from .jobs import Long, Rows, in_order
from .policy import EngineScheduler, EngineView
from .state import ClusterState


class Decider:
    """Asks the policies, and does what the discipline allows."""

    def __init__(self, scheduler: EngineScheduler, state: ClusterState, view: EngineView) -> None:
        self.s, self.view, self.discipline = state, view, scheduler.discipline
        self._select, self._degree = scheduler.part("select"), scheduler.part("degree")
        self._place, self._preempt = scheduler.part("place"), scheduler.part("preempt")
        self._steady = self._select is None or getattr(self._select, "steady", False)
        self._by_rank = bool(scheduler.preemptive) and self._preempt is None
        self._reservations = Reservations(state)
        self._mark = np.zeros(len(state.rank), dtype=bool)
        self._plain = self._degree is None and self._place is None and state.sharing is None

    def join(self, job: int) -> None:
        """Put a job into the queue."""
        s = self.s
        s.span[job] = s.left[job] + (s.cost if s.started[job] < np.inf else 0.0)
        if s.excess is not None:
            s.span[job] += s.excess[job]
        if self._steady:
            self._ask(np.array([job]))
        s.queue.add(job)

    @property
    def due(self) -> float:
        """When to decide again though nothing happens: a reservation begins."""
        return self._reservations.due if self.discipline == "conservative" else np.inf

    def decide(self) -> None:
        """Stop and start jobs, as of now."""
        s = self.s
        if self._preempt is not None:
            for job in np.asarray(self._preempt.preempt(self.view)).tolist():
                if s.running.place[job] < 0:
                    raise InstanceError("preempt", f"job {s.workload.names[job]} does not run")
                s.stop(job)
                self.join(job)
        if not s.queue.size:
            s.settle()
            return
        self.sort()
        if self.discipline == "conservative":
            self._reservations.decide(self._in_turn)
        elif self._by_rank:
            self._over_others()
        else:
            self._in_turn()
        s.settle()

    def sort(self) -> None:
        """Put the queue into its order as of now."""
        if not self._steady:
            jobs = self.s.queue.jobs
            self._ask(np.concatenate([jobs, self.s.running.jobs]) if self._by_rank else jobs)
            self.s.queue.sort()

    def _ask(self, jobs: Long) -> None:
        s = self.s
        if self._select is None:
            s.key[jobs] = s.workload.submit[jobs]
            return
        keys = converted(self._select.select(self.view, jobs), lambda x: np.asarray(x, dtype=np.float64), "select")
        if keys.shape != jobs.shape or np.isnan(keys).any():
            raise InstanceError("select", f"{self._select!r} did not give a number for each of {len(jobs)} jobs")
        s.key[jobs] = keys

    def _in_turn(self) -> None:
        """Start jobs in their order: up to the first that does not fit, or whoever fits.

        By EASY, those behind the first that does not fit that do not delay it (Lifka, JSSPP 1995).
        """
        s, queue, at = self.s, self.s.queue, 0
        s.reservation.clear()
        passes = self.discipline == "overtake"
        while 0 <= at < queue.size:
            job = int(queue.jobs[at])
            if not self._try(at):
                at += 1
                if self.discipline == "easy":
                    s.settle()  # those that have just started have an end too
                    s.reservation.reserve(job, s.running.jobs, s.expected, s.nodes, s.log.held)
                elif not passes:
                    return
                passes = True
            elif s.now + s.span[job] > s.reservation.shadow:
                s.reservation.later.change(s.log.held, job, -1)
            if passes:
                at = self._next(at)

    def _next(self, at: int) -> int:
        s = self.s
        if not self._plain:
            if self._degree is not None or s.sharing is not None:
                return at
            small = s.degree[s.queue.jobs[at:]] <= s.free[s.up, 0].sum()
            return at + int(np.argmax(small)) if small.any() else -1
        return next_spare(s.queue.jobs, at, s.now, s.nodes, s.reservation)

    def _try(self, at: int) -> bool:
        s, job = self.s, int(self.s.queue.jobs[at])
        degree = self.wanted(job)
        rows = self.room(job, degree)
        if rows is None:
            return False
        s.queue.remove(at)
        s.start(job, degree, rows)
        return True

    def wanted(self, job: int) -> int:
        """Return the degree at which a job is to start."""
        if self._degree is None:
            return int(self.s.workload.gpus[job])
        degree = converted(self._degree.degree(job, self.view), int, "degree")
        self.s.options.entry(job, degree)
        return degree

    def room(self, job: int, degree: int) -> Rows | None:
        """Return where a job is to start now at a degree, None if it is not."""
        return self.s.find(job, degree) if self._place is None else self._placed(job, degree)

    def _placed(self, job: int, degree: int) -> Rows | None:
        """Ask the policy where a job goes, and see that it can go there."""
        answer = self._place.place(job, degree, self.view)
        if answer is None:
            return None
        rows = converted(answer, _rows, "place")
        s = self.s
        where = f"job {s.workload.names[job]} on nodes {rows.node.tolist()}"
        node, m = rows.node, s.fleet.n_nodes
        if int(rows.gpus.sum()) != degree or (rows.gpus < 1).any() or ((node < 0) | (node >= m)).any():
            raise InstanceError("place", f"{where}: not {degree} GPUs of the {m} nodes")
        if not s.ok[s.kind[job], node].all():
            raise InstanceError("place", f"{where}: it cannot run on all of them now")
        if s.sharing is None:
            if not s.has_room(job, rows):
                raise InstanceError("place", f"{where}: they have not as much free")
        else:
            sound = (rows.gpu >= 0) & (rows.gpu < s.fleet.gpus[node]) & (rows.gpus == 1)
            if not sound.all() or len(set(zip(node.tolist(), rows.gpu.tolist(), strict=True))) < len(node):
                raise InstanceError("place", f"{where}: not {degree} GPUs that are told apart")
            if not s.has_beside(job, rows):
                raise InstanceError("place", f"{where}: they have not as many cores, or as much memory, free")
        return rows

    def _over_others(self) -> None:
        """Start jobs in their order, and stop running ones behind them to make room."""
        s, queue, at = self.s, self.s.queue, 0
        while at < queue.size and self._try(at):
            pass
        victims = self._victims() if queue.size else np.zeros(0, dtype=np.int64)
        while at < queue.size:
            if self._plain:
                seen = queue.jobs[: at + 1] if self.discipline == "head" else queue.jobs
                at, stop = next_claim(seen, at, s.key, s.rank, victims, s.nodes, s.log.held, s.reservation.later)
                if at < 0:
                    return
                stopped, victims = victims[stop].tolist(), victims[~stop]
                for other in stopped:
                    s.stop(other)
                fits = self._try(at)
                assert fits, "room was made"
            else:
                stopped = [] if self._try(at) else self._make_room(at, self._behind(victims, int(queue.jobs[at])))
                if stopped is None:
                    if self.discipline == "head":
                        return
                    at += 1
                    continue
                if stopped:
                    victims = victims[~np.isin(victims, stopped)]
            for other in stopped:
                self.join(other)

    def _victims(self) -> Long:
        """Return the jobs that ran before this decision, the last in order first."""
        s = self.s
        self._mark[s.fresh] = True
        running = s.running.jobs[~self._mark[s.running.jobs]]
        self._mark[s.fresh] = False
        if self._steady:
            self._ask(running)
        return in_order(running, s.key, s.rank)[::-1].copy()

    def _behind(self, victims: Long, job: int) -> Long:
        s, key = self.s, self.s.key[job]
        after = (s.key[victims] > key) | ((s.key[victims] == key) & (s.rank[victims] > s.rank[job]))
        return victims[: int(np.count_nonzero(after))]

    def _make_room(self, at: int, behind: Long) -> list[int] | None:
        """Start the job at a place of the queue instead of some of those behind it; return which, None if it cannot."""
        s = self.s
        held: list[tuple[int, int, Rows]] = []
        for other in behind.tolist():
            held.append((other, int(s.degree[other]), s.log.rows(other)))
            s.stop(other)
            if self._try(at):
                break
        else:
            for other, degree, rows in reversed(held):
                s.start(other, degree, rows)
            return None
        stopped = []
        for other, degree, rows in reversed(held):  # who is in nobody's way is spared
            if s.has_room(other, rows):
                s.start(other, degree, rows)
            else:
                stopped.append(other)
        return stopped


def _rows(answer: Any) -> Rows:
    node, gpus, gpu = (np.asarray(part, dtype=np.int64) for part in answer)
    if not node.shape == gpus.shape == gpu.shape == (len(node),):
        raise ValueError
    return Rows(node, gpus, gpu)
