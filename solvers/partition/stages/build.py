"""From steps of the recurrence to a plan: ops to stages, devices to replicas."""

from __future__ import annotations

from math import prod

import numpy as np

from gangplan.instances import StagesPlan, StagesProblem
from gangplan.instances.arrays import IntArray
from gangplan.instances.verify.nesting import Nest

from .recurrence import Level
from .trace import Step, inner_steps


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
