"""The books of what happens: jobs come, end and change, nodes fail, come and go, settings and the clock change."""

from __future__ import annotations

from math import inf
from typing import Any

from .jobs import Job, Node
from .rooms import Rooms
from .shares import Shares


class Events(Rooms):
    """The cluster as events leave it."""

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
            job.turn_back(now, job.name in self.running)
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
        if name in self.held:
            self.arrays.forget(job)
            if not self._lacks(job) and begin <= self.now:
                self._ripen(job)
        elif self._lacks(job) or begin > self.now:
            self.held[name] = self.waiting.pop(name)
            self.arrays.left(job)

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
