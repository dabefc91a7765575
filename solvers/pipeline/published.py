"""Published schedules of pipelines, stated as orders.

GPipe (Huang et al., NeurIPS 2019), 1F1B (Narayanan et al., SOSP 2019), interleaved 1F1B (Narayanan et al., SC 2021),
ZB-H1, ZB-H2 and ZB-V (Qi et al., ICLR 2024; ZB-V as PyTorch states it).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from gangplan.instances import verify
from gangplan.instances.pipeline import PHASES, PipelinePlan, PipelineProblem

from ..run import Run

F, B, W = range(3)
Pass = tuple[int, int, int]
"""Kind, stage and micro-batch."""
Turns = Sequence[tuple[int, int]]
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


def _alternate(
    problem: PipelineProblem, turns: Turns, ahead: Callable[[int], int], lag: Callable[[int], int]
) -> Orders:
    """Run so many passes ahead, then one forward and one backward in turns; W comes `lag` backward passes later.

    Args:
        turns: which stage of a device, of those it has, and which micro-batch go forward; backward stages are reversed.
        ahead, lag: by device.
    """
    orders = []
    for d in range(problem.devices):
        mine, first, late = np.flatnonzero(problem.device == d).tolist(), ahead(d), lag(d)
        forward, back = [(F, mine[c], j) for c, j in turns], [(mine[-1 - c], j) for c, j in turns]
        order = forward[:first]
        for k, x in enumerate(back):
            order += [*forward[first + k : first + k + 1], (B, *x)]
            if problem.split and k >= late:
                order.append((W, *back[k - late]))
        orders.append(order + [(W, *x) for x in back[max(len(back) - late, 0) :]] * problem.split)
    return orders


def _none(_: int) -> int:
    return 0


def gpipe(problem: PipelineProblem) -> Orders:
    """Run all micro-batches forward, then all backward."""
    turns = list(product(range(problem.stages // problem.devices), range(problem.micro_batches)))
    return _alternate(problem, turns, lambda _: len(turns), _none) if layout(problem) else None


def interleaved(problem: PipelineProblem) -> Orders:
    """Alternate as 1F1B does with several stages a device, which take p micro-batches in turns."""
    p, m, v = problem.devices, problem.micro_batches, problem.stages // problem.devices
    if layout(problem) != "loop" or m % p:
        return None
    turns = [(k // p % v, k // (p * v) * p + k % p) for k in range(m * v)]
    return _alternate(problem, turns, lambda d: 2 * (p - d - 1) + (v - 1) * p, _none)


def one_forward_one_backward(problem: PipelineProblem) -> Orders:
    """Hold as few micro-batches as keep the last device busy, and run them backward as soon as it can be."""
    return _line(problem, 0, 0)


def zb_h1(problem: PipelineProblem) -> Orders:
    """Let gradients of weights fill the cool-down, with no more memory than 1F1B."""
    return _line(problem, 0, 1) if problem.split else None


def zb_h2(problem: PipelineProblem) -> Orders:
    """Fill the warm-up with more micro-batches, up to 2 p - 1: no device is idle between its first and its last pass.

    With memory for fewer of them, as many as there is room for: each one less leaves a forward pass of idle time.
    """
    p, held = problem.devices, float(problem.activation.max())
    room = int(problem.capacity.min(initial=np.inf) / held * (1 + 1e-9)) if held and len(problem.capacity) else 2 * p
    return _line(problem, min(room - p, p - 1), 1) if problem.split and room > p else None


def _line(problem: PipelineProblem, more: int, late: int) -> Orders:
    """Hold p - d micro-batches on device d, or up to `more` more; W is `late`, or at once."""
    p, m = problem.devices, problem.micro_batches

    def held(d: int) -> int:
        return min(p - d + min(more, p - d - 1), m)

    def lag(d: int) -> int:
        return late * (p + more - held(d) if held(d) < m else d)

    return (
        _alternate(problem, [(0, j) for j in range(m)], lambda d: held(d) - 1, lag)
        if layout(problem) == "line"
        else None
    )


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


class PublishedSchedule(NamedTuple):
    """A schedule as its paper has it.

    Attributes:
        orders: makes it.
        whole: whether gradients of weights are part of its backward passes.
        idle: seconds that a device is idle in a step, of p devices with v stages each, which take f, b and w seconds
            for the passes of a micro-batch; below 0 or not a number where the paper says nothing.
    """

    orders: Callable[[PipelineProblem], Orders]
    whole: bool
    idle: Callable[[int, int, float, float, float], float]


PUBLISHED = {
    "GPipe": PublishedSchedule(gpipe, True, lambda p, v, f, b, w: (p - 1) * (f + b + w) if v == 1 else np.nan),
    "1F1B": PublishedSchedule(one_forward_one_backward, True, lambda p, v, f, b, w: (p - 1) * (f + b + w)),
    "interleaved 1F1B": PublishedSchedule(interleaved, True, lambda p, v, f, b, w: (p - 1) * (f + b + w) / v),
    "ZB-H1": PublishedSchedule(zb_h1, False, lambda p, v, f, b, w: (p - 1) * (f + b - w)),
    "ZB-H2": PublishedSchedule(zb_h2, False, lambda p, v, f, b, w: (p - 1) * (f + b - 2 * w)),
    "ZB-V": PublishedSchedule(zb_v, False, lambda p, v, f, b, w: 0.0 if f == b == w else np.nan),
}
"""By their names."""


def plan_of(problem: PipelineProblem, name: str) -> PipelinePlan | None:
    """Return the plan of a published schedule, feasible or not; nothing if it is not made for such a problem."""
    orders = PUBLISHED[name].orders(problem)
    return None if orders is None else problem.plan([[problem.number(*x) for x in order] for order in orders])


def as_published(problem: PipelineProblem, name: str) -> tuple[PipelineProblem, PipelinePlan | None]:
    """Return the problem with backward passes whole where the paper has them so, and the plan for that."""
    made = replace(problem, split=problem.split and not PUBLISHED[name].whole)
    return made, plan_of(made, name)


def published_bubble(problem: PipelineProblem, name: str) -> float | None:
    """Return the bubble that its paper states, of many steps without a barrier; nothing where it states none.

    Papers are about even stages without transfers.
    """
    passes, p = problem.passes(), problem.devices
    each = [x for x in (problem.forward, problem.backward, problem.weight) if np.ptp(x) == 0]
    if len(each) < len(PHASES) or passes.lag.any() or not layout(problem):
        return None
    v = problem.stages // p
    idle = PUBLISHED[name].idle(p, v, *(v * float(x[0]) for x in each))
    return idle / (idle + float(problem.load()[0])) if idle >= 0 and problem.load()[0] else None


def published(run: Run, prepared: object = None) -> None:
    """Offer every published schedule that is made for the problem and fits, that with least memory first."""
    made: list[tuple[float, str, PipelinePlan, float]] = []
    for name in reversed(PUBLISHED):
        plan = None if made and run.stopped else plan_of(run.problem, name)
        verdict = None if plan is None else verify(run.problem, plan)
        if plan is not None and verdict is not None and verdict.objective is not None:
            made.append((float(verdict.memory.max()), name, plan, verdict.objective))
    for _, name, plan, objective in sorted(made, key=lambda x: x[0]):
        run.keep(plan, objective, name)
