"""The verifier of plans of replicated stages: what each stage takes and needs, level by level."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np

from ..arrays import FloatArray, IntArray, sums
from ..partition import StagesPlan, StagesProblem
from ..quantities import quantity
from .verdict import TOLERANCE, Verdict, apart, backwards, shape


def verify_stages(problem: StagesProblem, plan: StagesPlan) -> Verdict:
    """Check `plan` and recompute the seconds a sample of its slowest stage (docs/stages.md)."""
    devices = problem.cluster.n_devices
    wrong = shape(problem, plan.ops, np.zeros(len(plan.ops), dtype=np.int32))
    if not wrong and len(plan.serves) != devices:
        wrong = [f"the plan says what {len(plan.serves)} devices serve, the cluster has {devices}"]
    if not wrong:
        wrong = _degrees(problem, plan)
    if wrong:
        return Verdict.nothing(wrong, devices)
    nest, words = nesting(problem, plan)
    words = [*_order(problem, plan), *_support(problem, plan), *words]
    if words:
        return Verdict.nothing(words, devices)
    terms, level = _ObjectiveTerms(problem, plan), len(problem.members()) - 1
    load, waits, memory = np.zeros(len(plan.degree)), np.zeros(len(plan.degree)), terms.needed(nest)
    for s, cost in terms.busy(level, nest).items():
        load[s], waits[s] = cost
    limit = problem.capacity()[0]
    overfull = [
        f"memory: a device of stage {s} needs {quantity(memory[s], 'B', 6)}, it has {quantity(limit, 'B', 6)}"
        for s in np.flatnonzero(memory > limit * (1 + TOLERANCE))
    ]
    # T, the seconds a sample of a pipeline: the longest of its stages and of the moves between them
    objective = None if overfull else max(terms.pipeline(level, nest))
    busy = [np.where(plan.serves >= 0, of_stage[plan.serves], 0.0) for of_stage in (load, waits, memory)]
    return Verdict(tuple(overfull), objective, *busy)


class _ObjectiveTerms:
    """The parts of the objective of one plan."""

    def __init__(self, problem: StagesProblem, plan: StagesPlan) -> None:
        self.problem, self.plan = problem, plan
        row, stages = _row(problem, plan), len(plan.degree)
        each = np.arange(len(plan.stage))
        self.compute = sums(plan.stage, problem.seconds()[row, each], stages)
        self.held = sums(plan.stage, problem.options().parameter_bytes[row, each], stages)
        self.weights = sums(plan.stage, problem.graph.parameter_bytes, stages)
        self.inputs = _crossing(problem, plan)

    def needed(self, nest: Nest) -> FloatArray:
        """Return the bytes a device of each stage needs, float64 (stages,).

        With 1F1B a stage waits for the later ones: of rho replicas each has ceil(replicas of all later stages / rho)
        further samples under way (Narayanan et al., SOSP 2019, section 3.3, for each stage).
        """
        problem, plan = self.problem, self.plan
        once, kept = (row[_row(problem, plan), np.arange(len(plan.stage))] for row in problem.need())
        count = totals(nest)
        replicas = np.array([count[s] for s in range(len(plan.degree))])
        later = np.cumsum(replicas[::-1])[::-1] - replicas
        under_way = -(-later // replicas) if problem.training else np.zeros_like(later)
        stash = sums(plan.stage, kept, len(replicas))
        if problem.recompute and problem.memory_model != "none":
            stash += self.inputs
        return np.asarray(sums(plan.stage, once, len(replicas)) + under_way * stash)

    def sync(self, level: int, replicas: int, part: Nest | int) -> float:
        """Return the seconds of one synchronisation of the replicas of a stage."""
        size = self.held[part] if isinstance(part, int) else self.weights[stages_of(part)].sum()
        return float(self.problem.sync(level, replicas, np.asarray(size)))

    def pipeline(self, level: int, nest: Nest) -> list[float]:
        """Return the seconds a sample of each stage and each move of a pipeline.

        A stage of r replicas takes (T of a replica + sync)/r, and as long at least as moving its inputs and outputs.
        """
        found = []
        for i, (replicas, part) in enumerate(nest):
            own = self.compute[part] if isinstance(part, int) else max(self.pipeline(level - 1, part))
            ends = [*([part] if i else []), *([nest[i + 1][1]] if i + 1 < len(nest) else [])]
            moved = self.problem.move(level, np.array([self.inputs[stages_of(end)[0]] for end in ends]))
            seconds = float(own) + self.sync(level, replicas, part)
            found.append(max([seconds, *moved.tolist()]) / replicas if ends else seconds / replicas)
        return found

    def busy(self, level: int, nest: Nest) -> dict[int, tuple[float, float]]:
        """Return (seconds, of them synchronisation) of a device of each stage."""
        found: dict[int, tuple[float, float]] = {}
        for replicas, part in nest:
            inner = {part: (float(self.compute[part]), 0.0)} if isinstance(part, int) else self.busy(level - 1, part)
            wait = self.sync(level, replicas, part)
            found |= {s: ((load + wait) / replicas, (sync + wait) / replicas) for s, (load, sync) in inner.items()}
        return found


def _row(problem: StagesProblem, plan: StagesPlan) -> IntArray:
    """Return the row of the menu that each op is on, int32 (n,)."""
    return np.searchsorted(problem.options().degree, plan.degree)[plan.stage].astype(np.int32)


def _crossing(problem: StagesProblem, plan: StagesPlan) -> FloatArray:
    """Return the bytes that earlier stages hand to each stage and those after it, float64 (stages,)."""
    source, target, sent = problem.forward_edges()
    last = plan.stage.copy()
    np.maximum.at(last, source, plan.stage[target])
    away = last > plan.stage
    ends = np.concatenate([plan.stage[away], last[away]]) + 1
    sign = np.repeat([1, -1], away.sum())
    count = np.cumsum(sums(ends, sign, len(plan.degree) + 1))
    crossing = np.cumsum(sums(ends, sign * np.tile(sent[away], 2), len(plan.degree) + 1))
    # where nothing crosses, rounding is not to leave anything
    return np.asarray(np.where(count > 0, crossing, 0.0)[:-1])


def _degrees(problem: StagesProblem, plan: StagesPlan) -> list[str]:
    menu = problem.options().degree
    known = ", ".join(map(str, menu.tolist()))
    return [
        f"stage {s} shares its ops among {plan.degree[s]} devices, the menu has {known}"
        for s in np.flatnonzero(~np.isin(plan.degree, menu))
    ]


def _order(problem: StagesProblem, plan: StagesPlan) -> list[str]:
    """Check that there are ops in every stage, classes in one, and that stages follow one another."""
    graph, stage = problem.graph, plan.stage
    empty = np.flatnonzero(np.bincount(stage, minlength=len(plan.degree)) == 0)
    words = [f"stage {s} has no op" for s in empty]
    words += apart(graph, stage, "in stage", "in stage")
    return words + backwards(problem, stage, "pipeline")


def _support(problem: StagesProblem, plan: StagesPlan) -> list[str]:
    row = _row(problem, plan)
    seconds = problem.seconds()[row, np.arange(len(row))]
    inner, most = problem.levels()[0].name, problem.members()[0]
    return [
        f"op {problem.graph.names[i]} cannot run on {plan.degree[plan.stage[i]]} devices of one {inner} of {most}"
        for i in np.flatnonzero(~np.isfinite(seconds))
    ]


Nest = tuple[tuple[int, Any], ...]
"""The pipeline of a group: (replicas, pipeline of each) in the order of the stages, innermost (replicas, stage)."""


def nesting(problem: StagesProblem, plan: StagesPlan) -> tuple[Nest, list[str]]:
    """Return the pipeline of the whole cluster, read from the inside out, and why it is none, in words."""
    names, members = [level.name for level in problem.levels()], problem.members()
    serves, degree = plan.serves[problem.device_order()].tolist(), plan.degree.tolist()
    words: list[str] = []

    def group(level: int, first: int, last: int) -> Nest:
        """Return the pipeline of the group of `level` that the devices from `first` to `last` are."""
        where = f"{names[level]} {first // (last - first)}"
        if level == 0:
            parts: list[tuple[int, Any]] = []
            for s, devices in sorted(Counter(s for s in serves[first:last] if s >= 0).items()):
                replicas, rest = divmod(devices, degree[s])
                if rest:
                    words.append(f"{where}: {devices} devices serve stage {s}, a replica of it takes {degree[s]}")
                parts.append((replicas, s))
        else:
            size = (last - first) // members[level]
            children = [group(level - 1, a, a + size) for a in range(first, last, size)]
            same = Counter(child for child in children if child)
            parts = sorted(((count, child) for child, count in same.items()), key=lambda part: stages_of(part[1]))
        stages = [s for _, part in parts for s in stages_of(part)]
        twice = sorted(s for s, count in Counter(stages).items() if count > 1)
        gaps = [] if twice else [(a, b) for a, b in pairwise(stages) if b != a + 1]
        words.extend(f"{where}: its {names[level - 1]}s share stage {s}, but not in the same way" for s in twice)
        words.extend(f"{where}: it serves the stages {a} and {b}, but none between" for a, b in gaps)
        return tuple(parts)

    nest = group(len(members) - 1, 0, len(serves))
    idle = sorted({*range(len(degree))} - {*serves})
    return nest, words or [f"stage {s} is served by no device" for s in idle]


def stages_of(nest: Nest | int) -> list[int]:
    """Return the stages of a pipeline."""
    return [nest] if isinstance(nest, int) else [s for _, part in nest for s in stages_of(part)]


def totals(nest: Nest | int, times: int = 1) -> dict[int, int]:
    """Return in how many replicas each stage runs on the whole cluster."""
    if isinstance(nest, int):
        return {nest: times}
    return {s: count for replicas, part in nest for s, count in totals(part, times * replicas).items()}
