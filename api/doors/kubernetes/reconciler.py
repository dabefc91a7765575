"""Have a `Scheduler` follow what the API server shows, and say which pods are to be bound where.

Everything is found anew from pods and nodes at each step, so that it does not matter which news was missed.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gangplan.hybrid.online import Scheduler
from gangplan.instances import InstanceError
from gangplan.instances.placement import Demand, Fleet, GangJob

from .objects import Needs, Node, Pod, fleet_of, most, room_of, total

LOG = logging.getLogger("gangplan.kubernetes")
_DEADLINE = 1.0
"""Seconds of a decision."""
_KEPT = 64
"""Constraints of pods that are kept though no pod has them any more, so that nodes need not be exchanged often."""


@dataclass(slots=True)
class Job:
    """A job of the scheduler: pods of a gang that are to start together.

    Attributes:
        seats: the node of each pod, once it runs.
        sign: what it was submitted with.
        own: whether it was decided here, and not found bound.
    """

    gang: str
    pods: list[str]
    sign: Any = None
    seats: dict[str, str] = field(default_factory=dict)
    own: bool = True


@dataclass(slots=True)
class Step:
    """Say what is to be done: pods to bind to nodes, pods to delete, why pods wait; and whether that is all."""

    binds: list[tuple[Pod, str]] = field(default_factory=list)
    evicts: list[Pod] = field(default_factory=list)
    waits: dict[str, str] = field(default_factory=dict)
    all: bool = True


class Reconciler:
    """Follow a cluster.

    Args:
        make: returns the scheduler of the nodes, new or that of a log.
    """

    def __init__(self, make: Callable[[Fleet], Scheduler]) -> None:
        self._make, self._scheduler = make, None
        self._jobs: dict[str, Job] = {}
        self._seen: Any = None  # what the scheduler's nodes were made of
        self._gone: set[str] = set()  # pods that were told to go

    _scheduler: Scheduler | None

    def step(self, pods: Mapping[str, Pod], nodes: Mapping[str, Node], now: float) -> Step:
        """Take in what there is, decide, and return what is to be done.

        Args:
            pods: by uid.
            nodes: by name; nothing is done if there are none.
            now: seconds since 1970.
        """
        step = Step()
        if not nodes:
            return step
        self._gone &= pods.keys()
        self._end(pods, nodes)
        s = self._resized(pods, nodes)
        self._close(s, nodes)
        ready = self._ready(pods)
        for name, job in [(name, job) for name, job in self._jobs.items() if not job.seats]:
            if (same := ready.pop(job.sign, None)) is None:
                self._drop(name)
            else:
                job.pods = [pod.uid for pod in same]
        for sign, some in ready.items():
            self._submit(s, some, sign, now, step)
        self._adopt(s, pods, now)
        self._decide(s, pods, max(now, s.now), step)
        self._bind(pods, nodes, step)
        return step

    @property
    def wake(self) -> float | None:
        """When something changes by the clock alone."""
        return None if self._scheduler is None else self._scheduler.wake

    def _drop(self, name: str, finished: bool = False) -> None:
        assert self._scheduler is not None
        self._jobs.pop(name, None)
        if name in self._scheduler.running and finished:
            self._scheduler.finish(name)
        elif name in (*self._scheduler.running, *self._scheduler.waiting):
            self._scheduler.withdraw(name)

    def _end(self, pods: Mapping[str, Pod], nodes: Mapping[str, Node]) -> None:
        """End jobs whose pods have ended, and give the seats of pods that are gone to those that replace them."""
        free = self._unseated(pods)
        for name, job in [(name, job) for name, job in self._jobs.items() if job.seats]:
            there = [pods[uid] for uid in job.seats if uid in pods]
            live = [pod for pod in there if pod.live]
            if not live:
                self._drop(name, job.own and any(pod.phase == "Succeeded" for pod in there))
                continue
            lost = [uid for uid in job.seats if uid not in pods or pods[uid].phase == "Failed"]
            spare = [pod for pod in free.get(job.gang, ()) if not pod.node][: len(lost)]
            for uid, pod in zip(lost, spare, strict=False):
                free[job.gang].remove(pod)
                job.seats[pod.uid] = job.seats.pop(uid)
                live.append(pod)
            elsewhere = any(pod.node and pod.node != job.seats[pod.uid] for pod in live)
            unbound = [pod for pod in live if not pod.node]
            shut = any(job.seats[x.uid] not in nodes or not nodes[job.seats[x.uid]].open for x in unbound)
            torn = len(lost) > len(spare) and len(unbound) == len(live)
            if elsewhere or shut or torn:
                self._drop(name)

    def _unseated(self, pods: Mapping[str, Pod]) -> dict[str, list[Pod]]:
        """Return the pods of each gang that are to be placed and have no seat, by name."""
        seated = {uid for job in self._jobs.values() for uid in job.seats}
        found = defaultdict[str, list[Pod]](list)
        for pod in sorted(pods.values(), key=lambda x: (len(x.key), x.key)):
            if pod.ours and pod.live and not pod.leaving and pod.uid not in seated and pod.uid not in self._gone:
                found[pod.gang].append(pod)
        return found

    def _resized(self, pods: Mapping[str, Pod], nodes: Mapping[str, Node]) -> Scheduler:
        """Return the scheduler, of the nodes as they are."""
        wheres = {pod.where for pod in pods.values() if pod.ours and pod.live}
        if self._seen and wheres <= self._seen[0] and len(self._seen[0]) <= _KEPT:
            wheres = self._seen[0]
        seats = {uid for job in self._jobs.values() if job.own for uid in job.seats}
        loads: tuple[dict[str, Needs], dict[str, Needs]] = {}, {}
        for pod in pods.values():
            if pod.node and pod.live:
                load = loads[pod.uid not in seats]
                load[pod.node] = total((load.get(pod.node, (0, 0.0, 0.0)), pod.needs))
        rows = [nodes[name] for name in sorted(nodes)]
        room = room_of(rows, *loads)
        fixed = [(x.name, x.has[0], x.rack, x.product, x.labels, x.taints, room[x.name]) for x in rows]
        if (wheres, fixed) != self._seen:
            fleet = fleet_of(rows, sorted(wheres), room)
            if self._scheduler is None:
                self._scheduler = self._make(fleet)
                self._resume(self._scheduler, pods)
            try:
                lost = self._scheduler.resize(fleet)
            except InstanceError as error:  # jobs that run or wait do not fit it any more
                LOG.info("jobs are entered anew: %s", error)
                lost = (*self._scheduler.running, *self._scheduler.waiting)
                for name in lost:
                    self._drop(name)
                self._scheduler.resize(fleet)
            for name in lost:
                self._drop(name)
            self._seen = wheres, fixed
        assert self._scheduler is not None
        return self._scheduler

    def _resume(self, s: Scheduler, pods: Mapping[str, Pod]) -> None:
        """Keep the jobs of a log whose pods are bound as it says, and forget the others."""
        names = s._state.fleet.names
        for name in (*s.running, *s.waiting):
            gang = name.rpartition(".")[0]
            there = [x for x in pods.values() if x.gang == gang and x.ours and x.node and x.live]
            running = s._state.running.get(name)
            per = max(1, running.request.job.worker.grants) if running else 1
            seats = {names[i]: len(ids) // per for i, ids in running.nodes.items()} if running else {}
            if seats and Counter(x.node for x in there) == seats:
                self._jobs[name] = Job(gang, [x.uid for x in there], seats={x.uid: x.node for x in there})
            else:
                s.withdraw(name)

    def _close(self, s: Scheduler, nodes: Mapping[str, Node]) -> None:
        """Have nobody start on nodes that are cordoned or not ready."""
        shut = {window.nodes[0] for window in s.windows if window.drain}
        for name, node in nodes.items():
            if not node.open and name not in shut:
                s.drain(name)
            elif node.open and name in shut:
                s.undrain(name)

    def _ready(self, pods: Mapping[str, Pod]) -> dict[Any, list[Pod]]:
        """Return the pods of gangs that are complete, the oldest first, by what they ask for."""
        found = dict[Any, list[Pod]]()
        bound = Counter(x.gang for x in pods.values() if x.ours and x.live and not x.leaving)
        for gang, some in self._unseated(pods).items():
            pending, size = [pod for pod in some if not pod.node], max(pod.size for pod in some)
            seated = bound[gang] - len(pending)
            if pending and bound[gang] >= size > seated:
                chosen = pending[: size - seated]
                needs, first = chosen[0].needs, chosen[0]
                for pod in chosen:
                    needs = most(needs, pod.needs)
                rank = max(x.priority for x in chosen)
                rest = size > len(chosen)  # others of the gang hold GPUs already
                sign = (gang, len(chosen), needs, first.where, 2 * 10**9 if rest else rank, first.seconds,
                        first.limit, first.within, first.topology)  # fmt: skip
                found[sign] = chosen
        return dict(sorted(found.items(), key=lambda row: max(pod.created for pod in row[1])))

    def _submit(self, s: Scheduler, pods: list[Pod], sign: Any, now: float, step: Step) -> None:
        """Let a gang wait, at the time at which its last pod came."""
        gang, count, (gpu, cpu, memory), where, priority, seconds, limit, within, topology = sign
        name = f"{gang}.{s._state.serial}"
        job = GangJob(
            name, "any", (count,), Demand(gpu, cpu, memory) if any(sign[2]) else Demand(0, 0.001), requires=(where,)
        )
        terms: dict[str, Any] = {"user": gang.partition("/")[0], "title": gang, "limit": limit, "priority": priority}
        terms |= {"within": within, "topology": topology} if within and gpu else {}
        try:
            s.submit(job, seconds, now=max(s.now, min(now, max(x.created for x in pods))), **terms)
            self._jobs[name] = Job(gang, [pod.uid for pod in pods], sign)
        except InstanceError as error:
            step.waits |= {pod.key: str(error) for pod in pods}

    def _adopt(self, s: Scheduler, pods: Mapping[str, Pod], now: float) -> None:
        """Have bound pods with GPUs that no job has run as jobs: those of other schedulers, or of a process before."""
        seated = {uid for job in self._jobs.values() for uid in job.seats}
        groups, count = dict[str, list[Pod]](), Counter(x.gang for x in pods.values() if x.live)
        for pod in pods.values():
            held = pod.node and pod.live and pod.needs[0] and not pod.leaving
            if held and pod.uid not in seated and pod.uid not in self._gone:
                whole = pod.ours and count[pod.gang] == pod.size
                groups.setdefault(pod.gang if whole else f"{pod.gang}#{pod.key}", []).append(pod)
        number = {name: i for i, name in enumerate(s._state.fleet.names)}
        for key, some in groups.items():
            there, per = Counter(pod.node for pod in some), max(pod.needs[0] for pod in some)
            if any(x not in number or s._state.placer.free[number[x]] < n * per for x, n in there.items()):
                continue  # it does not fit beside what was decided; nobody is bound where there is no room
            name = f"{some[0].gang}.{s._state.serial}"
            gang, user = GangJob(name, "any", (len(some),), Demand(per)), name.partition("/")[0]
            try:
                s.submit(gang, some[0].seconds, now=max(now, s.now), together=False, price=None, user=user)
                s.adopt(name, there, since=min(x.created for x in some))
            except InstanceError as error:
                LOG.warning("%s is not taken over: %s", key, error)
                self._drop(name)
                continue
            self._jobs[name] = Job(key, [x.uid for x in some], seats={x.uid: x.node for x in some}, own=False)

    def _decide(self, s: Scheduler, pods: Mapping[str, Pod], now: float, step: Step) -> None:
        more = True
        while more:
            decision = s.decide(_DEADLINE, now=now)
            stopped = {stop.job for stop in decision.stops}
            for start in decision.starts:
                job = self._jobs[start.job]
                per = job.sign[2][0] or 1
                seats = [node for node, ids in start.nodes.items() for _ in range(len(ids) // per)]
                if start.job not in stopped:
                    job.seats = dict(zip(job.pods, seats, strict=False))  # of whole nodes some may be spare
            for name in stopped:
                step.evicts += [pods[uid] for uid in self._jobs[name].seats if uid in pods]
                self._gone |= {*self._jobs[name].seats}
                self._drop(name)
            more, step.all = decision.more and bool(decision.starts or decision.stops), not decision.more
        for name in s.waiting:
            step.waits |= {pods[uid].key: s._waits.get(name) or "it waits" for uid in self._jobs[name].pods}

    def _bind(self, pods: Mapping[str, Pod], nodes: Mapping[str, Node], step: Step) -> None:
        """Bind gangs all of whose pods have room by what the server shows: who was told to go may be there still."""
        left = {name: node.has for name, node in nodes.items()}

        def take(at: str, needs: Needs) -> None:
            left[at] = left[at][0] - needs[0], left[at][1] - needs[1], left[at][2] - needs[2]

        for pod in pods.values():
            if pod.node in left and pod.live:
                take(pod.node, pod.needs)
        for job in self._jobs.values():
            some = [(pods[uid], at) for uid, at in job.seats.items() if uid in pods and not pods[uid].node]
            before = dict(left)
            for pod, at in some:
                take(at, pod.needs)
            if all(min(left[at]) > -1e-3 for _, at in some):
                step.binds += some
            else:
                left = before
                step.waits |= {pod.key: "its GPUs are not free yet" for pod, _ in some}
