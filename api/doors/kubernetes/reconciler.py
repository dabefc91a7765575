"""Have a `Scheduler` follow what the API server shows, and say which pods are to be bound where.

Everything is found anew from pods and nodes at each step, so that it does not matter which news was missed.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.placement import Demand, Fleet, GangJob
from gangplan.scheduler import Scheduler

from .objects import KubeNode, Needs, Pod, fleet_with, needs_of
from .requests import PODS, Amounts, less, short, total
from .waiting import SHARED, PodUnit, Sizes, UnitPlace, place_of, sizes_of, units, unplaced

LOG = logging.getLogger("gangplan.kubernetes")
_DEADLINE = 1.0
"""Seconds of a decision."""
_KEPT = 64
"""Marks of units that are kept though nobody has them any more, so that nodes need not be exchanged often."""
_WHOLE = np.array([1, 1, 2.0**30])
"""A GPU, a core, a GiB."""

_SHOWN = 4
"""Gangs that a reason names."""

Seats = list[tuple[Pod, str]]
"""Pods, and the nodes where they are to be."""
Pods = Mapping[str, Pod]
"""By uid."""
Places = Mapping[str, UnitPlace]
"""By mark."""


@dataclass(slots=True)
class PodJob:
    """A job of the scheduler: pods of a gang that are to start together.

    Attributes:
        pods: uids.
        key, unit, most: what it was submitted as, and how many of its pods may share a node.
        seats: the node of each pod, once it runs.
        own: whether it was decided here, and not found bound.
        told: whether its pods were told to go: it holds their GPUs until they are gone.
    """

    gang: str
    pods: list[str]
    key: str = ""
    unit: PodUnit | None = None
    most: int = 0
    seats: dict[str, str] = field(default_factory=dict)
    own: bool = True
    told: bool = False


@dataclass(slots=True)
class Actions:
    """Say what is to be done: pods to bind to nodes, pods to delete, why pods wait; and whether that is all."""

    binds: Seats = field(default_factory=list)
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
        self._jobs: dict[str, PodJob] = {}
        self._rows: dict[str, Any] = {}  # of the scheduler's nodes, by mark
        self._seen: Any = None  # what else they were made of
        self._gone: set[str] = set()  # pods that were told to go

    _scheduler: Scheduler | None

    def step(self, pods: Pods, nodes: Mapping[str, KubeNode], now: float, sizes: Sizes | None = None) -> Actions:
        """Take in what there is, decide, and return what is to be done.

        Args:
            pods: by uid.
            nodes: by name; nothing is done if there are none.
            now: seconds since 1970.
            sizes: of gangs whose pods do not state them.
        """
        step, sizes = Actions(), sizes or {}
        self._gone &= pods.keys()
        if not nodes:
            step.waits = {x.key: "there is no node" for x in pods.values() if x.ours and x.live and not x.node}
            return step
        self._end(pods, nodes)
        rows, left = [nodes[name] for name in sorted(nodes)], _left(pods, nodes)
        ahead = dict(left)
        for pod, at in _unbound(self._jobs.values(), pods):
            ahead[at] = less(ahead[at], pod.asks)
        stay = {uid: pod for uid, pod in pods.items() if uid not in self._gone}
        some = dict(units(stay, unplaced(stay, self._placed), sizes, step.waits))
        held = self._stoppable(pods)
        places = {mark: place_of(mark, rows, ahead, held) for mark in {unit.mark for unit in some.values()}}
        s = self._resized(pods, rows, places)
        self._enter(s, some, places, now, step)
        self._adopt(s, pods, sizes, now)
        self._decide(s, pods, places, max(now, s.now), step)
        self._bind(pods, left, step)
        step.evicts = [pods[uid] for uid in sorted(self._gone) if not pods[uid].leaving]
        return step

    @property
    def wake(self) -> float | None:
        """When something changes by the clock alone."""
        return None if self._scheduler is None else self._scheduler.wake

    @property
    def _placed(self) -> set[str]:
        """The pods that have a seat, or were told to go."""
        return {uid for job in self._jobs.values() for uid in job.seats} | self._gone

    def _stoppable(self, pods: Pods) -> dict[str, list[Amounts]]:
        """Return what each pod of jobs that may be stopped holds, by node."""
        held = defaultdict[str, list[Amounts]](list)
        running = self._scheduler._state.running if self._scheduler else {}
        for name, job in self._jobs.items():
            if name in running and running[name].request.price is not None:
                for uid in job.seats.keys() & pods.keys():
                    held[job.seats[uid]].append(pods[uid].asks)
        return held

    def _drop(self, name: str, finished: bool = False) -> None:
        assert self._scheduler is not None
        self._jobs.pop(name, None)
        if name in self._scheduler.running and finished:
            self._scheduler.finish(name)
        elif name in (*self._scheduler.running, *self._scheduler.waiting):
            self._scheduler.withdraw(name)

    def _end(self, pods: Pods, nodes: Mapping[str, KubeNode]) -> None:
        """End jobs whose pods have ended, and give the seats of pods that are gone to those that replace them."""
        free = unplaced(pods, self._placed)
        for name, job in [(name, job) for name, job in self._jobs.items() if job.seats]:
            there = [pods[uid] for uid in job.seats if uid in pods]
            live = [pod for pod in there if pod.live]
            if not live:
                self._drop(name, job.own and any(pod.phase == "Succeeded" for pod in there))
            if not live or job.told:
                continue
            lost = [uid for uid in job.seats if uid not in pods or pods[uid].phase == "Failed"]
            spare = [pod for pod in free.get(job.gang, ()) if not pod.node and not pod.wrong][: len(lost)]
            for uid, pod in zip(lost, spare, strict=False):
                free[job.gang].remove(pod)
                job.seats[pod.uid] = job.seats.pop(uid)
                live.append(pod)
            elsewhere = any(pod.node and pod.node != job.seats[pod.uid] for pod in live)
            unbound = [pod for pod in live if not pod.node]
            seats = [(x, nodes.get(job.seats[x.uid])) for x in unbound]
            shut = any(at is None or at.refuses(pod.where) for pod, at in seats)
            torn = len(lost) > len(spare) and len(unbound) == len(live)
            if elsewhere or shut or torn:
                self._drop(name)

    def _resized(self, pods: Pods, rows: Sequence[KubeNode], places: Places) -> Scheduler:
        """Return the scheduler, of the nodes as they are."""
        room = self._room(pods, rows)
        seen = [(x.name, x.rack, x.product, room[x.name]) for x in rows]
        marks = {mark: place.row for mark, place in places.items()}
        if self._seen == seen and len({**self._rows, **marks}) <= _KEPT:
            marks = {**self._rows, **marks}
        if self._seen != seen or marks.keys() != self._rows.keys() or any(
            (row != self._rows[mark]).any() for mark, row in marks.items()
        ):  # fmt: skip
            fleet = fleet_with(rows, marks, room)
            if self._scheduler is None:
                self._scheduler = self._make(fleet)
                self._resume(self._scheduler, pods)
            for name in self._scheduler.resize(fleet):
                self._drop(name)
            self._seen, self._rows = seen, marks
        assert self._scheduler is not None
        return self._scheduler

    def _room(self, pods: Pods, rows: Sequence[KubeNode]) -> dict[str, Needs]:
        """Return GPUs, cores and memory of each node that gangs may use.

        All GPUs, and those that are held though the node has lost them; of the others what pods leave that are in no
        job of the scheduler's own, in whole cores and GiB.
        """
        own = {uid for job in self._jobs.values() if job.own for uid in job.seats}
        mine, theirs = (defaultdict[str, Any](lambda: np.zeros(3)) for _ in range(2))
        bound = [(x, x.node) for x in pods.values() if x.node and x.live]
        for pod, at in _unbound(self._jobs.values(), pods) + bound:
            (mine if pod.uid in own else theirs)[at] += pod.needs
        room = {}
        for node in rows:
            has, held, others = needs_of(node.has), mine[node.name], theirs[node.name]
            _, cpu, memory = np.maximum(held, has - np.ceil(others / _WHOLE) * _WHOLE).tolist()
            room[node.name] = int(max(has[0], held[0] + others[0])), max(cpu, 0.0), max(memory, 0.0)
        return room

    def _resume(self, s: Scheduler, pods: Pods) -> None:
        """Keep the jobs of a log whose pods are bound as it says, and forget the others."""
        names = s._state.fleet.names
        for name in (*s.running, *s.waiting):
            gang = name.rpartition(".")[0]
            there = [x for x in pods.values() if x.gang == gang and x.ours and x.node and x.live]
            running = s._state.running.get(name)
            per = max(1, running.request.job.worker.grants) if running else 1
            seats = {names[i]: len(ids) // per for i, ids in running.nodes.items()} if running else {}
            if seats and Counter(x.node for x in there) == seats:
                self._jobs[name] = PodJob(gang, [x.uid for x in there], seats={x.uid: x.node for x in there})
                s.change(name, requires=())
            else:
                s.withdraw(name)
        for window in s.windows:  # of earlier versions
            if window.drain:
                s.undrain(window.nodes[0])

    def _enter(self, s: Scheduler, some: Mapping[str, PodUnit], places: Places, now: float, step: Actions) -> None:
        """Have the units wait, and nothing else: those that do keep their place, new ones come the oldest first."""
        new = dict(sorted(some.items(), key=lambda row: row[1].created))
        for name, job in [(name, job) for name, job in self._jobs.items() if not job.seats]:
            unit = some.get(job.key)
            if unit is not None and unit == job.unit and places[unit.mark].most == job.most:
                job.pods = [pod.uid for pod in new.pop(job.key).pods]
            else:
                self._drop(name)
        for key, unit in new.items():
            gang, most = unit.pods[0].gang, places[unit.mark].most
            name, worker = f"{gang}.{s._state.serial}", Demand(*unit.needs) if any(unit.needs) else Demand(0, 0.001)
            share = most if most < unit.count else None
            try:
                asks = GangJob(name, "any", (unit.count,), worker, requires=(unit.mark,), most_per_node=share)
                s.submit(asks, unit.seconds, now=max(s.now, now), since=unit.created, **unit.terms)
                self._jobs[name] = PodJob(gang, [x.uid for x in unit.pods], key, unit, most)
            except InstanceError as error:
                step.waits |= {pod.key: str(error) for pod in unit.pods}

    def _adopt(self, s: Scheduler, pods: Pods, sizes: Sizes, now: float) -> None:
        """Have bound pods with GPUs that no job has run as jobs: those of other schedulers, or of a process before.

        A gang of ours goes on as what it is; a part of one, and pods of others, are never stopped.
        """
        gangs, jobs = dict[str, list[Pod]](), {uid: name for name, job in self._jobs.items() for uid in job.seats}
        for pod in pods.values():
            if pod.live and pod.uid not in self._gone:
                gangs.setdefault(pod.gang if pod.ours else f"#{pod.key}", []).append(pod)
        for gang in gangs.values():
            some, size = [x for x in gang if x.needs[0]], max(sizes_of(gang, sizes), default=1)
            whole = gang[0].ours and len(gang) >= size and all(x.node for x in gang)
            parts = {jobs[x.uid] for x in gang if x.uid in jobs}
            if whole and len(parts) > 1 and len(gang) == size and len({x.needs[0] for x in some}) == 1:
                for name in parts:  # its rest has joined it
                    self._drop(name)
                parts, jobs = set(), {uid: name for uid, name in jobs.items() if name not in parts}
            if not (whole and some and not parts and self._take(s, some, now, gang[0].terms)):
                for pod in some:
                    if pod.node and pod.uid not in jobs:
                        self._take(s, [pod], now, {})

    def _take(self, s: Scheduler, some: Sequence[Pod], now: float, terms: Mapping[str, Any]) -> bool:
        """Have pods run as a job, that is never stopped if it has no terms; return whether there is room for it."""
        there, per = Counter(pod.node for pod in some), max(pod.needs[0] for pod in some)
        number = {name: i for i, name in enumerate(s._state.fleet.names)}
        if any(x not in number or s._state.placer.free[number[x]] < n * per for x, n in there.items()):
            return False  # it does not fit beside what was decided; nobody is bound where there is no room
        gang = some[0].gang
        name = f"{gang}.{s._state.serial}"
        given: dict[str, Any] = {key: x for key, x in terms.items() if key not in SHARED}
        given = given or {"price": None, "user": some[0].terms["user"]}
        try:
            job = GangJob(name, "any", (len(some),), Demand(per))
            s.submit(job, some[0].seconds, now=max(now, s.now), together=False, **given)
            s.adopt(name, there, since=min((x.since for x in some if x.since), default=None))
        except InstanceError as error:
            LOG.warning("%s is not taken over as it is: %s", gang, error)
            self._drop(name)
            return bool(terms) and self._take(s, some, now, {})
        seats = {x.uid: x.node for x in some}
        self._jobs[name] = PodJob(gang if terms else f"{gang}#", [*seats], seats=seats, own=False)
        return True

    def _decide(self, s: Scheduler, pods: Pods, places: Places, now: float, step: Actions) -> None:
        more = True
        while more:
            decision = s.decide(_DEADLINE, now=now)
            stopped = {stop.job for stop in decision.stops}
            for start in decision.starts:
                job = self._jobs[start.job]
                if start.job not in stopped:
                    assert job.unit is not None
                    per = job.unit.needs[0] or 1
                    seats = [node for node, ids in start.nodes.items() for _ in range(len(ids) // per)]
                    job.seats = dict(zip(job.pods, seats, strict=False))  # of whole nodes some may be spare
                    s.change(start.job, requires=())  # it stays whatever its nodes become
            for name in (*stopped, *(x.job for x in decision.stopping)):
                job = self._jobs[name]
                job.told, job.seats = True, {x: at for x, at in job.seats.items() if x in pods and pods[x].node}
                self._gone |= {uid for uid in job.seats if pods[uid].live}
                if name in stopped or not job.seats:
                    self._drop(name)
            more, step.all = decision.more and bool(decision.starts or decision.stops), not decision.more
        for name, request in s._state.waiting.items():
            job, degree = self._jobs[name], request.job.gang
            few = s._state.ground(request, degree).total < s._state.placed(request, degree).workers[0]
            why = "the nodes are too few for it" if few else s._waits.get(name) or "no room is free"
            if claim := s._state.notices.claims.get(name):  # without seconds, so that it is said once
                why = f"it starts after {', '.join(x.rpartition('.')[0] for x in claim.after[:_SHOWN])}"
            others = places[job.unit.mark].why if job.unit else ""
            step.waits |= {pods[uid].key: f"{why}; {others}" if others else why for uid in job.pods}

    def _bind(self, pods: Pods, left: dict[str, dict[str, float]], step: Actions) -> None:
        """Bind gangs all of whose pods have room by what the server shows: who was told to go may be there still.

        One that has none even without those is placed anew.
        """
        soon = dict(left)
        for pod in pods.values():
            if pod.node in left and pod.live and (pod.leaving or pod.uid in self._gone):
                soon[pod.node] = total(soon[pod.node], pod.asks)
        for name, job in list(self._jobs.items()):
            some = _unbound([job], pods)
            lack = _seated(some, left)
            if not lack:
                step.binds += some
                _seated(some, soon)
                continue
            step.waits |= {pod.key: f"{lack} not free yet" for pod, _ in some}
            if _seated(some, soon):
                self._drop(name)
                step.all = False


def _unbound(jobs: Iterable[PodJob], pods: Pods) -> Seats:
    """Return the pods of jobs that are to be bound, and where."""
    some = ((pods[uid], at) for job in jobs for uid, at in job.seats.items() if uid in pods)
    return [(pod, at) for pod, at in some if pod.live and not pod.node and not pod.leaving]


def _left(pods: Pods, nodes: Mapping[str, KubeNode]) -> dict[str, dict[str, float]]:
    """Return what pods leave of each node: nothing if what one holds cannot be read."""
    left = {name: dict(node.has) for name, node in nodes.items()}
    for pod in pods.values():
        if pod.node in left and pod.live:
            left[pod.node] = less(left[pod.node], pod.asks)
    return left | {pod.node: {PODS: 0.0} for pod in pods.values() if pod.node in left and pod.live and not pod.asks}


def _seated(some: Seats, left: dict[str, dict[str, float]]) -> str:
    """Take what pods ask for from what is left of their nodes; return what is too little, and take nothing then."""
    after = dict(left)
    for pod, at in some:
        if lack := short(after[at], pod.asks):
            return lack
        after[at] = less(after[at], pod.asks)
    left.update(after)
    return ""
