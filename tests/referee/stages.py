"""Seconds a sample of the slowest stage by docs/stages.md, and the least by looking at every pipeline of pipelines.

A pipeline of a group is a tuple of (replicas, part) in order; a part is the pipeline of a member or, at level 1, a pair
(stage, degree) in a list of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from math import ceil, inf, prod
from typing import Any, NamedTuple

from .facts import SLACK, Facts


class Leaf(NamedTuple):
    """A stage on so many devices that share its ops."""

    stage: int
    degree: int


Pipeline = tuple[tuple[int, Any], ...]


def optimum(problem: Any) -> float | None:
    """Return the least seconds a sample, `None` if there is no plan."""
    model, best = Model(problem), inf
    units = sorted({_unit(problem, v) for v in range(model.n)})
    for count in range(1, min(len(units), prod(model.members)) + 1):
        pipelines = list(_pipelines(model, len(model.members), 0, count))
        for cut in product(range(count), repeat=len(units)):
            stage = [cut[units.index(_unit(problem, v))] for v in range(model.n)]
            if len(set(stage)) == count and model.ordered(stage):
                best = min([best, *(model.seconds(stage, x) for x in pipelines)])
    return best if best < inf else None


def value(problem: Any, plan: Any) -> float | None:
    """Return the seconds a sample of a plan, `None` if it breaks a rule."""
    model, stage = Model(problem), plan.stage.tolist()
    count = len(plan.degree)
    together = len({(_unit(problem, v), stage[v]) for v in range(model.n)})
    whole = set(stage) == set(range(count)) and together == len({_unit(problem, v) for v in range(model.n)})
    found = _read(model, plan, len(model.members), range(len(plan.serves)))
    if not whole or not model.ordered(stage) or found is None:
        return None
    if [leaf.stage for _, leaf in _leaves(found)] != list(range(count)):
        return None
    seconds = model.seconds(stage, found)
    return seconds if seconds < inf else None


def _unit(problem: Any, v: int) -> tuple[int, int]:
    c = int(problem.graph.colocation[v])
    return (0, c) if c >= 0 else (1, v)


def _pipelines(model: Model, level: int, first: int, last: int) -> Iterator[Pipeline]:
    """Yield every pipeline in which a group of a level runs the stages from `first` up to `last`."""
    for cuts in product((False, True), repeat=last - first - 1):
        ends = [first, *(first + 1 + i for i, cut in enumerate(cuts) if cut), last]
        if level == 1:
            if len(ends) <= last - first:
                continue
            parts = [[Leaf(s, t) for t in model.degrees] for s in range(first, last)]
        else:
            parts = [list(_pipelines(model, level - 1, a, b)) for a, b in pairwise(ends)]  # type: ignore[misc]
        most = model.members[level - 1]
        for replicas in product(range(1, most + 1), repeat=len(parts)):
            if sum(replicas) <= most:
                for chosen in product(*parts):
                    if sum(m * _width(x) for m, x in zip(replicas, chosen, strict=True)) <= most:
                        yield tuple(zip(replicas, chosen, strict=True))


def _width(part: Any) -> int:
    """Return how many members a replica takes."""
    return part.degree if isinstance(part, Leaf) else 1


def _read(model: Model, plan: Any, level: int, devices: Sequence[int]) -> Pipeline | None:
    """Return the pipeline of a group as `serves` and `degree` tell it, `None` if it is none; empty if idle."""
    found: dict[Any, int] = {}
    if level == 1:
        for s in sorted({int(plan.serves[d]) for d in devices} - {-1}):
            t, held = int(plan.degree[s]), sum(plan.serves[d] == s for d in devices)
            if held % t or t not in model.degrees:
                return None
            found[Leaf(s, t)] = held // t
    else:
        row = model.group[level - 2]
        for member in sorted({int(row[d]) for d in devices}):
            part = _read(model, plan, level - 1, [d for d in devices if row[d] == member])
            if part is None:
                return None
            if part:
                found[part] = found.get(part, 0) + 1
    pipeline = tuple(sorted(((m, part) for part, m in found.items()), key=lambda x: _stages(x[1])))
    served = [s for _, part in pipeline for s in _stages(part)]
    return pipeline if served == sorted(set(served)) else None


def _stages(part: Any) -> list[int]:
    return [leaf.stage for _, leaf in _leaves(((1, part),))]


def _leaves(pipeline: Pipeline, times: int = 1) -> Iterator[tuple[int, Leaf]]:
    """Yield the replicas on the whole cluster of each stage in order."""
    for m, part in pipeline:
        if isinstance(part, Leaf):
            yield times * m, part
        else:
            yield from _leaves(part, times * m)


class Model:
    """The sums of the page."""

    def __init__(self, problem: Any) -> None:
        self.facts, self.problem, graph = Facts(problem), problem, problem.graph
        self.n, self.back = graph.n_ops, graph.backward.tolist()
        self.training, menu = any(self.back), problem.menu
        topology = problem.cluster.topology
        self.group = getattr(topology, "group", None)
        devices = range(len(self.facts.kinds))
        sizes = [1] + [
            sum(row[d] == row[0] for d in devices)
            for row in ([[0] * len(devices)] if self.group is None else self.group)
        ]
        self.members = [b // a for a, b in pairwise(sizes)]
        self.degrees = [1] if menu is None else menu.degree.tolist()
        fields = ("time", "memory", "parameter_bytes", "activation_bytes", "sync_bytes")
        if menu is None:
            none = [0.0] * self.n
            rows = [self.facts.time[0], graph.memory, graph.parameter_bytes, graph.activation_bytes, none]
            self.menu = {(f, 1): list(map(float, row)) for f, row in zip(fields, rows, strict=True)}
        else:
            self.menu = {
                (f, t): list(map(float, getattr(menu, f)[k])) for f in fields for k, t in enumerate(self.degrees)
            }

    def ordered(self, stage: Sequence[int]) -> bool:
        """Return whether no op is in a stage before that of an op which comes first."""
        return all(stage[a] <= stage[b] for a, b in self.facts.order)

    def seconds(self, stage: Sequence[int], pipeline: Pipeline) -> float:
        """Return the seconds a sample, infinite if something does not run or fit."""
        leaves = list(_leaves(pipeline))
        for i, (replicas, leaf) in enumerate(leaves):
            ahead = sum(m for m, _ in leaves[i + 1 :])
            if not self._fits(stage, leaf, ceil(ahead / replicas)):
                return inf
        return self._slowest(stage, len(self.members), pipeline)

    def _slowest(self, stage: Sequence[int], level: int, pipeline: Pipeline) -> float:
        worst, (bandwidth, wait) = 0.0, self.facts.links[level - 1]
        ways = 2 if self.training else 1
        for i, (m, part) in enumerate(pipeline):
            inside = _stages(part)
            if isinstance(part, Leaf):
                own, size = self._compute(stage, part), self._sum("parameter_bytes", part.degree, stage, inside)
            else:
                own = self._slowest(stage, level - 1, part)
                size = sum(float(self.problem.graph.parameter_bytes[v]) for v in range(self.n) if stage[v] in inside)
            sync = 0.0
            if self.training and m > 1 and size > 0:
                devices = prod(self.members[: level - 1])
                sync = 4 * (m - 1) / m * size / (bandwidth * devices) + 2 * (m - 1) * wait
            ends = ([inside[0]] if i else []) + ([inside[-1] + 1] if i + 1 < len(pipeline) else [])
            crossing = max((self._crosses(stage, s) for s in ends), default=0.0)
            move = ways * (wait + crossing / bandwidth) if crossing > 0 and self.problem.activations else 0.0
            worst = max(worst, (own + sync) / m, move / m)
        return worst

    def _compute(self, stage: Sequence[int], leaf: Leaf) -> float:
        """Return the seconds of a stage's ops; what a menu moves goes over the inner link in a ring."""
        total, (bandwidth, wait) = 0.0, self.facts.links[0]
        for v in range(self.n):
            if stage[v] == leaf.stage:
                moved = self.menu["sync_bytes", leaf.degree][v]
                ring = 2 * (leaf.degree - 1) * wait + moved / bandwidth if moved > 0 else 0.0
                again = 2 if self.problem.recompute and not self.back[v] else 1
                total += again * (self.menu["time", leaf.degree][v] + ring)
        return total

    def _crosses(self, stage: Sequence[int], cut: int) -> float:
        """Return what forward ops before a cut send to forward ops after it, each output once."""
        total, graph = 0.0, self.problem.graph
        for u in range(self.n):
            if not self.back[u] and stage[u] < cut:
                sent = [
                    (float(x), stage[b])
                    for a, b, x in zip(graph.source.tolist(), graph.target.tolist(), graph.edge_bytes, strict=True)
                    if a == u and not self.back[b]
                ]
                total += max(x for x, _ in sent) if any(s >= cut for _, s in sent) else 0.0
        return total

    def _sum(
        self, field: str, degree: int, stage: Sequence[int], inside: Sequence[int], forward: bool = False
    ) -> float:
        row = self.menu[field, degree]
        return sum(row[v] for v in range(self.n) if stage[v] in inside and not (forward and self.back[v]))

    def _fits(self, stage: Sequence[int], leaf: Leaf, under_way: int) -> bool:
        problem, (s, t) = self.problem, leaf
        limit = self.facts.kinds[0].memory
        if problem.memory_model == "none" or limit is None:
            return True
        once = self._sum("memory", t, stage, [s]) if problem.memory_model == "1f1b" else 0.0
        kept = self._crosses(stage, s) if problem.recompute else self._sum("activation_bytes", t, stage, [s], True)
        weights = self._sum("parameter_bytes", t, stage, [s]) if problem.stashing else 0.0
        return once + (under_way if self.training else 0) * (weights + kept) <= limit * (1 + SLACK)
