"""The graph policy in `Scheduler`: its candidates are a network's, and a guard says when it decides.

The cluster is seen as gangs of GPUs on nodes of racks. What a job asks for besides is not: where the network's place is
refused, the placer finds another one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import ranges
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.learned.online.candidates import IN_SIGHT, SMALL, WAIT, CandidateScratch
from gangplan.learned.online.episodes import look, observe
from gangplan.learned.online.features import BY_RULE
from gangplan.learned.online.guard import BEHIND, EVERYTHING, FIRST, RULES, known
from gangplan.learned.online.policy import GnnPolicy
from gangplan.learned.online.schema import SCHEMA
from gangplan.simulator.gangs.arrays import ARRIVED, NOW, WAITING, GpuRacks, Jobs, State, empty
from gangplan.simulator.gangs.step import start

from ..queueing.queue import in_order
from ..queueing.request import Request
from ..snapshots.snapshot import readable
from ..starting.starts import StartRound
from ..state import SchedulerState
from ..stopping.running_jobs import RunningJob
from .policy import Proposal, Watchdog

TIER, GUARD = "gnn", "guard"
HISTORY = 1024
"""Arrivals that are remembered; half of them are forgotten when there are so many."""
SLICE = 16
"""Decisions that the guard plays in thought at each decision: one on a cluster of `SLICE` times `SMALL` nodes."""
MOST = 512
"""Waiting jobs with which the guard plays, those that came last."""
RULE = 0
"""The guard's leader that is the rule behind the network."""
ENOUGH = 0.6
"""Share of its time after which the network begins no further choice: others are for the next decision."""
ROUNDS = 3
"""Times that the network is asked at each decision: again where a job that it chose is refused."""


class NetworkUse(NamedTuple):
    """What the network of a scheduler did so far.

    Attributes:
        leader: who decides, by the guard: ``gnn``, the rule behind it, or ``heuristic``.
        choices: times that the network chose a job, or to wait.
        corrected: of these, those in which the rule that it corrects would have chosen otherwise.
    """

    leader: str
    choices: int
    corrected: int


class JobDegree(NamedTuple):
    """A waiting job with a number of workers."""

    request: Request
    degree: int


