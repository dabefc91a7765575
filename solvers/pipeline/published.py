"""Published schedules of pipelines, stated as orders.

GPipe (Huang et al., NeurIPS 2019), 1F1B (Narayanan et al., SOSP 2019), interleaved 1F1B (Narayanan et al., SC 2021),
ZB-H1, ZB-H2 and ZB-V (Qi et al., ICLR 2024; ZB-V as PyTorch states it).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.instances.pipeline import PipelinePlan, PipelineProblem
from gangplan.instances.verify import TOLERANCE
from gangplan.instances.verify.pipeline import peaks

from ..run import Run

F, B, W = range(3)
Pass = tuple[int, int, int]
"""Kind, stage and micro-batch."""
Orders = list[list[Pass]] | None
"""Of each device; nothing where a schedule is not made for the problem."""


def layout(problem: PipelineProblem) -> str:
    """Return how stages lie on devices: ``line``, ``loop`` (round and round), ``v`` (there and back) or empty."""
    p, v = problem.devices, problem.stages
    if v % p:
        return ""
    line = np.arange(p)
    if np.array_equal(problem.device, np.tile(line, v // p)):
        return "line" if v == p else "loop"
    return "v" if v == 2 * p and np.array_equal(problem.device, [*line, *line[::-1]]) else ""


def gpipe(problem: PipelineProblem) -> Orders:
    """Run all micro-batches forward, then all backward."""
    if not layout(problem):
        return None
    own = [np.flatnonzero(problem.device == d).tolist() for d in range(problem.devices)]
    every = range(problem.micro_batches)
    orders = [[(F, s, j) for s in mine for j in every] for mine in own]
    return [
        a + _whole(problem, [(s, j) for s in mine[::-1] for j in every]) for a, mine in zip(orders, own, strict=True)
    ]


def one_forward_one_backward(problem: PipelineProblem) -> Orders:
    """Hold as few micro-batches as keep the last device busy, and run them backward as soon as it can be."""
    return _alternate(problem, 0, 0)


def zb_h1(problem: PipelineProblem) -> Orders:
    """Let gradients of weights fill the cool-down, with no more memory than 1F1B."""
    return _alternate(problem, 0, 1) if problem.split else None


def zb_h2(problem: PipelineProblem) -> Orders:
    """Fill the warm-up with more micro-batches, up to 2 p - 1: no device is idle between its first and its last pass.

    With memory for fewer of them, as many as there is room for: each one less leaves a forward pass of idle time.
    """
    if not problem.split or layout(problem) != "line":
        return None
    p, held = problem.devices, float(problem.activation.max())
    room = int(problem.capacity.min(initial=np.inf) / held * (1 + 1e-9)) if held and len(problem.capacity) else 2 * p
    return _alternate(problem, min(room - p, p - 1), 1) if room > p else None


def _alternate(problem: PipelineProblem, more: int, late: int) -> Orders:
    """Run p - d micro-batches forward on device d, or up to `more` more, then alternate; W is `late`, or at once."""
    if layout(problem) != "line":
        return None
    p, m, orders = problem.devices, problem.micro_batches, []
    for d in range(p):
        first = min(p - d + min(more, p - d - 1), m)
        lag = late * (p + more - first) if first < m else late * d
        order: list[Pass] = [(F, d, j) for j in range(first)]
        for j in range(m):
            order.append((B, d, j))
            if problem.split and j >= lag:
                order.append((W, d, j - lag))
            if first + j < m:
                order.append((F, d, first + j))
        orders.append(order + [(W, d, j) for j in range(max(m - lag, 0), m)] * problem.split)
    return orders


def interleaved(problem: PipelineProblem) -> Orders:
    """Alternate as 1F1B does with several stages a device, which take p micro-batches in turns."""
    p, m, v = problem.devices, problem.micro_batches, problem.stages // problem.devices
    if layout(problem) != "loop" or m % p:
        return None
    turns = [(k // p % v, k // (p * v) * p + k % p) for k in range(m * v)]
    orders = []
    for d in range(p):
        first = min(2 * (p - d - 1) + (v - 1) * p, m * v)
        ahead = [(F, c * p + d, j) for c, j in turns]
        back = [_whole(problem, [((v - 1 - c) * p + d, j)]) for c, j in turns]
        order = ahead[:first]
        for k, passes in enumerate(back):
            order += ahead[first + k : first + k + 1] + passes
        orders.append(order)
    return orders


def zb_v(problem: PipelineProblem) -> Orders:
    """Lay stages there and back, so that no device is idle with the memory of 1F1B."""
    p, m = problem.devices, problem.micro_batches
    if layout(problem) != "v" or not problem.split:
        return None
    most, orders = max(2 * p - 1, m), []
    for d in range(p):
        count = dict.fromkeys(((kind, s) for kind in (F, B, W) for s in (d, 2 * p - 1 - d)), 0)
        order: list[Pass] = []

        def run(*kinds: tuple[int, int], order: list[Pass] = order, count: dict[tuple[int, int], int] = count) -> None:
            for kind in kinds:
                order.append((*kind, count[kind]))
                count[kind] += 1

        (f0, f1), (b0, b1), (w0, w1) = (((kind, d), (kind, 2 * p - 1 - d)) for kind in (F, B, W))
        run(*[f0] * (2 * (p - d) - 1), *[f1, f0] * d, *[f1, b1, w1] * (p - d))
        while count[f1] < count[f0] or count[f0] < most:
            run(*[f0] * (count[f0] < most), b0, w0, f1, b1, w1)
        run(*[b0, b1] * d, *[b0, w0] * (p - d))
        run(*[w1] * (count[b1] - count[w1]), *[w0] * (count[b0] - count[w0]))
        orders.append([x for x in order if x[2] < m])
    return orders


def _whole(problem: PipelineProblem, at: list[tuple[int, int]]) -> list[Pass]:
    """Return backward passes, each with its gradients of weights."""
    return [(kind, s, j) for s, j in at for kind in (B, W)[: 1 + problem.split]]


PUBLISHED: dict[str, Callable[[PipelineProblem], Orders]] = {
    "GPipe": gpipe,
    "1F1B": one_forward_one_backward,
    "interleaved 1F1B": interleaved,
    "ZB-H1": zb_h1,
    "ZB-H2": zb_h2,
    "ZB-V": zb_v,
}
"""By their names."""


def plan_of(problem: PipelineProblem, name: str) -> PipelinePlan | None:
    """Return the plan of a published schedule, feasible or not; nothing if it is not made for such a problem."""
    orders = PUBLISHED[name](problem)
    return None if orders is None else problem.plan([[problem.number(*x) for x in order] for order in orders])


def published(run: Run, prepared: object = None) -> None:
    """Offer every published schedule that is made for the problem and fits, that with least memory first."""
    problem, passes = run.problem, run.problem.passes()
    made: list[tuple[float, str, PipelinePlan]] = []
    for name in reversed(PUBLISHED):
        plan = None if run.stopped else plan_of(problem, name)
        if plan is not None:
            peak = peaks(passes, problem.orders(plan))
            if not len(problem.capacity) or not np.any(peak > problem.capacity * (1 + TOLERANCE)):
                made.append((float(np.max(peak)), name, plan))
    for _, name, plan in sorted(made, key=lambda x: x[0]):
        run.offer(plan, name)
