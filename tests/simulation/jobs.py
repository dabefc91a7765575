"""The books of a node and a job: what they are like, and what a job has left, costs and is due by."""

from __future__ import annotations

from math import inf, nextafter
from typing import Any

SLACK = 1e-9
"""Of an amount: sums of floating-point numbers lose a little."""
PATIENCE, MAX_WAIT, LEAST = 50.0, 86400.0, 10.0
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
    """A job that was submitted; `left` is of its work, `pays` the seconds its next start costs.

    `overran`: when it stopped last, it had run for longer than it was to, and counts as to last as long again.
    """

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
        self.left, self.pays, self.repeats, self.overran = 1.0, 0.0, False, False
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
            self.overran = self.left <= done
            self.left = done if self.overran else self.left - done
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

    def turn_back(self, now: float, runs: bool) -> None:
        """Have what has happened since a time have happened then; who was due when it started was."""
        late = max(0.0, self.submit - now)
        self.submit, self.due, self.ready = self.submit - late, self.due - late, min(self.ready, now)
        self.since = min(self.since, now)
        if runs and self.urgent:
            self.due = min(self.due, self.since)

    def due_from(self, since: float, seconds: list[float] | None) -> float:
        """Return when it is due that may wait since then."""
        longest, most = max(seconds or [inf]), self.max_wait
        return since + min(self.patience * longest, inf if most is None else max(LEAST * longest, most))
