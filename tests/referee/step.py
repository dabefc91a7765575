"""The makespan of a step by docs/step.md, and the least by looking at every placement and every order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ulp
from typing import Any

from gangplan.instances import RampTopology

from .facts import SLACK, Facts


def optimum(problem: Any) -> float | None:
    """Return the least makespan over all placements and all orders of ops and transfers."""
    facts, best = Facts(problem), None
    for where in facts.placements():
        best = _Orders(facts, where).least(best)
    return best


def value(problem: Any, plan: Any) -> float | None:
    """Return the makespan of a plan, `None` if it breaks a rule."""
    facts, where, start = Facts(problem), plan.device.tolist(), plan.start.tolist()
    if not facts.allows(where):
        return None
    net = _Net(facts, where)
    end = [s + facts.time[d][v] for v, (s, d) in enumerate(zip(start, where, strict=True))]
    slack = SLACK * max(end) + 4 * ulp(max(end))  # the sums below are rounded, each by less than one
    busy: dict[Any, list[tuple[float, float]]] = {}
    for v, d in enumerate(where):
        busy.setdefault(("device", d), []).append((start[v], end[v]))
    there = {(a, where[b]): end[a] + net.wait(a, where[b]) for a, b in facts.edges}
    if problem.contention:
        sent = list(zip(plan.sent.tolist(), plan.receiver.tolist(), plan.sent_at.tolist(), strict=True))
        if sorted((u, d) for u, d, _ in sent) != net.sends:
            return None
        for u, d, at in sent:
            there[u, d] = at + net.wait(u, d)
            if at < end[u] - slack:
                return None
            for link in net.links(where[u], d):
                busy.setdefault(link, []).append((at, there[u, d]))
    early = any(start[b] < there[a, where[b]] - slack for a, b in facts.edges)
    return None if early or any(_meet(x, slack) for x in busy.values()) else max(end)


def _meet(held: list[tuple[float, float]], slack: float) -> bool:
    """Return whether two intervals have more than a point in common, one that takes no time included."""
    pairs = ((x, y) for i, x in enumerate(held) for y in held[:i])
    return any(
        min(a[1], b[1]) - max(a[0], b[0]) > slack or _within(a, b, slack) or _within(b, a, slack) for a, b in pairs
    )


def _within(a: tuple[float, float], b: tuple[float, float], slack: float) -> bool:
    return a[0] - b[0] > slack and b[1] - a[1] > slack


class _Net:
    """What is sent, by which links, and how long it takes."""

    def __init__(self, facts: Facts, where: Sequence[int]) -> None:
        self.facts, self.where = facts, where
        topology = facts.problem.cluster.topology
        self.group = None if isinstance(topology, RampTopology) else topology.group
        self.sends = sorted(
            {(a, where[b]) for a, b in facts.edges if where[a] != where[b] and self.wait(a, where[b]) > 0}
        )

    def level(self, a: int, b: int) -> int:
        return 0 if self.group is None else int((self.group[:, a] != self.group[:, b]).sum())

    def wait(self, u: int, d: int) -> float:
        if d == self.where[u] or self.facts.size[u] <= 0:
            return 0.0
        bandwidth, latency = self.facts.links[self.level(self.where[u], d)]
        return float(latency + self.facts.size[u] / bandwidth)

    def links(self, a: int, b: int) -> Iterator[Any]:
        yield from (("out", a), ("in", b))
        for i in range(self.level(a, b)):
            assert self.group is not None
            yield from (("out", i, int(self.group[i, a])), ("in", i, int(self.group[i, b])))


class _Orders:
    def __init__(self, facts: Facts, where: Sequence[int]) -> None:
        self.facts, self.where, self.net = facts, where, _Net(facts, where)
        self.sends = self.net.sends if facts.problem.contention else []
        self.tasks = [("op", v) for v in range(facts.n)] + [("send", *x) for x in self.sends]
        self.inputs = [[a for a, b in facts.edges if b == v] for v in range(facts.n)]

    def least(self, best: float | None) -> float | None:
        self.best = best
        self._go(frozenset(), {}, {}, {}, 0.0)
        return self.best

    def _go(self, done: Any, free: Any, there: Any, end: Any, top: float) -> None:
        if self.best is not None and top >= self.best:
            return
        if len(done) == len(self.tasks):
            self.best = top
        for task in self.tasks:
            if task in done:
                continue
            if task[0] == "op":
                v, d = task[1], self.where[task[1]]
                if any(("op", u) not in done for u in self.inputs[v]):
                    continue
                needed = [(u, d) for u in self.inputs[v] if (u, d) in self.sends]
                if any(x not in there for x in needed):
                    continue
                ready = [there[u, d] if (u, d) in there else end[u] + self.net.wait(u, d) for u in self.inputs[v]]
                at = max([free.get(d, 0.0), *ready]) + self.facts.time[d][v]
                self._go(done | {task}, {**free, d: at}, there, {**end, v: at}, max(top, at))
            elif ("op", task[1]) in done:
                _, u, d = task
                links = list(self.net.links(self.where[u], d))
                at = max([end[u], *(free.get(x, 0.0) for x in links)]) + self.net.wait(u, d)
                self._go(done | {task}, {**free, **dict.fromkeys(links, at)}, {**there, (u, d): at}, end, top)
