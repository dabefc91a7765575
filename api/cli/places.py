"""Where plans run ops, and how that differs."""

from __future__ import annotations

from collections import Counter

import numpy as np

from gangplan.instances import GraphProblem, Plan, StagesPlan

Places = list[tuple[int, ...]]
"""The devices that run each op: one, or all that serve its stage."""


def places(problem: GraphProblem, plan: Plan) -> Places | None:
    """Return where each op runs, `None` if the plan is for other ops or other devices."""
    n, d = problem.graph.n_ops, problem.cluster.n_devices
    if len(plan.ops) != n:
        return None
    if isinstance(plan, StagesPlan):
        serving = [tuple(np.flatnonzero(plan.serves == s).tolist()) for s in range(len(plan.degree))]
        return [serving[s] for s in plan.stage.tolist()] if len(plan.serves) == d else None
    return [(x,) for x in plan.device.tolist()] if plan.device.max() < d else None


def cuts(problem: GraphProblem, where: Places) -> int:
    """Return how many edges lead from one place to another."""
    graph = problem.graph
    return sum(where[u] != where[v] for u, v in zip(graph.source.tolist(), graph.target.tolist(), strict=True))


def moved(problem: GraphProblem, where: Places) -> float:
    """Return the bytes sent, an output once to each other place that needs it."""
    graph = problem.graph
    ends = zip(graph.source.tolist(), graph.target.tolist(), strict=True)
    size = graph.output_bytes()
    return float(sum(size[u] for u, _ in {(u, where[v]) for u, v in ends if where[u] != where[v]}))


def differences(problem: GraphProblem, first: Places, other: Places) -> tuple[int, int]:
    """Return how many ops lie elsewhere, and how many if places of one kind may swap their names, at most.

    Names are swapped greedily, the two places that share most ops first.
    """
    type_of = problem.cluster.type_of
    different = sum(a != b for a, b in zip(first, other, strict=True))
    shared = Counter(zip(first, other, strict=True))
    taken: tuple[set[tuple[int, ...]], set[tuple[int, ...]]] = (set(), set())
    kept = 0
    for (a, b), count in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
        alike = sorted(type_of[list(a)]) == sorted(type_of[list(b)])
        if alike and a not in taken[0] and b not in taken[1]:
            taken[0].add(a)
            taken[1].add(b)
            kept += count
    return different, min(different, len(first) - kept)
