"""The optimum of tiny problems by looking at every plan, and such problems, in which every constraint may bind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from math import ceil, inf
from typing import Any

import numpy as np

from gangplan.instances import (
    Cluster,
    DeviceType,
    InstanceError,
    Level,
    OpGraph,
    StagesProblem,
    TensorMenu,
    TreeTopology,
    megatron,
    precedence,
)
from gangplan.instances.graph import with_backward
from gangplan.instances.partition import MEMORY_MODELS
from gangplan.instances.verify import TOLERANCE

from ..tiny import graph_of, nobody

MOST = 200_000
"""Ways to cut the ops into stages worth looking at."""

Tree = list[tuple[int, Any]]
"""A pipeline: (replicas, pipeline of each) or, innermost, (replicas, (stage, row of the menu))."""


def optimum(problem: StagesProblem) -> float | None:
    """Return the least seconds a sample of any feasible plan, `None` if there is no feasible plan.

    It takes nothing from the solvers, and from the verifier no more than the definitions that the problem has. More
    than `MOST` ways to cut the ops into stages are refused.
    """
    unit = _units(problem)
    n = int(unit.max()) + 1
    most = min(n, problem.cluster.n_devices)
    if most**n > MOST:
        raise InstanceError("instance", f"{most} stages to the power of {n} units is more than {MOST} ways")
    best = inf
    for stages in range(1, most + 1):
        trees = list(_trees(problem, len(problem.members()) - 1, 0, stages))
        for cut in product(range(stages), repeat=n):
            stage = np.array(cut)[unit]
            if _is_pipeline(problem, stage, stages):
                costs = _StageCosts(problem, stage, stages)
                best = min([best, *(costs.seconds(tree) for tree in trees)])
    return best if best < inf else None


def _units(problem: StagesProblem) -> Any:
    label = problem.graph.colocation
    alone = label.max(initial=-1) + 1 + np.arange(len(label))
    return np.unique(np.where(label >= 0, label, alone), return_inverse=True)[1]


def _is_pipeline(problem: StagesProblem, stage: Any, stages: int) -> bool:
    earlier, later = precedence(problem.graph)
    return len(set(stage.tolist())) == stages and bool((stage[earlier] <= stage[later]).all())


def _trees(problem: StagesProblem, level: int, first: int, last: int) -> Iterator[Tree]:
    """Yield every way in which a group of `level` can run the stages from `first` up to `last` as a pipeline."""
    members, count = problem.members()[level], last - first
    for inner in product((False, True), repeat=count - 1):
        cuts = [first, *(first + 1 + i for i, is_cut in enumerate(inner) if is_cut), last]
        pieces = list(pairwise(cuts))
        for replicas in product(range(1, members + 1), repeat=len(pieces)):
            if sum(replicas) > members:
                continue
            if level:
                parts = product(*(list(_trees(problem, level - 1, a, b)) for a, b in pieces))
                yield from (list(zip(replicas, choice, strict=True)) for choice in parts)
            elif len(pieces) == count:
                degrees = problem.options().degree.tolist()
                for rows in product(range(len(degrees)), repeat=count):
                    if sum(r * degrees[k] for r, k in zip(replicas, rows, strict=True)) <= members:
                        named = zip(range(first, last), rows, strict=True)
                        yield list(zip(replicas, named, strict=True))


class _StageCosts:
    def __init__(self, problem: StagesProblem, stage: Any, stages: int) -> None:
        graph = problem.graph
        self.problem = problem
        self.mine = [stage == s for s in range(stages)]
        menu, seconds, (once, kept) = problem.options(), problem.seconds(), problem.need()
        self.compute = [[float(row[m].sum()) for row in seconds] for m in self.mine]
        self.held = [[float(row[m].sum()) for row in menu.parameter_bytes] for m in self.mine]
        self.weights = [float(graph.parameter_bytes[m].sum()) for m in self.mine]
        self.once = [[float(row[m].sum()) for row in once] for m in self.mine]
        self.kept = [[float(row[m].sum()) for row in kept] for m in self.mine]
        source, target, sent = problem.forward_edges()
        self.inputs = []
        for s in range(stages):
            over = {u for u, v in zip(source.tolist(), target.tolist(), strict=True) if stage[u] < s <= stage[v]}
            self.inputs.append(float(sum(sent[u] for u in over)))

    def seconds(self, tree: Tree) -> float:
        leaves = list(_leaves(tree))
        limit = float(self.problem.capacity()[0]) * (1 + TOLERANCE)
        for i, (replicas, (s, row)) in enumerate(leaves):
            later = sum(count for count, _ in leaves[i + 1 :])
            under_way = ceil(later / replicas) if self.problem.training else 0
            stash = self.kept[s][row]
            if self.problem.recompute and self.problem.memory_model != "none":
                stash += self.inputs[s]
            if self.once[s][row] + under_way * stash > limit:
                return inf
        return self._pipeline(len(self.problem.members()) - 1, tree)

    def _pipeline(self, level: int, tree: Tree) -> float:
        worst = 0.0
        for i, (replicas, part) in enumerate(tree):
            leaves = [s for _, (s, _) in _leaves([(1, part)])]
            if level == 0:
                own, size = self.compute[part[0]][part[1]], self.held[part[0]][part[1]]
            else:
                own, size = self._pipeline(level - 1, part), sum(self.weights[s] for s in leaves)
            worst = max(worst, (own + float(self.problem.sync(level, replicas, np.array(size)))) / replicas)
            for end in ([leaves[0]] if i else []) + ([leaves[-1] + 1] if i + 1 < len(tree) else []):
                worst = max(worst, float(self.problem.move(level, np.array(self.inputs[end]))) / replicas)
        return worst


def _leaves(tree: Tree, outer: int = 1) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield (replicas on the whole cluster, (stage, row)) of the innermost stages in order."""
    for replicas, part in tree:
        if isinstance(part, tuple):
            yield outer * replicas, part
        else:
            yield from _leaves(part, outer * replicas)


