"""The books of the independent model: what a cluster is like, who holds what, and what a decision may do to it.

It is written from docs/scheduler.md and public docstrings alone and shares no code with what it checks.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, inf, nextafter
from typing import Any

from .arrays import Arrays
from .notices import Notices
from .shares import Shares
from .wrong import hold

SLACK = 1e-9
"""Of an amount: sums of floating-point numbers lose a little."""
PATIENCE, MAX_WAIT, LEAST = 50.0, 86400.0, 10.0
LONGER = 0.091
"""By whose exponential a job is slower than at best if it starts nonetheless, by the patient rule."""
Nodes = dict[str, tuple[int, ...]]


class Node:
    """A node and who is on it."""

    def __init__(self, spec: dict[str, Any], nic: float) -> None:
        self.name, self.gpus, self.type = spec["name"], spec["gpus"], spec["type"]
        self.labels, self.up, self.taints = set(spec["labels"]), spec["usable"], set(spec.get("taints", ()))
        self.has = (spec["cpu"], spec["memory"], nic)
        self.holder: dict[int, Job] = {}  # by GPU; tasks without any have numbers below 0
        self.jobs: dict[str, Job] = {}


class Job:
    """A job that was submitted; `left` is of its work, `pays` the seconds its next start costs."""

    def __init__(self, spec: dict[str, Any], options: dict[str, Any], now: float, serial: int) -> None:
        self.name, self.spec, self.submit, self.serial = spec["name"], spec, now, serial
        self.workers: list[int] = spec["workers"]
        gpu, *self.need = spec["worker"]
        self.grants, self.apart, self.requires = int(gpu), set(spec["apart"]), set(spec["requires"])
        self.each = self.grants or 1  # seats of a worker
        self.servers = spec.get("servers", 0)
        if self.servers:  # each worker sets aside what its share of them needs, rounded up
            share = -(-self.servers // self.workers[0])
            self.need = [n + share * s for n, s in zip(self.need, spec["server"][1:], strict=True)]
        self.tolerates, self.on = set(spec.get("tolerates", ())), dict(spec.get("on") or {})
        self.accepts = set(self.on or spec.get("gpu_types", ())) if self.grants else set[str]()
        self.group, self.within = spec.get("group", 1), spec.get("within", "")
        self.required = spec.get("topology", "required") == "required"
        self.one_type = not spec.get("mixed", False) and bool(self.on or len(self.accepts) > 1)
        self.most, self.whole = spec["most_per_node"] or 10**9, spec["whole_nodes"]
        self.together = options.get("together", True) if spec["together"] is None else spec["together"]
        self.together = bool(self.together and self.grants)
        self.price = options.get("price") if spec["price"] is None else spec["price"]
        seconds = spec["seconds"]
        if isinstance(seconds, int | float):
            seconds = [seconds * self.workers[-1] / d for d in self.workers]
        least, most = min(self.on.values(), default=1.0), max(self.on.values(), default=1.0)
        self.worst = None if seconds is None else [x * most for x in seconds]
        seconds = None if seconds is None else [x * least for x in seconds]  # on the type that is best
        self.on = {kind: x / least for kind, x in self.on.items()}
        self.seconds: list[float] | None = seconds  # of each number of workers, None if they were not told
        self.left, self.pays, self.repeats = 1.0, 0.0, False
        self.queue, self.user, self.level = spec.get("queue", ""), spec.get("user", ""), spec.get("priority", 0)
        self.begin, self.after, self.ready = spec.get("begin", 0.0), list(spec.get("after", ())), now
        self.patience, self.max_wait = options.get("patience", PATIENCE), options.get("max_wait", MAX_WAIT)
        self.due = self.due_from(now, self.worst)
        self.nodes: Nodes = {}
        self.known, self.sizes = -1, dict[Any, int]()
        self.degree, self.since, self.lasts, self.begun, self.urgent = 0, now, 0.0, 0, False
        self.slower = 1.0  # times its seconds that it takes where it runs
        self.until, self.array, self.priced = inf, spec.get("array", ""), spec["price"] is not None

    def takes(self, degree: int, slower: float = 1.0) -> float | None:
        """Return the seconds of its next start, `None` if they were not told."""
        if self.seconds is None:
            return None
        return self.seconds[self.workers.index(degree)] * self.left * slower + self.pays

    def ran(self, now: float) -> float:
        """Return the seconds for which it got on since its last start."""
        return max(0.0, now - self.since - self.pays)

    def end(self, now: float) -> float:
        """Return when it is expected to be done: as long again, if that is over."""
        end = min(self.since + self.lasts, self.until)
        return end if end >= now else now + (now - self.since)

    def stop(self, now: float) -> None:
        """Keep what it has got on with, have it pay when it runs again, and not count as waiting what it ran."""
        if self.seconds is not None:
            whole = self.seconds[self.workers.index(self.degree)]
            done = self.ran(now) / self.slower / whole if whole else 0.0
            self.left = self.left - done if self.left > done else done
        self.again(now)

    def again(self, now: float) -> None:
        """Have it pay when it runs again, and be due later by as long as it ran."""
        self.repeats, self.pays, self.due = self.price is not None, self.price or 0.0, self.due + now - self.since

    def ripe(self, since: float) -> None:
        """Have it wait from now on, due by when it might."""
        if self.due < inf:
            self.due = self.due_from(since, self.longest)

    @property
    def longest(self) -> list[float] | None:
        """Its seconds on the slowest type."""
        most = max(self.on.values(), default=1.0)
        return self.seconds and [x * most for x in self.seconds]

    def retune(self, options: dict[str, Any], now: float, runs: bool) -> None:
        """Go by other settings: due by them, from when it might wait; who ran before it was due did."""
        if not self.priced:
            self.price = options.get("price")
            self.pays = (self.price or 0.0) if self.repeats and not runs else self.pays
        before = self.due_from(0.0, self.longest)
        self.patience, self.max_wait = options.get("patience", PATIENCE), options.get("max_wait", MAX_WAIT)
        after = self.due_from(0.0, self.longest)
        if before == after or self.due == inf:
            return
        due = self.due
        self.due = min(max(due - before, self.submit), self.since if runs else now) + after
        if runs:
            self.due = max(self.due, nextafter(self.since, inf)) if due > self.since else min(self.due, self.since)

    def turn_back(self, now: float) -> None:
        """Have what has happened since a time have happened then."""
        late = max(0.0, self.submit - now)
        self.submit, self.due, self.ready = self.submit - late, self.due - late, min(self.ready, now)
        self.since = min(self.since, now)

    def due_from(self, since: float, seconds: list[float] | None) -> float:
        """Return when it is due that may wait since then."""
        longest, most = max(seconds or [inf]), self.max_wait
        return since + min(self.patience * longest, inf if most is None else max(LEAST * longest, most))


class World:
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

    # ---- room ----

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
        """Return whether a job surely has room for one of its numbers of workers, on some nodes."""
        takes = inf if self.near else max(job.takes(d) or inf for d in job.workers)
        nodes = [n for n in (self.nodes.values() if nodes is None else nodes) if not self.shut(job, n.name, takes)]
        return self._holds(job, {n.name: self.room(job, n) for n in nodes})

    def shut(self, job: Job, node: str, takes: float, at: float | None = None) -> str:
        """Return the window that closes a node to a job before it ends, "" if none does."""
        at = self.now if at is None else at
        for name, w in self.windows.items():
            late = w["begin"] <= at or w["begin"] < at + takes
            if node in w["nodes"] and job.name not in w["jobs"] and late and at < w["end"]:
                return name
        return ""

    def _holds(self, job: Job, rooms: dict[str, int]) -> bool:
        """Return whether nodes that take so many workers hold a job."""
        if not any(rooms.values()):
            return False
        sizes = ((d, self.bundle(job, d)) for d in job.workers)
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

    # ---- events ----

    def may(self, what: str, name: Any) -> bool:
        """Return whether an event can happen now: a running job ends, a node that is up fails."""
        if not isinstance(name, str):
            return False
        if what in ("fail", "repair"):
            return name in self.nodes and self.nodes[name].up == (what == "fail")
        if what in ("finish", "report"):
            return name in self.running
        if what == "stopped":
            return name in self.notices.until
        return name in self.waiting or name in self.running or name in self.held

    def known(self, name: str) -> bool:
        """Return whether a job was submitted."""
        return name in self.waiting or name in self.running or name in self.held or name in self.over

    def _lacks(self, job: Job) -> bool:
        """Return whether a job has to wait for another."""
        return any(name not in self.over or name in self.gone for name in job.after)

    def submit(self, spec: dict[str, Any]) -> None:
        """Let a job wait."""
        job = Job(spec, self.options, self.now, self.serial)
        held = self._lacks(job) or job.begin > self.now
        held = held or self.arrays.rests(job)
        (self.held if held else self.waiting)[job.name] = job
        self.serial += 1
        self.longest = max([self.longest, *(x + (job.price or 0.0) for x in job.worst or [inf])])

    def free(self, name: str) -> Job:
        """Have a running job hold nothing any more."""
        job = self.running.pop(name)
        self.notices.over(job)
        for node, gpus in job.nodes.items():
            del self.nodes[node].jobs[name]
            for gpu in gpus:
                del self.nodes[node].holder[gpu]
        return job

    def finish(self, name: str) -> None:
        """Have a job be done."""
        done = self.free(name)
        self.calm &= abs(done.since + done.lasts - self.now) <= 1e-6 * max(1.0, self.now)
        self.over.add(name)
        for job in [x for x in self.held.values() if name in x.after and not self._lacks(x)]:
            job.ready = self.now
            if job.begin <= self.now:
                self._ripen(job)
        self.arrays.left(done)

    def tick(self) -> None:
        """Forget windows that are over, and have those wait whose time has come."""
        self.windows = {name: w for name, w in self.windows.items() if w["end"] > self.now}
        for job in [x for x in self.held.values() if x.begin <= self.now and not self._lacks(x)]:
            self._ripen(job)

    def _ripen(self, job: Job) -> None:
        if not self.arrays.rests(job):
            self.enter(job, max(job.begin, job.ready))

    def enter(self, job: Job, since: float) -> None:
        """Have a job wait that was held until then."""
        self.waiting[job.name] = self.held.pop(job.name)
        job.ripe(since)

    def halt(self, name: str) -> None:
        """Have a job have stopped that was told to."""
        job = self.waiting[name] = self.free(name)
        self.calm = False
        job.stop(self.now)

    def configure(self, settings: dict[str, Any]) -> None:
        """Go by other settings from now on."""
        self.calm = False
        self.notices.unsettle()
        rules = settings.get("sharing", self.books.rules)
        self.options = self.options | {key: value for key, value in settings.items() if key != "sharing"}
        self.books = Shares(self, rules)
        for job in (*self.waiting.values(), *self.running.values(), *self.held.values()):
            job.retune(self.options, self.now, job.name in self.running)
            self.longest = max([self.longest, *(x + (job.price or 0.0) for x in job.longest or [inf])])

    def resize(self, nodes: list[dict[str, Any]]) -> tuple[str, ...]:
        """Exchange nodes; return who ran on those that are gone and waits again."""
        names = {x["name"] for x in nodes}
        lost = sorted({name for n in self.nodes.values() if n.name not in names for name in n.jobs})
        for name in lost:
            job = self.waiting[name] = self.free(name)
            job.again(self.now)
        self.rack = {x["name"]: x["rack"] for x in nodes}
        self.nodes = {x["name"]: self.nodes.get(x["name"]) or Node(x, self.cluster["nic"]) for x in nodes}
        for w in self.windows.values():
            w["nodes"] = [node for node in w["nodes"] if node in names]
        self.windows = {name: w for name, w in self.windows.items() if w["nodes"]}
        self.torn = {name: x for name, x in self.torn.items() if {x[0], *x[2]} <= names}
        self.calm, self.turns = False, self.turns + 1
        self.notices.unsettle()
        return tuple(lost)

    def turn_back(self, now: float) -> None:
        """Have what has happened since a time have happened then."""
        self.calm = False
        for job in (*self.waiting.values(), *self.running.values(), *self.held.values()):
            job.turn_back(now)
        self.notices.turn_back(now)
        self.now = now

    def enclose(self, name: str, nodes: list[str], begin: float, end: float, jobs: list[str]) -> None:
        """Close nodes to all but some jobs."""
        self.windows.pop(name, None)
        self.windows[name] = {"nodes": nodes, "begin": begin, "end": end, "jobs": jobs}
        self.calm = False
        self.notices.unsettle()

    def reopen(self, name: str) -> None:
        """Forget a window."""
        del self.windows[name]

    def alter(self, name: str, what: dict[str, Any]) -> None:
        """Hear something else of a job."""
        self.calm = False
        self.notices.unsettle(name)
        if name in self.running:
            job, was = self.running[name], self.running[name].price
            job.price, job.priced = what.get("price", was), job.priced or "price" in what
            if "seconds" in what or (job.price != was and name not in self.notices.until):
                until, job.until = job.until, inf
                lasts = what["seconds"] if "seconds" in what else job.end(self.now) - self.now
                job.until = until
                self.starts += 1
                if job.seconds is not None:
                    whole = job.seconds[job.workers.index(job.degree)]
                    if not whole:
                        job.seconds = [lasts / job.slower * job.degree / d for d in job.workers]
                        whole = lasts / job.slower
                    job.left = lasts / job.slower / whole if whole else 0.0
                job.due, job.since, job.lasts, job.pays = job.due + self.now - job.since, self.now, lasts, 0.0
                job.begun, job.repeats, self.longest = self.starts, False, max(self.longest, lasts)
            return
        job = self.held.get(name) or self.waiting[name]
        if "seconds" in what:
            job.left, s = 1.0, what["seconds"]
            job.seconds = [s * job.workers[-1] / d for d in job.workers]
        job.price, job.priced = what.get("price", job.price), job.priced or "price" in what
        job.pays = (job.price or 0.0) if job.repeats else 0.0
        self.longest = max([self.longest, *(x + (job.price or 0.0) for x in job.seconds or [inf])])
        begin, after = what.get("begin", job.begin), what.get("after", job.after)
        if (begin, after) == (job.begin, job.after):
            return
        job.begin, job.after, job.ready = begin, after, self.now
        was_held = self.held.pop(name, None)
        self.waiting.pop(name, None)
        if self._lacks(job) or begin > self.now:
            self.held[name] = job
        else:
            self.waiting[name] = job
            if was_held:
                job.ripe(self.now)

    def withdraw(self, name: str) -> None:
        """Forget a job."""
        jobs = self.held if name in self.held else self.waiting
        held = name in self.held
        job = jobs.pop(name) if name in jobs else self.free(name)
        self.over.add(name)
        self.gone.add(name)
        self.notices.unsettle(name)
        if not held or name in self.arrays.rest.get(job.array, ()):
            self.arrays.left(job)

    def report(self, name: str, speed: float) -> None:
        """Hear how fast a job is."""

    def fail(self, node: str, mend: bool = False) -> tuple[str, ...]:
        """Take a node down; return who ran there and waits again, with the work it had when it started."""
        lost = sorted(self.nodes[node].jobs)
        for name in lost:
            job = self.waiting[name] = self.free(name)
            job.again(self.now)
            if mend and len(job.nodes) > 1:
                self.torn[name] = node, job.degree, {n: gpus for n, gpus in job.nodes.items() if n != node}
        self.nodes[node].up, self.calm, self.turns = False, False, self.turns + 1
        self.notices.unsettle()
        return tuple(lost)

    def repair(self, node: str) -> None:
        """Bring a node up."""
        self.nodes[node].up, self.calm, self.turns = True, False, self.turns + 1

    # ---- decisions ----

    def decide(self, decision: Any, own: bool) -> None:
        """Enter a decision, and raise `Wrong` if it does what it may not; `own`: whether a policy chooses GPUs."""
        self.calm &= all(job.end(-inf) >= self.now * (1 - SLACK) for job in self.running.values())
        self._decide(decision, own)

    def _decide(self, decision: Any, own: bool) -> None:
        told = {x.job for x in decision.stopping}
        killed = self.notices.ended(decision.stops)
        for x in decision.stops:
            slow = 0.0 if x.job not in self.running or x.job in killed else self.notices.grace(self.running[x.job])
            hold(not slow, "grace", f"{x.job} stops at once, its grace is {slow} s")
            if x.job in killed:
                self._killed(x)
        stops = [*(x for x in decision.stops if x.job not in killed), *decision.stopping]
        gains = [x for x in stops if x.cause != "drain"]
        self.stopped = bool(gains)
        self._drained([x for x in stops if x.cause == "drain"], told)
        vague = bool(told) or self.notices.busy
        self.calm &= not vague
        dues = (j for j in self.waiting.values() if j.due <= self.now)
        due = min(dues, key=lambda j: (j.due, j.serial), default=None)
        known = all(j.due < inf for j in (*self.waiting.values(), *self.running.values()))
        known = known and due is not None and len(due.workers) == 1 and not (self.windows and self.near)
        was = self.earliest(due, self.running.values()) if gains and known and due and not vague else inf
        gone: set[str] = set()
        moves, begun = {x.job: x for x in gains if x.cause == "move"}, {x.job: x for x in decision.starts}
        for x in gains:
            hold(x.job in self.running, "stop", f"{x.job} stops and does not run")
            waits = x.other in self.waiting or x.other in moves or x.other in gone  # it stops for another one
            hold(waits, "cause", f"{x.job} stops for {x.other}, which does not wait")
            victim, new = self.running[x.job], [self.waiting[y.job] for y in decision.starts if y.job in self.waiting]
            other = self.waiting[x.other] if x.other in self.waiting else self.running[x.other]
            if x.job in moves and x.job not in told:
                on = x.job in begun and begun[x.job].degree == victim.degree
                hold(on, "move", f"{x.job} moves with {victim.degree} workers and starts as {begun.get(x.job)}")
            self.books.stop(victim, other, x.cause, gone, new, vague)
            gone |= {x.job} - moves.keys()
        stopped = {x.job: self._stop(x, x.job in told) for x in gains}
        promised = self.notices.started({x.job for x in decision.starts}, True)
        for x in decision.starts:
            hold(x.job in self.waiting, "lost", f"{x.job} starts and does not wait")
            self._start(self.waiting[x.job], x, own and x.tier in ("policy", "gnn"), x.job in promised or vague)
        self.notices.started({x.job for x in decision.starts}, decision.more)
        self.notices.told(decision.stopping)
        starts = {x.job: x for x in decision.starts}
        for x in decision.mends:
            hold(x.job in starts and x.job in self.torn, "mend", f"{x} is of {[*starts]} and {[*self.torn]}")
            node, degree, kept = self.torn[x.job]
            has = {n: {*gpus, *x.nodes.get(n, ())} for n, gpus in {**x.nodes, **kept}.items() if self.nodes[n].up}
            same = {n: {*gpus} for n, gpus in starts[x.job].nodes.items()} == has
            words = f"{x} of {degree} workers, which keep {kept}: {starts[x.job]}"
            hold(same and x.node == node and starts[x.job].degree == degree, "mend", words)
        self.torn = self.torn if decision.more else {}  # the next one goes on with it
        worth = [x for x in gains if x.cause == "gain" and not vague]
        freed = {(n, g) for x in worth for n, gpus in stopped[x.job].items() for g in gpus}
        for x in worth:
            self._worth(x, stopped, starts, freed)
        if was < inf and due and due.name in self.waiting and self.books.alike:
            now = self.earliest(due, self.running.values())
            hold(now <= was * (1 + SLACK), "overtaken", f"{due.name} would have room at {was} s, now it has at {now} s")
        if not gains and not vague:
            self._protected(decision)

    def _killed(self, x: Any) -> None:
        """Have a job stop whose grace is over."""
        job = self.running[x.job]
        hold(dict(x.nodes) == job.nodes, "stop", f"{x} of {job.nodes}")
        self.halt(x.job)

    def _drained(self, stops: list[Any], told: set[str]) -> None:
        """Have those stop that may and are where a window is; see that it is these."""
        there = {
            job.name
            for w in self.windows.values()
            for job in self.running.values()
            if w["begin"] <= self.now and job.name not in w["jobs"] and not job.nodes.keys().isdisjoint(w["nodes"])
        }
        there = {name for name in there if self.notices.stoppable(self.running[name])}
        words = f"{[x.job for x in stops]} stop where nodes close, should be {sorted(there)}"
        hold(sorted(x.job for x in stops) == sorted(there), "drain", words)
        for x in stops:
            job = self.running[x.job]
            hold(not x.other and dict(x.nodes) == job.nodes and x.price == job.price, "drain", f"{x} of {job.nodes}")
            if x.job not in told:
                self.waiting[x.job] = self.free(x.job)
                job.stop(self.now)

    def _stop(self, x: Any, told: bool) -> Nodes:
        """Have a job stop that runs, may be stopped and is named with what it holds; return that."""
        hold(x.job in self.running, "stop", f"{x.job} stops and does not run")
        job = self.running[x.job]
        hold(self.notices.stoppable(job), "stop", f"{x.job} stops and may not be stopped")
        hold(job.grants or x.cause != "gain", "stop", f"{x.job} has no GPUs and stops for a gain")
        left = job.end(self.now) - self.now
        same = dict(x.nodes) == job.nodes and x.price == job.price
        same &= x.left > 0 if job.seconds is None else abs(x.left - left) <= 1e-6 * max(1, left)
        hold(same, "stop", f"{x.job} has {job.nodes}, {left} s left and the price {job.price}; said is {x}")
        ran, price = job.ran(self.now), job.price or 0.0
        hold(ran >= price * (1 - SLACK), "early", f"{x.job} stops when it got on for {ran} s, its price is {price}")
        hold(not job.urgent or x.cause != "gain", "early", f"{x.job} stops and was due when it started")
        if not told:
            self.waiting[x.job] = self.free(x.job)
            job.stop(self.now)
        return job.nodes

    def _start(self, job: Job, start: Any, own: bool, promised: bool) -> None:
        """Have a job start where it may, whole."""
        name, degree, nodes = job.name, start.degree, {n: tuple(g) for n, g in start.nodes.items()}
        hold(degree in job.workers, "gang", f"{name} starts with {degree} of {job.workers} workers")
        for node, gpus in nodes.items():
            n = self.nodes[node]
            shut = self.shut(job, node, start.seconds)
            hold(not shut, "window", f"{name} starts on {node} for {start.seconds} s, which {shut} closes")
            hold(len({*gpus}) == len(gpus), "twice", f"{name} has a GPU of {node} twice: {gpus}")
            right = all(0 <= g < n.gpus if job.grants else g < 0 for g in gpus)
            hold(right, "place", f"{name} has GPUs {gpus} of {node}, which has {n.gpus}")
            for g in gpus:
                hold(g not in n.holder, "twice", f"{name} gets GPU {g} of {node}, which {n.holder.get(g)} holds")
            count, most = len(gpus) // job.each, self.room(job, n)
            there = {x: len(y.nodes[node]) // y.each for x, y in n.jobs.items()}
            words = f"{'up' if n.up else 'down'}, {n.type}, {sorted(n.labels | n.taints)}, {n.gpus} GPUs, {n.has}"
            words += f"; there {there}"
            words = f"{name} has {count} workers on {node}, which takes {most}: {words}; {job.spec}"
            hold(count <= most, "place", words)
        b, parts = self.bundle(job, degree), [len(gpus) // job.each for gpus in nodes.values()]
        hold(
            not any(p % job.group for p in parts), "group", f"{name} has {parts} workers on nodes, not {job.group} each"
        )
        held = dict(start.servers)
        even = all(held.get(n, 0) <= -(-job.servers * p // sum(parts)) for n, p in zip(nodes, parts, strict=True))
        hold(
            sum(held.values()) == job.servers and even,
            "servers",
            f"{name} has {held}, {job.servers} in all, on {nodes}",
        )
        common = {self.part(job, node) for node in nodes}
        hold(len(common) == 1, "within", f"{name} is in {common}: {nodes}; {job.spec}")
        whole = sum(parts)
        words = f"{name} has seats for {whole} of {degree} workers in {nodes}, in bundles of {b}; {job.spec}"
        fair = b and degree <= whole <= -(-degree // b) * b and sum(p % b > 0 for p in parts) < 2
        hold(whole >= degree if own else fair, "gang", words)
        job.slower = self.slower(job, degree, nodes)
        if not own and not promised and start.tier in ("heuristic", "patient", "lookahead") and len(self.waiting) == 1:
            self._nearest(job, degree, nodes, b)
        if not promised:
            self._waited(job, degree)
        takes = job.takes(degree, job.slower)
        words = f"{name} takes {takes} s with {degree} workers, its start says {start.seconds}"
        hold(takes is None or abs(start.seconds - takes) <= 1e-6 * max(1.0, takes), "seconds", words)
        del self.waiting[name]
        self.starts += 1
        job.nodes, job.degree, job.since, job.lasts, job.begun = nodes, degree, self.now, start.seconds, self.starts
        self.running[name], job.urgent = job, job.due <= self.now
        self.books.start(job, promised)
        self.longest = max(self.longest, job.lasts)  # longer than told where it has a slow place
        if job.urgent:
            self.served.append((job.due, self.now))
        for node, gpus in nodes.items():
            self.nodes[node].jobs[name] = job
            self.nodes[node].holder.update(dict.fromkeys(gpus, job))

    def _nearest(self, job: Job, degree: int, nodes: Nodes, size: int) -> None:
        """Check that a job that waits alone has what it prefers: the fastest type with room, one rack if any has it."""
        held: dict[Any, int] = {}
        for name, node in self.nodes.items():
            part = self.part(job, name, near=True)
            held[part] = held.get(part, 0) + self.room(job, node) // size
        able = [part for part, count in held.items() if count >= -(-degree // size)]
        mine = {self.part(job, name, near=True) for name in nodes}
        if able and (job.on or job.within):
            best = min(job.on.get(kind, 1.0) for _, kind in able) if job.on else 1.0
            words = f"{job.name} is in {mine}, {able} have the room for it; {job.spec}"
            hold(len(mine) == 1, "preferred", words)
            slow = max(job.on.get(kind, 1.0) for _, kind in mine)
            hold(self.near or slow <= best * (1 + SLACK), "fastest", words)  # else a close place may be better

    def _waited(self, job: Job, degree: int) -> None:
        """Check that no job that could have a node for itself starts where it is slow, unless it is due or alone."""
        if not (self.patient and self.running and job.grants) or not self.now < job.due < inf:
            return
        if not self.near:
            words = f"{job.name} is {job.slower} times as slow as on its best type"
            hold(job.slower <= exp(LONGER) * (1 + SLACK), "patience", words)
            return
        alone = [n for n in self.nodes.values() if self.room(job, n, empty=True) >= degree]
        if alone:
            best = 1 + self.near["m"] * self.near["links"][0] * (degree * job.grants - 1)
            best *= min(job.on.get(n.type, 1.0) for n in alone)
            words = f"{job.name} is {job.slower} times as slow as told, at best {best}"
            hold(job.slower <= best * exp(LONGER) * (1 + SLACK) + SLACK, "patience", words)

    def _worth(self, stop: Any, stopped: dict[str, Nodes], starts: dict[str, Any], freed: set[tuple[str, int]]) -> None:
        """Check that a stop makes room for who it names, and gains more than it costs."""
        job, nodes = stop.job, stopped[stop.job]
        hold(stop.other in starts and stop.other != job, "cause", f"{job} stops for {stop.other}: {[*starts]} start")
        mine = {(n, g) for n, gpus in nodes.items() for g in gpus}
        share, longest, best = 0.0, 0.0, -inf
        for x in sorted(starts.values(), key=lambda x: x.job != stop.other):
            seats = {(n, g) for n, gpus in x.nodes.items() for g in gpus}
            got = len(seats & mine)
            there = got or not nodes.keys().isdisjoint(x.nodes)  # it may be for cores or memory, with other GPUs
            hold(x.job != stop.other or there, "cause", f"{job} stops on {nodes} for {x.job}, which gets {x.nodes}")
            if x.tier == "stops" and got and x.job not in stopped:
                share, longest = share + got / len(seats & freed), max(longest, x.seconds)
                best = max(best, stop.left * share - stop.price - (0.0 if job in starts else longest))
        gain, cost = stop.left * share, stop.price + (0.0 if job in starts else longest)
        if any(
            j.name in {job, *starts} and j.seconds is None for j in (*self.waiting.values(), *self.running.values())
        ):
            return  # those whose seconds were not told count by an index, not by what they have left
        words = f"{job} has {stop.left} s left, which is {gain} for those who start, and costs {cost}: {stop}"
        # where queues and classes differ, those of later stages may start on what is left over
        hold(gain * (1 + SLACK) > cost or (best > 0 and not self.books.alike), "worth", words)

    def _protected(self, decision: Any) -> None:
        """Check that no start delays who is to go first: due, or the first of the order where that is known."""
        started = [self.running[x.job] for x in decision.starts if x.job in self.running]
        if not started or not self.waiting or (self.windows and self.near):
            return
        power = self.options.get("order", 0.0 if self.options.get("price") is None else 0.5)

        def place(j: Job) -> tuple[bool, float, int]:
            key = (j.takes(j.workers[0]) or 0) * max(1, j.workers[0] * j.grants) ** power
            return (False, j.due, j.serial) if j.due <= self.now else (True, key, j.serial)

        if not self.books.alike:
            self._protected_in_class(started)
            return
        first = min(self.waiting.values(), key=place)
        ahead = {j.name for j in started if place(j) <= place(first)}
        tied = [j for j in started if j.due <= self.now and abs(j.due - first.due) <= SLACK * max(1.0, first.due)]
        ahead |= {j.name for j in tied}  # sums of times differ in the last digit
        known = {*self.waiting.values(), *started}
        if any(j.due == inf for j in known):
            return
        if first.due <= self.now:
            self._undelayed(first, started, ahead, "overtaken")
        elif (
            self.cluster["policy"] == "heuristic"
            and self.options.get("reserve", True)
            and all(len(j.workers) == 1 for j in known)
        ):
            ahead |= {x.job for x in decision.mends}  # they keep their place
            self._undelayed(first, started, ahead | {j.name for j in started if j.price is not None}, "reserved")

    def _protected_in_class(self, started: list[Job]) -> None:
        """Check that no job of its class or a lower one, or that borrows, delays the first due of the highest class.

        Of those that fit into a guarantee: they go before all that borrow.
        """
        books, late = self.books, [j for j in self.waiting.values() if j.due <= self.now]
        late = [j for j in late if not books.borrows(j)]
        # a limit that holds now may have come with a start, so that another one was the first
        if (
            not late
            or any(books.limited(j) for j in late)
            or any(j.due == inf for j in (*self.waiting.values(), *started))
        ):
            return
        first = min(late, key=lambda j: (-books.level(j), j.due, j.serial))

        def before(j: Job) -> bool:
            if books.borrowed(j, {x.name for x in started if x.begun > j.begun}):
                return False
            if books.level(j) != books.level(first):
                return books.level(j) > books.level(first)
            return j.due <= first.due + SLACK * max(1.0, first.due)

        self._undelayed(first, started, {j.name for j in started if before(j)}, "overtaken")

    def _undelayed(self, job: Job, started: list[Job], free: set[str], rule: str) -> None:
        """Check that a waiting job has room as soon as without those who started, but for some."""
        if len(job.workers) > 1:
            return
        delays = [j for j in started if j.name not in free]
        if not delays:
            return
        was = self.earliest(job, [j for j in self.running.values() if j not in delays])
        now = self.earliest(job, self.running.values())
        words = f"{job.name} would have room at {was} s, and with {[j.name for j in delays]} at {now} s"
        hold(now <= was + 1e-6 * max(1.0, abs(was)) or was == inf, rule, words)

    def settled(self, steered: bool) -> None:
        """Check that who should have started did; `steered`: whether a policy may make jobs wait that are not due."""
        if self.notices.busy:
            return  # room is kept for somebody
        waits = sorted(self.waiting.values(), key=lambda j: (j.due, j.serial))
        waits = [job for job in waits if not self.books.limited(job)]
        if not steered and not self.stopped:  # stops for a gain may leave others within their guarantees
            self.books.settled()
        fit = [job for job in waits[:24] if self.fits(job)]
        known = all(job.due < inf for job in waits)  # else who was not told of may have been due before
        late = [job for job in waits if job.due <= self.now and known]
        if late and late[0] in fit and self.books.alike:
            hold(False, "due", f"{late[0].name} was due at {late[0].due} s, has room and waits")
        if self.calm and waits and self.books.alike:
            for k, job in enumerate(late):
                k += sum(due <= job.due <= start for due, start in self.served)  # noqa: PLW2901
                latest = job.due + (k + 1) * self.longest
                hold(self.now <= latest * (1 + SLACK), "starved", f"{job.name} was due at {job.due}, {k} before it")
        if any(job.due <= self.now and self.books.limited(job) for job in self.waiting.values()):
            return  # what it would take of a limit may be kept for it
        rest = [job for job in waits if job not in fit]
        if not fit or (steered and not (self.close and not self.running)):
            return
        if not self.running and not (self.windows and rest):  # who waits for a window may keep others off
            hold(False, "idle", f"{fit[0].name} waits on an idle cluster that has room for it")
        may = {j.name: {n.name for n in self.nodes.values() if self.room(j, n, empty=True, up=False)} for j in waits}
        for job in fit:  # who may be held back for one who does not fit, holds others back in turn
            wanted, others = {n for j in rest for n in may[j.name]}, [j for j in fit if j is not job]
            while more := [j for j in others if wanted & may[j.name]]:
                wanted |= {n for j in more for n in may[j.name]}
                others = [j for j in others if j not in more]
            free = [n for n in self.nodes.values() if n.name not in wanted]
            hold(not self.fits(job, free), "spare", f"{job.name} waits; nobody else may have where it fits")
