"""How the stages of a plan are nested: replicas are members of a group that serve the same stages in the same way."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from ..partition import StagesPlan, StagesProblem

Nest = tuple[tuple[int, Any], ...]
"""The pipeline of a group: (replicas, pipeline of each) in the order of the stages, innermost (replicas, stage)."""


def nesting(problem: StagesProblem, plan: StagesPlan) -> tuple[Nest, list[str]]:
    """Return the pipeline of the whole cluster, and why it is none, in words."""
    serves = plan.serves[problem.device_order()].tolist()
    reader = _Reader(problem, serves, plan.degree.tolist())
    nest = reader.group(len(problem.members()) - 1, 0, len(serves))
    idle = sorted({*range(len(plan.degree))} - {*serves})
    return nest, reader.words or [f"stage {s} is served by no device" for s in idle]


def stages_of(nest: Nest | int) -> list[int]:
    """Return the stages of a pipeline."""
    return [nest] if isinstance(nest, int) else [s for _, part in nest for s in stages_of(part)]


def totals(nest: Nest | int, times: int = 1) -> dict[int, int]:
    """Return in how many replicas each stage runs on the whole cluster."""
    if isinstance(nest, int):
        return {nest: times}
    return {s: count for replicas, part in nest for s, count in totals(part, times * replicas).items()}


class _Reader:
    """Reads groups of devices from the inside out and keeps what is wrong with them."""

    def __init__(self, problem: StagesProblem, serves: list[int], degree: list[int]) -> None:
        self.names = [level.name for level in problem.levels()]
        self.members = problem.members()
        self.serves, self.degree = serves, degree
        self.words: list[str] = []

    def group(self, level: int, first: int, last: int) -> Nest:
        """Return the pipeline of the group of `level` that the devices from `first` to `last` are."""
        where = f"{self.names[level]} {first // (last - first)}"
        if level == 0:
            found = Counter(s for s in self.serves[first:last] if s >= 0)
            parts: list[tuple[int, Any]] = []
            for s, devices in sorted(found.items()):
                replicas, rest = divmod(devices, self.degree[s])
                if rest:
                    self.words.append(
                        f"{where}: {devices} devices serve stage {s}, a replica of it takes {self.degree[s]}"
                    )
                parts.append((replicas, s))
        else:
            size = (last - first) // self.members[level]
            children = [self.group(level - 1, a, a + size) for a in range(first, last, size)]
            same = Counter(child for child in children if child)
            parts = sorted(((count, child) for child, count in same.items()), key=lambda part: stages_of(part[1]))
        stages = [s for _, part in parts for s in stages_of(part)]
        twice = sorted(s for s, count in Counter(stages).items() if count > 1)
        gaps = [] if twice else [(a, b) for a, b in pairwise(stages) if b != a + 1]
        self.words += [f"{where}: its {self.names[level - 1]}s share stage {s}, but not in the same way" for s in twice]
        self.words += [f"{where}: it serves the stages {a} and {b}, but none between" for a, b in gaps]
        return tuple(parts)