SHAPES: tuple[tuple[int, ...], ...] = ((1,), (2,), (3,), (4,), (2, 2), (2, 2), (3, 2), (1, 2, 2), (2, 1), (2, 3))


def random_problem(seed: int, variant: str = "", *, ops: int = 4) -> StagesProblem:
    """Make a small problem in which every constraint may bind, the same for the same arguments.

    Clusters of one to three levels; weights and activations from none to dear; memory from ample to too small, so
    some problems have no plan; with a backward pass or without; some with degrees of tensor parallelism, of which
    some ops lack some. `ops`: forward ops, at most.
    """
    rng = np.random.default_rng(seed)
    graph = _graph(rng, int(rng.integers(1, ops + 1)))
    members = SHAPES[int(rng.integers(len(SHAPES)))]
    speeds = rng.choice([0.5, 2.0, 8.0], len(members))
    latency = float(rng.choice([0.0, 0.0, 0.25]))
    levels = tuple(Level(f"level {i + 1}", float(x), latency) for i, x in enumerate(speeds))
    total = float(graph.memory.sum())
    limit = total * float(rng.choice([0.5, 0.8, 1.5, 4.0]))
    kind = DeviceType("gpu", memory=limit if limit > 0 and rng.random() < 0.8 else None)
    topology = TreeTopology.regular(levels, members)
    cluster = Cluster((kind,), np.zeros(topology.n_devices, dtype=np.int32), topology)
    training = bool(graph.backward.any())
    return StagesProblem(
        graph,
        cluster,
        activations=bool(rng.random() < 0.7),
        recompute=training and bool(rng.random() < 0.3),
        stashing=bool(rng.random() < 0.7),
        memory_model=str(rng.choice(MEMORY_MODELS, p=[0.6, 0.3, 0.1])),
        menu=_menu(rng, graph) if rng.random() < 0.4 else None,
    )


def _graph(rng: np.random.Generator, n: int) -> OpGraph:
    u, v = np.triu_indices(n, 1)
    kept = rng.random(len(u)) < rng.choice([0.3, 0.6, 1.0])
    output = rng.choice([0.0, 1.0, 4.0]) * rng.integers(0, 4, n)
    weights = rng.choice([0.0, 1.0, 3.0]) * rng.integers(0, 4, n)
    colocation, twin, backward = nobody(n)
    if rng.random() >= 0.7:
        colocation = rng.integers(-1, max(1, n // 2), n)
    time = rng.integers(0, 9, (1, n)).astype(float)
    made = colocation, twin, backward
    forward = graph_of(("gpu",), time, output + weights, output, (u[kept], v[kept]), made=made, weights=weights)
    if rng.random() < 0.3:
        return forward
    return with_backward(forward, rng.integers(0, 9, (1, n)).astype(float), output)


def _menu(rng: np.random.Generator, graph: OpGraph) -> TensorMenu:
    menu = megatron(graph, "gpu", [[1, 2], [2], [1, 3], [1, 2, 4]][int(rng.integers(4))])
    time: Any = menu.time * rng.choice([1.0, 1.5], menu.time.shape)
    time[rng.random(time.shape) < rng.choice([0.0, 0.15])] = np.inf
    return replace(menu, time=time)
