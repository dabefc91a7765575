"""Policies that choose places or degrees: packing by alignment, pairs on the same GPUs, and marginal gain."""

from __future__ import annotations

import heapq

import numpy as np

from gangplan.instances.arrays import FloatArray, require_number
from gangplan.instances.lazy import OfLast
from gangplan.instances.placement import SpeedModel
from gangplan.instances.workload import Workload

from ..jobs import Long, Rows
from ..policy import EngineView

_SLACK = 1e-9


class Tetris:
    """Start the job, on the node, whose needs align best with what is free, unless another has much less left to do.

    Grandl et al., "Multi-resource packing for cluster schedulers" (SIGCOMM 2014): the score is a - e p, with the
    alignment a (dot product of needs and what a node has free, each over the node's capacity), the work p that the job
    has left (GPU seconds), and e = m mean(a) / mean(p) over the queue. It needs to know durations.

    Args:
        mix: m; 0 packs only.
    """

    def __init__(self, mix: float = 1.0) -> None:
        require_number(mix, "mix")
        self.mix, self._kinds = mix, OfLast(_kinds)

    def select(self, view: EngineView, jobs: Long) -> FloatArray:
        """Order by score."""
        asks, kind_of = self._kinds(view.workload)
        kinds, best = np.unique(kind_of[jobs]), np.zeros(len(asks))
        best[kinds] = [self._aligned(view, asks[kind]).max(initial=0.0) for kind in kinds.tolist()]
        align, work = best[kind_of[jobs]], view.left(jobs) * asks[kind_of[jobs], 0]
        mean = float(work.mean())
        return np.asarray(work * (self.mix * float(align.mean()) / mean if mean else 0.0) - align)

    def place(self, job: int, degree: int, view: EngineView) -> Rows | None:
        """Take the node that aligns best; a gang that no single node holds goes where it does by default."""
        if view.shared:
            return view.find(job, degree)
        asks, kind_of = self._kinds(view.workload)
        score = self._aligned(view, asks[kind_of[job]])
        node = int(np.argmax(score))
        return Rows.whole([(node, degree)]) if score[node] > 0 else view.find(job, degree)

    def _aligned(self, view: EngineView, asks: FloatArray) -> FloatArray:
        free, fleet = view.spare, view.fleet
        whole = np.stack([fleet.gpus, fleet.cpu, fleet.memory], axis=1)
        fits = (free >= asks).all(axis=1)
        return np.asarray((free / np.maximum(whole, 1e-300) * asks / np.maximum(whole, 1e-300)).sum(axis=1) * fits)


def _kinds(work: Workload) -> tuple[FloatArray, Long]:
    """Return the distinct needs of jobs: GPUs, cores and bytes, float64 (k, 3), and which each job has, int64 (n,)."""
    needs = np.stack([work.gpus * np.asarray(work.share), np.asarray(work.cpu), np.asarray(work.memory)], axis=1)
    asks, kind = np.unique(needs, axis=0, return_inverse=True)
    return asks, kind.ravel().astype(np.int64)


class Gandiva:
    """Give jobs GPUs of their own while there are some, then pack two on the same GPUs, and part those that do badly.

    After Xiao et al., "Gandiva: introspective cluster scheduling for deep learning" (OSDI 2018). A pair has the
    same number of GPUs; it is made if their rates beside each other are expected to add up to at least `gain`, and
    parted for good when the rates they have add up to less, or when nobody waits and there are free GPUs for one of
    them. Without a cost model a pair takes turns, at half its rate each.

    Args:
        gain: of the rates of a pair, 1 is what they do one after the other.
        interval: seconds between looks at the pairs.
    """

    preemptive = True
    shared = True
    steady = True

    def __init__(self, gain: float = 1.0, interval: float = 600.0) -> None:
        require_number(gain, "gain", positive=True)
        require_number(interval, "interval", positive=True)
        self.gain, self.interval = gain, interval
        self._view: EngineView | None = None
        self._parted: set[frozenset[int]] = set()

    def select(self, view: EngineView, jobs: Long) -> FloatArray:
        """Order by submit time."""
        return view.workload.submit[jobs]

    def place(self, job: int, degree: int, view: EngineView) -> Rows | None:
        """Take free GPUs, else those of the best partner."""
        rows = view.find(job, degree)
        if rows is not None:
            return rows
        mates = view.running[view.degree[view.running] == degree]
        total = self._expected(view, job, mates)
        for i in np.lexsort((view.rank[mates], -total)).tolist():
            if total[i] < self.gain:
                return None
            mate = int(mates[i])
            rows = view.rows(mate)
            if self._alone(view, rows) and view.suits(job, rows) and frozenset((job, mate)) not in self._parted:
                return rows
        return None

    def preempt(self, view: EngineView) -> Long:
        """Stop the later submitted of each pair that is to part."""
        if view is not self._view:
            self._view, self._parted = view, set()
        stop: list[int] = []
        free, waits = int(view.free.sum()), len(view.waiting) > 0
        for pair in sorted(view.together, key=lambda jobs: min(view.rank[list(jobs)])):
            job = max(pair, key=lambda j: int(view.rank[j]))
            if job in stop:
                continue  # it shares other GPUs with others
            if sum(float(view.rate[j]) for j in pair) < self.gain * (1 - _SLACK):
                self._parted.add(frozenset(pair))
                stop.append(job)
            elif not waits and int(view.degree[job]) <= free:
                stop.append(job)
                free -= int(view.degree[job])
        return np.array(stop, dtype=np.int64)

    def wake(self, view: EngineView) -> float:
        """Look at the pairs every so often, while there are any."""
        return view.now + self.interval if view.together else np.inf

    def _expected(self, view: EngineView, job: int, mates: Long) -> FloatArray:
        if not isinstance(view.speeds, SpeedModel):
            return np.ones(len(mates))
        index = {name: k for k, name in enumerate(view.speeds.models)}
        mine = index[view.workload.model[job]]
        other = np.array([index[view.workload.model[j]] for j in mates.tolist()], dtype=np.int64)
        gpu = view.speeds.gpu
        return np.asarray(1 / (1 + gpu[mine, other]) + 1 / (1 + gpu[other, mine]))

    def _alone(self, view: EngineView, rows: Rows) -> bool:
        pairs = zip(rows.node.tolist(), rows.gpu.tolist(), strict=True)
        return all(len(view.holders(node, gpu)) == 1 for node, gpu in pairs)


