"""Optima of tiny partition problems by brute force, written from docs/ alone, and problems on the edge."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from gangplan.instances import (
    Cluster,
    DeviceType,
    LatencyProblem,
    Level,
    OpGraph,
    PartitionProblem,
    StepProblem,
    TreeTopology,
)

Pairs = list[tuple[int, int]]


class Facts:
    """A problem as the pages speak of it: devices, seconds, edges, outputs."""

    def __init__(self, problem: Any) -> None:
        graph, cluster = problem.graph, problem.cluster
        self.problem, self.n = problem, graph.n_ops
        self.kinds = [cluster.device_types[t] for t in cluster.type_of.tolist()]
        row = [graph.device_types.index(kind.name) for kind in self.kinds]
        self.time = [[float(graph.time[r, v]) for v in range(self.n)] for r in row]
        self.edges: Pairs = sorted(set(zip(graph.source.tolist(), graph.target.tolist(), strict=True)))
        self.size = [0.0] * self.n
        for u, amount in zip(graph.source.tolist(), graph.edge_bytes.tolist(), strict=True):
            self.size[u] = max(self.size[u], amount)
        self.levels = cluster.topology.levels

    def placements(self) -> Iterator[tuple[int, ...]]:
        """Yield every placement where ops run, fit within a relative 1e-9, and classes keep together."""
        graph = self.problem.graph
        for where in product(range(len(self.kinds)), repeat=self.n):
            used, home = [0.0] * len(self.kinds), {}
            for v, d in enumerate(where):
                used[d] += float(graph.memory[v])
            runs = all(self.time[d][v] < float("inf") for v, d in enumerate(where))
            fits = all(k.memory is None or u <= k.memory * (1 + 1e-9) for u, k in zip(used, self.kinds, strict=True))
            together = all(
                c < 0 or home.setdefault(c, d) == d for c, d in zip(graph.colocation.tolist(), where, strict=True)
            )
            if runs and fits and together:
                yield where

    def loads(self, where: tuple[int, ...]) -> list[float]:
        """Return the seconds of each device: its ops, and on accelerators each output once in or once out."""
        bandwidth, latency = min(x.bandwidth for x in self.levels), max(x.latency for x in self.levels)
        load = [0.0] * len(self.kinds)
        for v, d in enumerate(where):
            load[d] += self.time[d][v]
        for u, home in enumerate(where):
            away = {where[b] for a, b in self.edges if a == u} - {home}
            if self.size[u] > 0 and away:
                for d in {home, *away}:
                    load[d] += 0.0 if self.kinds[d].host else latency + self.size[u] / bandwidth
        return load


def throughput(problem: PartitionProblem) -> float | None:
    """Return the least maximum load, `None` if there is no plan; of forward graphs."""
    facts, best = Facts(problem), None
    ahead = _reach(facts.n, facts.edges)
    every = range(facts.n)
    for where in facts.placements():
        if problem.variant == "contiguous":
            after = _reach(len(facts.kinds), [(where[a], where[b]) for a, b in facts.edges if where[a] != where[b]])
            if any(after[d][d] for d in range(len(facts.kinds))):
                continue
        if problem.variant == "convex" and any(
            ahead[a][w] and ahead[w][b] and where[a] == where[b] != where[w] for a, w, b in product(every, repeat=3)
        ):
            continue
        load = max(facts.loads(where))
        best = load if best is None else min(best, load)
    return best


def latency(problem: LatencyProblem) -> float | None:
    """Return the least latency: hosts run op by op, an accelerator all its ops in one call."""
    facts, best = Facts(problem), None
    for where in facts.placements():
        load = facts.loads(where)
        unit = [("op", v) if facts.kinds[d].host else ("call", d) for v, d in enumerate(where)]
        took = {u: facts.time[where[u[1]]][u[1]] if u[0] == "op" else load[u[1]] for u in unit}
        inputs: dict[Any, set[Any]] = {u: set() for u in unit}
        for a, b in facts.edges:
            if unit[a] != unit[b]:
                inputs[unit[b]].add(unit[a])
        end: dict[Any, float] = {}
        while ready := [u for u in inputs if u not in end and all(x in end for x in inputs[u])]:
            for u in ready:
                end[u] = max((end[x] for x in inputs[u]), default=0.0) + took[u]
        if len(end) == len(inputs):
            best = max(end.values()) if best is None else min(best, max(end.values()))
    return best


def step(problem: StepProblem) -> float | None:
    """Return the least makespan over all placements and all orders of ops and transfers."""
    facts, best = Facts(problem), None
    for where in facts.placements():
        best = _Orders(facts, where).least(best)
    return best


class _Orders:
    def __init__(self, facts: Facts, where: tuple[int, ...]) -> None:
        self.facts, self.where = facts, where
        self.group = facts.problem.cluster.topology.group
        readers = {(a, where[b]) for a, b in facts.edges}
        self.sends = sorted(x for x in readers if self.wait(*x) > 0) if facts.problem.contention else []
        self.tasks = [("op", v) for v in range(facts.n)] + [("send", *x) for x in self.sends]
        self.inputs = [[a for a, b in facts.edges if b == v] for v in range(facts.n)]

    def level(self, a: int, b: int) -> int:
        return int((self.group[:, a] != self.group[:, b]).sum())

    def wait(self, u: int, d: int) -> float:
        if d == self.where[u] or self.facts.size[u] <= 0:
            return 0.0
        level = self.facts.levels[self.level(self.where[u], d)]
        return float(level.latency + self.facts.size[u] / level.bandwidth)

    def links(self, a: int, b: int) -> list[Any]:
        found: list[Any] = [("out", a), ("in", b)]
        for i in range(self.level(a, b)):
            found += [("out", i, int(self.group[i, a])), ("in", i, int(self.group[i, b]))]
        return found

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
                ready = [there[u, d] if (u, d) in there else end[u] + self._apart(u, d) for u in self.inputs[v]]
                at = max([free.get(d, 0.0), *ready]) + self.facts.time[d][v]
                self._go(done | {task}, {**free, d: at}, there, {**end, v: at}, max(top, at))
            elif ("op", task[1]) in done:
                _, u, d = task
                links = self.links(self.where[u], d)
                at = max([end[u], *(free.get(x, 0.0) for x in links)]) + self.wait(u, d)
                self._go(done | {task}, {**free, **dict.fromkeys(links, at)}, {**there, (u, d): at}, end, top)

    def _apart(self, u: int, d: int) -> float:
        return 0.0 if self.facts.problem.contention else self.wait(u, d)


def _reach(n: int, edges: Pairs) -> list[list[bool]]:
    found = [[(a, b) in edges for b in range(n)] for a in range(n)]
    for m, a, b in product(range(n), repeat=3):
        found[a][b] = found[a][b] or (found[a][m] and found[m][b])
    return found


OPTIMUM: dict[str, Any] = {"throughput": throughput, "latency": latency, "step": step}
_STYLES = ("tenths", "wide", "whole", "two", "plain")


def _amounts(rng: np.random.Generator, n: int, style: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    if style == "tenths":
        return rng.integers(0, 8, n) / 10
    if style == "wide":
        return np.asarray(10.0 ** rng.integers(-9, 10, n) * rng.integers(1, 10, n))
    if style == "two":
        return np.where(rng.random(n) < 0.3, 1e9, 1e-9) * rng.integers(1, 4, n)
    return rng.integers(0, 5, n) * 1.0 if style == "whole" else rng.random(n)


def on_edge(seed: int, objective: str, variant: str = "") -> Any:
    """Return a tiny problem: memory that some ops just fill, amounts from 1e-9 to 1e9, types that lack ops, classes."""
    rng = np.random.default_rng([seed, 7])
    n = int(rng.integers(2, {"throughput": 7, "latency": 6, "step": 5}[objective]))
    k = int(rng.integers(1, 3 if objective == "step" else 4))
    types = ("gpu", "old", "cpu")
    style = rng.choice(_STYLES)
    time = np.array([_amounts(rng, n, style) for _ in types])
    time[rng.random((3, n)) < rng.choice([0, 0, 0.2])] = np.inf
    present = list(rng.choice(types, k)) if rng.random() < 0.6 else [rng.choice(types)] * k
    have = [i for i, t in enumerate(types) if t in present] if rng.random() < 0.8 else [0]
    time[have[0], ~np.isfinite(time[have]).any(axis=0)] = 2.0
    memory = _amounts(rng, n, rng.choice(_STYLES))
    output = _amounts(rng, n, rng.choice(_STYLES)) * rng.choice([0, 0.3, 1.0])
    u, v = np.triu_indices(n, 1)
    kept = rng.random(len(u)) < rng.choice([0.2, 0.5, 0.8])
    none = np.full(n, -1)
    graph = OpGraph(
        names=tuple(f"op{i}" for i in range(n)),
        device_types=types,
        time=time,
        memory=memory,
        parameter_bytes=np.zeros(n),
        activation_bytes=output,
        source=u[kept],
        target=v[kept],
        edge_bytes=output[u[kept]],
        colocation=rng.integers(-1, max(1, n // 2), n) if rng.random() < 0.3 else none,
        twin=none,
        backward=np.zeros(n, dtype=bool),
    )
    groups = []
    for name in types:
        limit = float(memory[rng.random(n) < rng.choice([0.5, 0.8, 1])].sum())
        limit = float(f"{limit:.9g}") if rng.random() < 0.4 else limit
        kind = DeviceType(name, memory=limit if limit > 0 and rng.random() > 0.15 else None, host=name == "cpu")
        groups.append((kind, present.count(name)))
    bandwidth, wait = float(rng.choice([1.0, 1.0, 1e-6, 1e6])), float(rng.choice([0, 0, 0.1, 1e-9]))
    cluster = Cluster.flat(*groups, bandwidth=bandwidth, latency=wait)
    if objective == "throughput":
        return PartitionProblem(graph, cluster, variant)
    if objective == "latency":
        return LatencyProblem(graph, cluster)
    if k > 1 and rng.random() < 0.3:
        levels = Level("a", bandwidth, wait), Level("b", bandwidth * float(rng.choice([0.1, 1.0])), wait)
        tree = TreeTopology(levels, np.stack([np.arange(k), np.zeros(k, dtype=int)]).astype(np.int32))
        cluster = Cluster(cluster.device_types, cluster.type_of, tree)
    return StepProblem(graph, cluster, contention=bool(rng.random() < 0.4))
