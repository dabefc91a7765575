"""Back through the recurrence to a plan: the stages of its best value, ops to stages, devices to replicas."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from gangplan.instances import StagesPlan, StagesProblem
from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.verify.stages import Nest

from .recurrence import Level, Option, State


@dataclass(frozen=True)
class Step:
    """A stage of a pipeline as it was chosen, from ideal `start` to `end`; `later` samples are under way behind it."""

    option: Option
    start: int
    end: int
    later: int


def best_steps(level: Level, fed: dict[State, FloatArray]) -> tuple[float, list[Step]]:
    """Return the least time of a pipeline over the top level and its steps; infinity and nothing if there is none.

    Args:
        level: the top one.
        fed: what its `top` returned.
    """
    state = min(fed, key=lambda x: (float(fed[x][0]), x))
    if not np.isfinite(fed[state][0]):
        return np.inf, []
    return float(fed[state][0]), _walk(level, state, 0, len(level.family) - 1, 0, fed)


def inner_steps(level: Level, behind: int, workers: int, start: int, end: int) -> list[Step]:
    """Return the steps of the best pipeline of a group, with so many replicas in it, from one ideal to another."""
    table = level.table(behind)
    choices = [state for state in table.plain if state[1] == workers]
    state = min(choices, key=lambda x: (float(table.plain[x][start, end]), x))
    return _walk(level, state, start, end, behind, {x: value[:, end] for x, value in table.fed.items()})


def _walk(
    level: Level, state: State | None, start: int, end: int, behind: int, fed: dict[State, FloatArray]
) -> list[Step]:
    steps: list[Step] = []
    while state is not None:
        best: tuple[float, Step, State | None] | None = None
        for option, rest in level.ways(state):
            later = level.later(option, rest, behind)
            row = level.stage(option, later, slice(start, start + 1))[0]
            at = end
            if rest is not None:
                row = np.maximum(np.maximum(row, level.moves / option.replicas), fed[rest])
                at = int(row[: end + 1].argmin())
            value = float(row[at])
            if steps:
                value = max(value, float(level.moves[start]) / option.replicas)
            if best is None or value < best[0]:
                best = value, Step(option, start, at, later), rest
        assert best is not None, "a state comes from some way"
        steps.append(best[1])
        start, state = best[1].end, best[2]
    return steps


def plan_of(level: Level, steps: list[Step]) -> StagesPlan:
    """Return the plan of a pipeline over the members of the top level."""
    ends: list[int] = []
    degree: list[int] = []
    nest = _nest(level, steps, ends, degree)
    family, problem = level.family, level.family.problem
    # a unit's stage is how many stages end before it is done
    stage = (~family.bits[ends]).sum(axis=0).astype(np.int32)[family.units.order.group_of]
    shares = np.array(degree, dtype=np.int32)
    return StagesPlan(problem.graph.names, stage, deal(problem, nest, shares), shares)


def deal(problem: StagesProblem, nest: Nest, degree: IntArray) -> IntArray:
    """Return the stage that each device serves: members in order, devices of a replica side by side."""
    order, members = problem.device_order(), problem.members()
    serves = np.full(len(order), -1, dtype=np.int32)

    def place(level: int, part: Nest, first: int) -> None:
        for replicas, inner in part:
            if isinstance(inner, int):
                last = first + replicas * int(degree[inner])
                serves[order[first:last]] = inner
                first = last
                continue
            for _ in range(replicas):
                place(level - 1, inner, first)
                first += prod(members[:level])

    place(len(members) - 1, nest, 0)
    return serves


def _nest(level: Level, steps: list[Step], ends: list[int], degree: list[int]) -> Nest:
    """Return the nested pipeline and list, on the way, where each stage ends and how many devices share its ops."""
    parts: list[tuple[int, Nest | int]] = []
    for step in steps:
        option = step.option
        if level.inner is None:
            parts.append((option.replicas, len(ends)))
            ends.append(step.end)
            degree.append(int(level.family.problem.options().degree[option.what]))
            continue
        inner = inner_steps(level.inner, step.later, option.what, step.start, step.end)
        parts.append((option.replicas, _nest(level.inner, inner, ends, degree)))
    return tuple(parts)