class Optimus:
    """Give each GPU to the job that it helps most.

    Peng et al., "Optimus: an efficient dynamic resource scheduler for deep learning clusters" (EuroSys 2018): every job
    first gets its least degree, those with least left to do first where not all can have it; then the job goes up its
    options whose remaining time falls most per GPU, until no GPU is left or helps. Every so often degrees are chosen
    anew; a running job whose degree changes is stopped for it. It needs to know durations and options.

    Args:
        interval: seconds between choices; a job that arrives in between gets what is free by the same rule.
    """

    preemptive = True
    steady = False

    def __init__(self, interval: float = 600.0) -> None:
        require_number(interval, "interval", positive=True)
        self.interval = interval
        self._view: EngineView | None = None
        self._until = 0.0
        self._target: dict[int, int] = {}

    def preempt(self, view: EngineView) -> Long:
        """Choose degrees if it is time; stop the running jobs whose degrees change."""
        if view is not self._view:
            self._view, self._until = view, view.now
        running = view.running
        if view.now < self._until:
            if len(view.waiting):
                held = {j: int(view.degree[j]) for j in running.tolist()}
                self._target = held | self._shares(view, view.waiting, int(view.free.sum()))
            return np.zeros(0, dtype=np.int64)
        self._until = view.now + self.interval
        jobs = np.concatenate([running, view.waiting])
        self._target = self._shares(view, jobs, int(view.fleet.gpus[view.up].sum()))
        target = np.array([self._target.get(j, 0) for j in running.tolist()], dtype=np.int64)
        return np.asarray(running[target != view.degree[running]])

    def select(self, view: EngineView, jobs: Long) -> FloatArray:
        """Order by the work left, those that get no GPU last."""
        given = np.array([j in self._target for j in jobs.tolist()], dtype=bool)
        return np.where(given, view.left(jobs), np.inf)

    def degree(self, job: int, view: EngineView) -> int:
        """Return the degree chosen."""
        return self._target.get(job, int(view.options.degrees(job)[0]))

    def place(self, job: int, degree: int, view: EngineView) -> Rows | None:
        """Start those that get GPUs."""
        return view.find(job, degree) if job in self._target else None

    def wake(self, view: EngineView) -> float:
        """Look again when degrees are to be chosen, if there are jobs."""
        if not len(view.running) and not len(view.waiting):
            return np.inf
        return self._until if self._until > view.now else view.now + self.interval

    def _shares(self, view: EngineView, jobs: Long, free: int) -> dict[int, int]:
        left, whole = view.left(jobs), view.workload.duration[jobs]
        share = dict(zip(jobs.tolist(), np.divide(left, whole, out=np.zeros(len(jobs)), where=whole > 0), strict=True))
        chosen: dict[int, int] = {}
        gains: list[tuple[float, int, int, int]] = []
        for job in jobs[np.lexsort((view.rank[jobs], left))].tolist():
            least = int(view.options.degrees(job)[0])
            if least <= free:
                free -= least
                chosen[job] = least
                self._offer(gains, view, job, 0, share[job])
        while gains and free:
            _, job, step, more = heapq.heappop(gains)
            if more <= free:
                free -= more
                chosen[job] = int(view.options.degrees(job)[step])
                self._offer(gains, view, job, step, share[job])
        return chosen

    def _offer(
        self, gains: list[tuple[float, int, int, int]], view: EngineView, job: int, step: int, share: float
    ) -> None:
        """Put the next step of a job's options up, if it helps; `share` of its work is left."""
        degrees, durations = view.options.degrees(job), view.options.durations(job)
        if step + 1 < len(degrees):
            more = int(degrees[step + 1] - degrees[step])
            gain = share * float(durations[step] - durations[step + 1]) / more
            if gain > 0:
                heapq.heappush(gains, (-gain, job, step + 1, more))
