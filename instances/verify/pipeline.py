"""The verifier of orders of passes: when each runs, what each device holds, and how long a step takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..pipeline import Passes, PipelinePlan, PipelineProblem
from ..quantities import quantity
from .verdict import TOLERANCE, Judgement

_SHOWN = 8
"""Passes of a wrong plan that are named."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PipelineVerdict(Judgement):
    """What the verifier found of a plan of passes; its objective is in seconds.

    Attributes:
        start, finish: seconds, of each pass as `PipelineProblem.passes` numbers them, float64 (n,).
        load: seconds each device is busy, float64 (devices,).
        memory: bytes each device holds at most, float64 (devices,).
        bubble: share of the time of all devices in which they are idle.
    """

    start: FloatArray
    finish: FloatArray
    load: FloatArray
    memory: FloatArray
    bubble: float


def verify_pipeline(problem: PipelineProblem, plan: PipelinePlan) -> PipelineVerdict:
    """Check `plan` and recompute the seconds of a step from its orders alone (docs/pipeline.md)."""
    none, nobody = np.zeros(0), np.zeros(problem.devices)
    if wrong := _shape(problem, plan):
        return PipelineVerdict(tuple(wrong), None, none, none, nobody, nobody, 0.0)
    passes, orders = problem.passes(), problem.orders(plan)
    memory = np.array([np.cumsum(passes.change[order]).max(initial=0.0) for order in orders])
    violations = _memory(problem, passes, orders)
    ends, stuck = finishes(problem, passes, orders)
    if stuck:
        waits = "; ".join(
            f"device {d} with {problem.told(x)} for {problem.told(int(passes.before[x]))}" for d, x in stuck[:_SHOWN]
        )
        violations.append(f"deadlock: devices wait for one another: {waits}")
        return PipelineVerdict(tuple(violations), None, none, none, problem.load(), memory, 0.0)
    seconds, begin = step_seconds(ends, orders)
    finish = (ends + begin).max(axis=1)
    bubble = 1 - float(problem.load().sum()) / (problem.devices * seconds) if seconds else 0.0
    value = None if violations else seconds
    held = finish - passes.seconds, finish, problem.load(), memory
    return PipelineVerdict(tuple(violations), value, *held, max(bubble, 0.0))


def _shape(problem: PipelineProblem, plan: PipelinePlan) -> list[str]:
    kinds, v, m = 2 + problem.split, problem.stages, problem.micro_batches
    for name, found, most in (("stage", plan.stage, v), ("micro-batch", plan.micro_batch, m)):
        if (found >= most).any():
            return [f"pass {int(np.argmax(found >= most))} is of {name} {found.max()}, the problem has {most}"]
    if (plan.phase >= kinds).any():
        return [f"pass {int(np.argmax(plan.phase >= kinds))} is W, which the backward passes of the problem hold"]
    numbers = (plan.phase * v + plan.stage) * m + plan.micro_batch
    times = np.bincount(numbers, minlength=problem.n_passes)
    return [
        f"passes: {problem.told(x)} is in the plan {times[x]} times"
        for x in np.flatnonzero(times != 1)[:_SHOWN].tolist()
    ]


def _memory(problem: PipelineProblem, passes: Passes, orders: Sequence[Sequence[int]]) -> list[str]:
    """Return where a device first holds more than it has: at the start of a forward pass, and nowhere else."""
    words = []
    for d, (order, limit) in enumerate(zip(orders, problem.capacity.tolist(), strict=False)):
        held = np.cumsum(passes.change[order])
        over = held > limit * (1 + TOLERANCE)
        if over.any():
            i = int(np.argmax(over))
            most, has = (quantity(x, problem.unit, 6) for x in (held[i], limit))
            words.append(f"memory: device {d} holds {most} during {problem.told(order[i])}, it has {has}")
    return words


def finishes(
    problem: PipelineProblem, passes: Passes, orders: Sequence[Sequence[int]]
) -> tuple[FloatArray, list[tuple[int, int]]]:
    """Return when passes end if each starts as early as it can, and where devices wait for one another for ever.

    With a barrier devices start at 0, and there is one column. Else column i has what the start of device i at 0 alone
    means for each end, -inf if nothing: float64 (n, devices).

    Returns:
        The ends, float64 (n, columns); of devices that are stuck their number and the pass that is next.
    """
    p = problem.devices
    begin: Any = [0.0] * p if problem.barrier else list(np.where(np.eye(p), 0.0, -np.inf))
    later: Any = max if problem.barrier else np.maximum
    before, lag, seconds = (x.tolist() for x in (passes.before, passes.lag, passes.seconds))
    free, done, at = begin, [False] * len(before), [0] * len(orders)
    ends: list[Any] = [np.nan if problem.barrier else begin[0]] * len(before)
    waiting = dict[int, int]()
    todo = list(range(len(orders)))
    while todo:
        d = todo.pop()
        for x in orders[d][at[d] :]:
            u = before[x]
            if u >= 0 and not done[u]:
                waiting[u] = d
                break
            start = free[d] if u < 0 else later(free[d], ends[u] + lag[x])
            ends[x] = free[d] = start + seconds[x]
            done[x] = True
            at[d] += 1
            if x in waiting:
                todo.append(waiting.pop(x))
    stuck = [(d, order[at[d]]) for d, order in enumerate(orders) if at[d] < len(order)]
    return np.array(ends).reshape(len(ends), -1), stuck


def step_seconds(ends: FloatArray, orders: Sequence[Sequence[int]]) -> tuple[float, FloatArray]:
    """Return the seconds of a step, and when devices start so that steps follow each other as closely, float64 (p,).

    With a barrier that is the last end. Else let A[i, j] be the seconds from the start of device i to the end of device
    j, as far as the one has to wait for the other. Step k of device j cannot start before x_i(k) + A[i, j], so that in
    the long run steps are as far apart as the greatest mean of a cycle says: the eigenvalue of A in (max, +), by Karp
    (Discrete Mathematics 23, 1978).
    """
    last = np.array([ends[order[-1]] for order in orders])
    if ends.shape[1] == 1:
        return float(last.max()), np.zeros(1)
    path, p = last.T, len(orders)
    walks = [np.zeros(p)]  # the heaviest walks of k arcs to each device
    for _ in range(p):
        walks.append((walks[-1][:, None] + path).max(axis=0))
    means = (walks[p] - np.stack(walks[:p])) / np.arange(p, 0, -1)[:, None]
    seconds = float(means.min(axis=0).max())
    begin = np.zeros(p)
    for _ in range(p):
        begin = np.maximum(begin, (begin[:, None] + path - seconds).max(axis=0))
    return seconds, begin - begin.min()
