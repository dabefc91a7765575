"""Why there is no plan: a smallest set of requirements that contradict one another, in words.

Found by deletion filtering (Chinneck and Dravnieks 1991): a requirement that can be dropped while the rest stays
infeasible is no part of the reason. Drops are tried in chunks first, so that thousands of colocation classes take
few steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gangplan.instances import GraphProblem, InstanceError, OpGraph, PartitionProblem, StagesProblem
from gangplan.instances.placement import PlacementProblem
from gangplan.instances.schedule import ScheduleProblem
from gangplan.solvers import Run

from .guard import in_time
from .portfolio import run_here

_SHARE = 0.25
"""What one test of feasibility may take of the time left."""


@dataclass(frozen=True)
class Requirement:
    """One thing the plan has to respect, and the problem without it.

    Attributes:
        words: what it asks for.
        without: from the problem to the one without it.
        label: of the colocation class that it is, -1 if it is something else.
    """

    words: str
    without: Callable[[Any], Any]
    label: int = -1


def conflict(run: Run) -> tuple[str, ...]:
    """Return requirements of `run.problem`, proved infeasible, that cannot hold together, in words.

    None of them can be left out, unless the time ended before that was known: then a note says so.
    """
    kept = requirements(run.problem)
    everything = kept
    size = max(1, len(kept) // 2)
    sure, quickest = True, 0.0
    while True:
        start = 0
        while start < len(kept):
            before = run.remaining()
            # what a test has taken at the least, the next one takes too
            if before <= quickest:
                run.note("the conflict may not be minimal: out of time")
                return tuple(part.words for part in kept)
            trial = kept[:start] + kept[start + size :]
            dropped = [part for part in everything if part not in trial]
            answer = _without(run, dropped)
            took = before - run.remaining()
            quickest = min(quickest, took) if quickest else took
            if answer:
                kept = trial
            else:
                start += size
                sure = sure and (answer is not None or size > 1)
        if size == 1:
            break
        size = max(1, min(size, len(kept)) // 2)
    if not sure:
        run.note("the conflict may not be minimal: not every smaller one could be decided in time")
    return tuple(part.words for part in kept)


def requirements(problem: Any) -> list[Requirement]:
    """Return what a plan of `problem` has to respect: memory, device support, colocation, the variant, ..."""
    if isinstance(problem, PlacementProblem):
        from . import conflict_placement

        return conflict_placement.requirements(problem)
    if isinstance(problem, ScheduleProblem):
        from . import conflict_schedule

        return conflict_schedule.requirements(problem)
    if isinstance(problem, StagesProblem):
        # a backward op is in the stage of its forward op: there is no such plan without that
        return [*_support(problem), *_memory(problem), *_stashing(problem)]
    return [*_colocation(problem), *_support(problem), *_memory(problem), *_variant(problem)]


def _without(run: Run, dropped: list[Requirement]) -> bool | None:
    """Return whether there is no plan even without the requirements, `None` if that cannot be decided."""
    try:
        problem = _relaxed(run.problem, dropped)
    except InstanceError:  # as large as it would have to be, it is none that can be looked at
        return None
    return _infeasible(run, problem)


def _relaxed(problem: Any, dropped: Iterable[Requirement]) -> Any:
    labels = []
    for part in dropped:
        if part.label >= 0:
            labels.append(part.label)
        else:
            problem = part.without(problem)
    # a graph is checked whenever one is made: one for all classes, of which there may be hundreds
    return _without_classes(labels)(problem) if labels else problem


def _infeasible(run: Run, problem: Any) -> bool | None:
    """Return whether `problem` has no plan, `None` if that could not be decided in its share of the time."""
    child = Run(
        problem,
        time_limit=_SHARE * run.remaining(),
        seed=run.seed,
        workers=run.workers,
        callbacks=(lambda child: child.plan is not None,),
    )
    with in_time(child):
        run_here(child)
    if child.failure is not None:
        raise child.failure
    return True if child.infeasible else False if child.plan is not None else None


def _colocation(problem: GraphProblem) -> list[Requirement]:
    graph = problem.graph
    parts = []
    for label in np.unique(graph.colocation[graph.colocation >= 0]).tolist():
        members = np.flatnonzero(graph.colocation == label)
        if len(members) > 1:
            need = graph.memory[members].sum()
            words = f"colocation: {_names(graph, members)} share a device; together they need {need:.6g} bytes"
            parts.append(Requirement(words, _without_classes([label]), label))
    return parts


def _without_classes(labels: list[int]) -> Callable[[GraphProblem], GraphProblem]:
    def without(problem: GraphProblem) -> GraphProblem:
        kept = np.where(np.isin(problem.graph.colocation, labels), -1, problem.graph.colocation)
        return replace(problem, graph=replace(problem.graph, colocation=kept))

    return without


def _support(problem: GraphProblem) -> list[Requirement]:
    time, graph = problem.time(), problem.graph
    present = problem.cluster.counts() > 0
    parts = []
    for t, kind in enumerate(problem.cluster.device_types):
        barred = np.flatnonzero(~np.isfinite(time[t]))
        if present[t] and len(barred):
            words = f"device type: {kind.name} cannot run {_names(graph, barred)}"
            parts.append(Requirement(words, _with_support(kind.name)))
    return parts


def _with_support(name: str) -> Callable[[GraphProblem], GraphProblem]:
    def without(problem: GraphProblem) -> GraphProblem:
        time = problem.graph.time.copy()
        row = time[problem.graph.device_types.index(name)]
        row[~np.isfinite(row)] = 0.0
        return replace(problem, graph=replace(problem.graph, time=time))

    return without


def _memory(problem: GraphProblem) -> list[Requirement]:
    cluster = problem.cluster
    parts = []
    for t, (kind, count) in enumerate(zip(cluster.device_types, cluster.counts().tolist(), strict=True)):
        if kind.memory is not None and count:
            words = (
                f"memory: each of {count} {kind.name} has {kind.memory:.6g} bytes; "
                f"all ops need {problem.graph.memory.sum():.6g}"
            )
            parts.append(Requirement(words, _with_memory(t)))
    return parts


def _with_memory(t: int) -> Callable[[GraphProblem], GraphProblem]:
    def without(problem: GraphProblem) -> GraphProblem:
        kinds: list[Any] = list(problem.cluster.device_types)
        kinds[t] = replace(kinds[t], memory=None)
        return replace(problem, cluster=replace(problem.cluster, device_types=tuple(kinds)))

    return without


def _variant(problem: GraphProblem) -> list[Requirement]:
    if not isinstance(problem, PartitionProblem) or problem.variant == "free":
        return []
    return [
        Requirement(f"variant: the plan is {problem.variant}", lambda p: PartitionProblem(p.graph, p.cluster, "free"))
    ]


def _stashing(problem: StagesProblem) -> list[Requirement]:
    if not problem.stashing:
        return []
    words = "stashing: a stage keeps a version of its weights for each sample under way"
    return [Requirement(words, lambda p: replace(p, stashing=False))]


def _names(graph: OpGraph, members: Any, most: int = 4) -> str:
    names = [graph.names[i] for i in members[:most]]
    more = len(members) - len(names)
    return f"{', '.join(names)} and {more} more" if more > 0 else ", ".join(names)