class NetworkTier:
    """The network of one scheduler, and what it knows of the jobs that came.

    Args:
        policy: the network.
        fleet: the nodes.
        proximity: how slow places are; `None` if all are alike.
    """

    def __init__(self, policy: GnnPolicy, fleet: Fleet, proximity: Proximity | None) -> None:
        rack = fleet.topology.group[0]
        self._order = np.argsort(rack, kind="stable")  # nodes rack by rack
        self.policy, self._proximity = policy, proximity
        self.cluster = _cluster(fleet, proximity, self._order)
        self._scratch = CandidateScratch(self.cluster)
        self._at: dict[str, int] = {}  # of jobs whose end is not known
        self._jobs, self._ends = _history(self.cluster)
        self._columns = list(self._jobs.arrays().values())[:-1]
        self.arrived, self.more = 0, False
        self._choices = self._corrected = 0
        self.guard = policy.guard(self.cluster)
        self.thoughts = 0

    def intensity(self, request: Request) -> float:
        """Return how much a job minds being apart."""
        return 0.0 if self._proximity is None else self._proximity.slowdown(request.job.model, 1.0) - 1

    def submitted(self, request: Request) -> None:
        """Note a job that came."""
        jobs, ends = self._jobs, self._ends
        if int(ends.count[ARRIVED]) == HISTORY:
            self._forget()
        at = int(ends.count[ARRIVED])
        degree = (self._degrees(request) or request.job.workers[:1])[-1]  # who fits none waits for nodes
        jobs.submit[at], jobs.gpus[at], jobs.intensity[at] = (
            request.submit,
            min(request.gpus(degree), int(self.cluster.first[-1])),
            self.intensity(request),
        )
        jobs.expected[at] = jobs.work[at] = request.lasts(degree)
        ends.finish[at], self._at[request.name] = np.inf, at
        ends.count[ARRIVED] = at + 1
        self.arrived += 1

    def _forget(self) -> None:
        half = HISTORY // 2
        for column in (*self._columns, self._ends.finish):
            column[:half] = column[half:]
        self._ends.count[ARRIVED] = half
        self._at = {name: at - half for name, at in self._at.items() if at >= half}

    def ended(self, job: RunningJob, now: float) -> None:
        """Note that a job is done, and how long it took."""
        at = self._at.pop(job.name, None)
        if at is not None:
            gpus = job.request.gpus(job.degree)
            self._jobs.gpus[at] = gpus
            self._jobs.expected[at] = job.request.seconds[job.request.job.workers.index(job.degree)]
            self._jobs.work[at] = job.ran(now) + job.request.done / gpus
            self._ends.finish[at] = now

    def forgotten(self, name: str) -> None:
        """Note that a job will not end."""
        self._at.pop(name, None)

    def save(self) -> dict[str, Any]:
        """Return what is known of the jobs that came, for JSON."""
        n = int(self._ends.count[ARRIVED])
        columns = [column[:n].tolist() for column in self._columns]
        ends = [None if end == np.inf else end for end in self._ends.finish[:n].tolist()]
        guard = {"leader": self.guard.leader, "due": self.guard.due, "ahead": self.guard.ahead, "behind": BEHIND}
        return {"arrived": self.arrived, "open": dict(self._at), "jobs": columns, "ends": ends, **guard}

    def load(self, document: Any) -> None:
        """Take over what `save` returned; a comparison that the guard had begun is made when the next one is due.

        Raises:
            InstanceError: if it is something else.
        """
        with readable("snapshot.network"):
            columns, ends = document["jobs"], document["ends"]
            n = len(ends)
            for column, values in zip(self._columns, columns, strict=True):
                column[:n] = values
            gpus = self._jobs.gpus[:n]  # nodes may have gone since
            np.minimum(gpus, self.cluster.first[-1], out=gpus)
            self._ends.finish[:n] = [np.inf if end is None else float(end) for end in ends]
            self._ends.count[ARRIVED] = n
            self._at = {str(name): int(at) for name, at in document["open"].items() if 0 <= at < n}
            self.arrived, due = int(document["arrived"]), int(document["due"])
            leader = range(-1, len(RULES))[int(document["leader"]) + 1]
            ahead = [[float(x) for x in row] for row in document.get("ahead", ())]
            if self.guard.due < EVERYTHING and due < EVERYTHING and document.get("behind") == BEHIND:
                self.guard.leader, self.guard.due, self.guard.ahead = leader, due, ahead
            elif self.guard.due < EVERYTHING:  # who led then was not compared like this
                self.guard.due = max(FIRST, self.arrived + 1)

    def think(self, state: SchedulerState) -> None:
        """Let the guard play on, from this state if a comparison is due."""
        self.thoughts += 1
        if self.arrived >= self.guard.due and self.guard.idle:
            waiting = sorted(state.waiting.values(), key=lambda request: request.serial)
            rows = [JobDegree(x, degrees[-1]) for x in waiting[-MOST:] if (degrees := self._degrees(x))]
            n, self._ends.clock[NOW] = int(self._ends.count[ARRIVED]), state.now
            past = known(self._jobs, self._ends, n)
            self.guard.watch(*self._world(state, rows)[:2], past, self.arrived)
        self.guard.advance(max(1, SLICE * SMALL // max(len(self.cluster.rack), SMALL)))

    def blind(self, state: SchedulerState) -> bool:
        """Return whether jobs may be stopped: plays of the guard know no stops, so nobody is shown to be better."""
        return self.policy.guarded and (state.settings.price is not None or state.running.stoppable > 0)

    @property
    def leader(self) -> str:
        """The tier that decides."""
        if self.guard.leader == RULE:
            return self.policy.behind
        return "heuristic" if self.guard.leader > RULE else TIER

    @property
    def use(self) -> NetworkUse:
        """Return what it did so far."""
        return NetworkUse(self.leader, self._choices, self._corrected)

    def used(self, use: NetworkUse) -> None:
        """Go on counting what it did."""
        self._choices, self._corrected = use.choices, use.corrected

    def compare(self, state: SchedulerState, watchdog: Watchdog, stop: float) -> None:
        """Have the guard compare, once a decision and before it, so that a log can have it do the same."""
        if state.waiting and state.idle and not (self.blind(state) or watchdog.out(GUARD)):
            watchdog.call(GUARD, stop - time.perf_counter(), lambda: self.think(state))

    def decide(self, state: SchedulerState, watchdog: Watchdog, starts: StartRound, stop: float) -> bool:
        """Have the network start jobs until `stop` of the machine's clock if it leads; return whether none other need.

        Without it jobs wait for closer GPUs only as long as the rule behind it leads.
        """
        blind, refused, decided = self.blind(state), set[str](), False
        leads = not blind and self.leader == TIER and not watchdog.out(TIER)
        starts.hopeful = blind or self.guard.leader == RULE
        for _ in range(ROUNDS * leads):
            left = stop - time.perf_counter()
            act = partial(self.propose, state, refused, stop - (1 - ENOUGH) * left)
            chosen, decided = watchdog.call(TIER, left, act) if left > 0 else None, False
            if isinstance(chosen, str):
                watchdog.note(f"{TIER}: {chosen} is unlike what it was trained on")
            if chosen is None or isinstance(chosen, str):
                break
            before = len(refused)
            for name, degree, nodes in chosen:
                if starts.over():
                    return True
                where = (None,) if nodes is None else (nodes, None)  # elsewhere, if other than GPUs are too few there
                if not any(starts.one(name, (degree,), TIER, x, hold=False) for x in where):
                    refused.add(name)
            starts.more = starts.more or self.more
            decided = bool(starts.starts or state.running)
            if len(refused) == before or starts.more:
                break
        starts.hopeful |= leads and not decided
        return decided

    def propose(self, state: SchedulerState, refused: set[str], stop: float = np.inf) -> list[Proposal] | str:
        """Return who starts, in order, with GPUs; or the feature of the scene that is unlike all in training.

        Args:
            state: of the cluster; it is not changed.
            refused: waiting jobs that are left out.
            stop: of the machine's clock; `more` says whether it came before all were chosen.

        Raises:
            ValueError: if a score is not finite.
        """
        rows = [  # those that are seen, and as many that may be as others start
            JobDegree(request, degree)
            for request in sorted(
                (state.waiting[name] for name in islice(in_order(state.queue), 2 * IN_SIGHT) if name not in refused),
                key=lambda request: request.serial,
            )
            for degree in self._degrees(request)
        ]
        if not rows:
            return []
        self._ends.clock[NOW] = state.now
        look(self._jobs, self.cluster, self._ends, self._scratch)
        self._scratch.unseen = max(len(state.waiting) - len(rows), 0)
        jobs, world, first = self._world(state, rows)
        chosen: list[Proposal] = []
        idle: dict[int, list[int]] = {}
        self.more = False
        of = self._scratch, self.policy.net, self.policy.rule, True
        while (k := int(observe(jobs, self.cluster, world, *of))) > 0:
            if (odd := self._scratch.odd) >= 0:
                return SCHEMA.feature(odd)
            rated = self._scratch.score[:k]
            if not np.isfinite(rated).all():
                raise ValueError("a score of the network is not finite")
            best = int(np.argmax(rated))
            self._choices += 1
            self._corrected += best != int(np.argmax(self._scratch.graph.x[:k, BY_RULE]))
            at = int(self._scratch.place[best])
            if at == WAIT:
                break
            row, take = rows[int(world.queue[at]) - first], self._scratch.take[best].copy()
            nodes = {}
            for node in np.flatnonzero(take).tolist():
                own = int(self._order[node])
                left = idle.setdefault(own, _idle(state, own))
                nodes[own], idle[own] = tuple(left[: take[node]]), left[take[node] :]
            chosen.append((row.request.name, row.degree, None if row.request.together else nodes))
            start(jobs, self.cluster, world, at, take)
            _drop(world, rows, first, row.request)
            if time.perf_counter() > stop:
                self.more = True
                break
        return chosen

    def _degrees(self, request: Request) -> list[int]:
        """Return the numbers of workers for which there are GPUs in all."""
        return [degree for degree in request.job.workers if request.gpus(degree) <= self.cluster.first[-1]]

    def _world(self, state: SchedulerState, rows: Sequence[JobDegree]) -> tuple[Jobs, State, int]:
        """Return the jobs that run and wait, their state, and how many run."""
        table = state.running.table()
        end, since, node = table.end, table.since, table.node
        place = np.empty(len(self._order), np.int64)
        place[self._order] = np.arange(len(self._order))
        _, first, job = np.unique(table.serial, return_index=True, return_inverse=True)
        running, n = len(first), len(first) + len(rows)
        count = table.used[0]
        gpus = np.append(np.bincount(job, count, running), [row.request.gpus(row.degree) for row in rows])
        jobs = _table(n, gpus.astype(np.int64))
        jobs.expected[:running], jobs.intensity[:running] = (alone := table.lasts[first]), 1.0
        for i, (request, degree) in enumerate(rows, running):
            jobs.submit[i], jobs.expected[i] = request.submit, request.lasts(degree)
            jobs.intensity[i] = self.intensity(request)
        world = empty(jobs, self.cluster)
        world.clock[NOW], world.queue[: len(rows)], world.running[:] = state.now, np.arange(running, n), np.arange(n)
        world.count[:] = n, len(rows), running
        world.free[:] = state.placer.free[self._order]
        later = np.nextafter(state.now, np.inf)  # who takes longer than expected runs still
        world.start[:running], world.finish[:running] = since[first], np.maximum(end[first], later)
        world.cost[:running] = (end[first] - since[first]) / np.maximum(alone, 1e-9) - 1  # as where they run
        by_node = np.lexsort((job, place[node]))
        parts, on = count[by_node], place[node][by_node]
        begun = np.cumsum(parts) - parts
        head = np.searchsorted(on, on)
        at = self.cluster.first[on] + begun - begun[head]
        gpu = ranges(at, at + parts)
        owner = np.repeat(job[by_node], parts)
        world.held[: len(gpu)] = gpu[np.argsort(owner, kind="stable")]
        world.holder[gpu] = owner
        return jobs, world, running


def _cluster(fleet: Fleet, proximity: Proximity | None, order: NDArray[np.int64]) -> GpuRacks:
    """Return the nodes rack by rack; where all places are alike, links weigh nothing."""
    rack = np.unique(fleet.topology.group[0][order], return_inverse=True)[1].astype(np.int64)
    gpus = fleet.gpus[order].astype(np.int64)
    weight = (0.0, 0.0, 0.0) if proximity is None else (proximity.node, proximity.rack, proximity.cluster)
    begin = np.append(np.flatnonzero(np.diff(rack, prepend=-1)), len(rack))
    return GpuRacks(rack, begin, np.append(0, np.cumsum(gpus)), np.array(weight), np.repeat(np.arange(len(rack)), gpus))


def _table(n: int, gpus: NDArray[np.int64]) -> Jobs:
    return Jobs(np.zeros(n), np.zeros(n), np.zeros(n), gpus, np.zeros(n), np.append(0, np.cumsum(gpus)))


def _history(cluster: GpuRacks) -> tuple[Jobs, State]:
    """Return room for jobs that came, and for which of them are done."""
    jobs = _table(HISTORY, np.ones(HISTORY, np.int64))
    return jobs, empty(jobs, cluster)


def _idle(state: SchedulerState, node: int) -> list[int]:
    """Return the GPUs of a node that nobody holds."""
    return [gpu for gpu in range(int(state.fleet.gpus[node])) if gpu not in state.holders[node]]


def _drop(world: State, rows: Sequence[JobDegree], first: int, request: Request) -> None:
    """Take a job out of the queue with every number of workers."""
    queue = world.queue[: world.count[WAITING]]
    rest = queue[[rows[job - first].request is not request for job in queue.tolist()]]
    world.queue[: len(rest)] = rest
    world.count[WAITING] = len(rest)
