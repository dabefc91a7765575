"""Convex partitions: when an optimal pipeline is an optimal convex plan too.

Call an op a bottleneck if it is comparable with every other op of the order, and let v1 < v2 < ... be all of them.
If a convex part A contains a bottleneck v, every other part lies wholly before v or wholly after v, for a path from
one side to the other runs through v. A cycle of the quotient that leaves A for a part after v could only come back
to A by a path out of A and into it again, which convexity forbids; so no part of a cycle contains a bottleneck, and
all of them lie in one gap between two successive bottlenecks. Hence a convex plan is either a pipeline, or it has two
devices that hold nothing (in the order) outside one gap. In the second case all other work is left to the other
devices, and its load is at least

    min over gaps of (work of groups with an op outside the gap) / (sum over devices of r[t] less the two smallest).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gangplan.instances import precedence
from gangplan.instances.graph import topological_order

from ...run import Run
from .pipeline import pipeline
from .quotient import Quotient


def convex(run: Run, own: Quotient, contiguous: Quotient) -> None:
    """Solve the pipeline; where a plan with a cycle could not beat it, its bound holds for convex plans too."""
    child = Run(
        replace(run.problem, variant="contiguous"),
        time_limit=run.deadline - run.started,
        seed=run.seed,
        workers=run.workers,
        gap=run.target_gap,
        callbacks=(lambda child: _pass_on(run, child),),
        started=run.started,
    )
    with run.phase("pipeline"):
        pipeline(child, contiguous)
    for text in child.notes:
        run.note(text)
    if child.failure is not None:
        raise child.failure
    if child.bound is not None and not child.infeasible:
        with run.phase("cycles"):
            run.raise_bound(min(child.bound, cyclic_bound(own)), "pipeline")


def cyclic_bound(q: Quotient) -> float:
    """Return a lower bound in seconds on the load of any convex plan whose quotient has a cycle."""
    earlier, later = precedence(q.problem.graph)
    ops = np.unique(np.concatenate([earlier, later]))
    speed = np.sort(np.repeat(q.speed, q.counts))
    rest = float(speed[2:].sum())
    if not len(ops) or len(speed) < 2:
        return float("inf")
    gap = np.full(q.problem.graph.n_ops, -1)
    gap[ops] = _gaps(q.problem.graph.n_ops, ops.tolist(), earlier.tolist(), later.tolist())
    best = float("inf")
    for index in np.unique(gap[ops]).tolist():
        bound_elsewhere = np.unique(q.group_of[(gap >= 0) & (gap != index)])
        work = float(q.work[bound_elsewhere].sum())
        # without other devices the work outside the gap has nowhere to go: no such plan
        elsewhere = float("inf") if rest <= 0 else work / rest
        best = min(best, elsewhere if work > 0 else 0.0)
    return best


def _gaps(n: int, ops: list[int], earlier: list[int], later: list[int]) -> list[int]:
    """Return for each of `ops` the gap it lies in: even numbers, or an odd number of its own for a bottleneck."""
    present = set(ops)
    order = [v for v in topological_order(n, np.array(earlier), np.array(later)).tolist() if v in present]
    before: list[list[int]] = [[] for _ in range(n)]
    after: list[list[int]] = [[] for _ in range(n)]
    for a, b in zip(earlier, later, strict=True):
        before[b].append(a)
        after[a].append(b)
    up, down = [0] * n, [0] * n
    for v in order:
        for u in before[v]:
            up[v] |= up[u] | 1 << u
    for v in reversed(order):
        for w in after[v]:
            down[v] |= down[w] | 1 << w
    count, number = 0, {}
    for v in order:
        # a bottleneck's rank in any topological order is the number of its ancestors
        if up[v].bit_count() + down[v].bit_count() == len(order) - 1:
            number[v] = 2 * count + 1
            count += 1
        else:
            number[v] = 2 * count
    return [number[v] for v in ops]


def _pass_on(run: Run, child: Run) -> bool:
    if child.plan is not None and child.plan is not run.plan:
        run.offer(child.plan, child.trace[-1].by)
    return run.stop_reason is not None
