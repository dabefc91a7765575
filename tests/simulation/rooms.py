"""The books of what is where, and of where a job has room: by labels, types, racks, groups, windows, failures."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

from .arrays import Arrays
from .jobs import SLACK, Job, Node, Nodes
from .notices import Notices
from .shares import Shares


class Rooms:
    """The cluster as events and decisions leave it."""

    def __init__(self, cluster: dict[str, Any]) -> None:
        self.cluster, self.near = cluster, cluster["near"]
        self.patient = cluster["policy"] == "patient"
        self.close = self.patient or cluster["policy"] == "gnn"  # jobs may wait for closer GPUs
        self.options = {"together": not (self.near and self.close)} | cluster["options"]
        self.rack = {x["name"]: i % cluster["racks"] for i, x in enumerate(cluster["nodes"])}
        self.notices, self.arrays = Notices(self), Arrays(self)
        self.nodes = {x["name"]: Node(x, cluster["nic"]) for x in cluster["nodes"]}
        self.runs: dict[str, list[str]] | None = cluster["runs"]
        self.now, self.serial, self.starts, self.longest, self.turns = 0.0, 0, 0, 0.0, 0
        self.waiting: dict[str, Job] = {}
        self.running: dict[str, Job] = {}
        self.held: dict[str, Job] = {}  # those that may not wait yet
        self.over: set[str] = set()
        self.gone: set[str] = set()  # of those the ones that were withdrawn
        self.torn: dict[str, tuple[str, int, Nodes]] = {}  # gangs that lost a node: it, and what they have elsewhere
        self.windows: dict[str, dict[str, Any]] = {}  # nodes, begin, end, jobs that may be there
        self.served: list[tuple[float, float]] = []  # since when who was due and starts, and when
        self.books = Shares(self)
        self.calm = all(n.up for n in self.nodes.values())  # and jobs end when expected, each event is decided on

    @property
    def idle(self) -> int:
        """GPUs of nodes that are up which nobody holds."""
        return sum(n.gpus - sum(g >= 0 for g in n.holder) for n in self.nodes.values() if n.up)

    def room(self, job: Job, node: Node, *, empty: bool = False, up: bool = True, without: Iterable[str] = ()) -> int:
        """Return how many workers of a job a node takes beside its jobs, or without some of them."""
        if (up and not node.up) or not job.requires <= node.labels or not node.taints <= job.tolerates:
            return 0
        if job.grants and self.runs is not None and node.type not in self.runs.get(job.spec["model"], ()):
            return 0
        if job.accepts and node.type not in job.accepts:
            return 0
        count, used = node.gpus, [0.0, 0.0, 0.0]
        for other in () if empty else node.jobs.values():
            if other.name in without:
                continue
            if job.whole or other.whole or other.name in job.apart or job.name in other.apart:
                return 0
            held = len(other.nodes[node.name])
            count -= held if other.grants else 0
            used = [u + need * (held // other.each) for u, need in zip(used, other.need, strict=True)]
        count = min(count // job.grants if job.grants else 10**9, job.most)
        for need, has, gone in zip(job.need, node.has, used, strict=True):
            if need:
                count = min(count, max(0, int((has * (1 + SLACK) - gone) / need + SLACK)))
        return count

    def bundle(self, job: Job, degree: int, *, up: bool = True) -> int:
        """Return how many workers stay together: as many as let an empty cluster hold all, 0 if none do."""
        key = degree, up
        if job.known != self.turns:
            job.known, job.sizes = self.turns, {}
        if key not in job.sizes:
            rooms = {name: self.room(job, n, empty=True, up=up) for name, n in self.nodes.items()}
            most = min(degree, max(rooms.values(), default=0)) if job.together else job.group
            sizes = [b for b in range(most, 0, -1) if b % job.group == 0]
            job.sizes[key] = next((b for b in sizes if self._in_one(job, rooms, b, degree)), 0)
        return job.sizes[key]

    def part(self, job: Job, name: str, *, near: bool = False) -> tuple[Any, ...]:
        """Return what a node has that all nodes of a job have in common; `near`: are to have if there is the room."""
        level = {"": "", "node": name, "rack": self.rack[name]}[job.within if job.required or near else ""]
        return level, self.nodes[name].type if job.one_type or (near and job.on) else ""

    def _in_one(self, job: Job, rooms: dict[str, int], size: int, degree: int) -> bool:
        """Return whether nodes that have enough in common take so many workers, so many at a time."""
        held: dict[Any, int] = {}
        for name, room in rooms.items():
            part = self.part(job, name)
            held[part] = held.get(part, 0) + room // size
        return max(held.values(), default=0) >= -(-degree // size)

    def fits(self, job: Job, nodes: Iterable[Node] | None = None) -> bool:
        """Return whether a job surely has room for one of its numbers of workers that no limit keeps, on some nodes."""
        nodes = self.open(job, self.nodes.values() if nodes is None else nodes)
        degrees = [d for d in job.workers if not self.books.limited(job, self.books.wants(job, d))]
        return self._holds(job, {n.name: self.room(job, n) for n in nodes}, degrees)

    def open(self, job: Job, nodes: Iterable[Node]) -> list[Node]:
        """Return the nodes that surely no window closes to a job before it ends there."""
        slow = max(job.on.values(), default=1.0)
        takes = inf if self.near else max(job.takes(d, slow) or inf for d in job.workers)
        return [n for n in nodes if not self.shut(job, n.name, takes)]

    def shut(self, job: Job, node: str, takes: float, at: float | None = None) -> str:
        """Return the window that closes a node to a job before it ends, "" if none does."""
        at = self.now if at is None else at
        for name, w in self.windows.items():
            late = w["begin"] <= at or w["begin"] < at + takes
            if node in w["nodes"] and job.name not in w["jobs"] and late and at < w["end"]:
                return name
        return ""

    def _holds(self, job: Job, rooms: dict[str, int], degrees: list[int] | None = None) -> bool:
        """Return whether nodes that take so many workers hold a job, with one of some numbers of workers."""
        if not any(rooms.values()):
            return False
        sizes = ((d, self.bundle(job, d)) for d in (job.workers if degrees is None else degrees))
        return any(b and self._in_one(job, rooms, b, d) for d, b in sizes)

    def admits(self, spec: dict[str, Any]) -> bool:
        """Return whether a new job can ever run here."""
        job = Job(spec, self.options, 0.0, 0)
        if any(d % job.group for d in job.workers) or job.most < job.group:
            return False
        if not job.grants and self.cluster["policy"] == "gnn":
            return False
        if spec.get("await_nodes"):
            return not self.books.never(job, endless=True)
        return self.possible(job)

    def possible(self, job: Job) -> bool:
        """Return whether a job can ever run on the nodes that there are."""
        return self.bundle(job, job.workers[0], up=False) > 0 and not self.books.never(job)

    def earliest(self, job: Job, running: Iterable[Job]) -> float:
        """Return when a job fits if nobody starts and those that run, no others, end when expected."""
        gone = {*self.running} - {x.name for x in running}
        if self.windows:
            return self._earliest_beside(job, list(running), gone)
        rooms = {name: self.room(job, n, without=gone) for name, n in self.nodes.items()}
        if self._holds(job, rooms):
            return self.now
        for other in sorted(running, key=lambda x: x.end(self.now)):
            gone.add(other.name)
            rooms |= {name: self.room(job, self.nodes[name], without=gone) for name in other.nodes}
            if self._holds(job, rooms):
                return other.end(self.now)
        return inf

    def _earliest_beside(self, job: Job, running: list[Job], gone: set[str]) -> float:
        """Return when a job fits where no window closes nodes to it until it ends: at an end, or once they open."""
        takes = job.takes(job.workers[0])
        assert takes is not None
        ends = {x.name: x.end(self.now) for x in running}
        opens = [w["end"] for w in self.windows.values() if self.now < w["end"] < inf]
        for time in sorted({self.now, *ends.values(), *opens}):
            out = gone | {name for name, end in ends.items() if end <= time and time > self.now}
            nodes = [n for name, n in self.nodes.items() if not self.shut(job, name, takes, time)]
            if self._holds(job, {n.name: self.room(job, n, without=out) for n in nodes}):
                return time
        return inf

    def slower(self, job: Job, degree: int, nodes: Nodes) -> float:
        """Return how many times its seconds a job takes on the first GPUs that it needs of those it has."""
        types = max((job.on.get(self.nodes[name].type, 1.0) for name in nodes), default=1.0)
        if not self.near or not job.grants:
            return types
        used, left = [], degree * job.grants
        for name, gpus in nodes.items():
            used += [name] if left > 0 else []
            left -= len(gpus)
        node, rack, cluster = self.near["links"]
        racks = len({self.rack[name] for name in used})
        cost = (degree * job.grants - len(used)) * node + (len(used) - racks) * rack + (racks - 1) * cluster
        return (1 + float(self.near["m"]) * cost) * types
