"""Why there is no plan: a smallest set of requirements that contradict one another, in words.

Found by deletion filtering (Chinneck and Dravnieks 1991): a requirement that can be dropped while the rest stays
infeasible is no part of the reason. Drops are tried in chunks first, so that thousands of colocation classes take
few steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances import GraphProblem, InstanceError, StagesProblem
from gangplan.instances.pipeline import PipelineProblem
from gangplan.instances.placement import Fleet, GangJob, PlacementProblem
from gangplan.instances.quantities import quantity
from gangplan.instances.schedule import Pool, ScheduleProblem, total
from gangplan.solvers import Run
from gangplan.solvers.method import suite
from gangplan.solvers.run import in_time

from .guard import guarded
from .table import parts, suited

if TYPE_CHECKING:
    from gangplan.instances.layout.problem import LayoutProblem

_SHARE = 0.25
"""What one test of feasibility may take of the time left."""
_ANY_SIZE = 1e30
_MANY = 1000
"""Parts of a problem from which on to list what it requires takes time."""


@dataclass(frozen=True, eq=False)
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
    with run.phase("conflict"):
        if run.remaining() > 0 or parts(run.problem) <= _MANY:
            return tuple(part.words for part in _smallest(run, requirements(run.problem)))
        run.note("no time to say which requirements contradict one another")
        return ()


def _smallest(run: Run, kept: list[Requirement]) -> list[Requirement]:
    """Return those of requirements that contradict one another without the rest."""
    everything, size = kept, max(1, len(kept) // 2)
    sure, quickest = True, 0.0
    while True:
        start = 0
        while start < len(kept):
            before = run.remaining()
            # what a test has taken at the least, the next one takes too
            if before <= quickest:
                run.note("the conflict may not be minimal: out of time")
                return kept
            trial = kept[:start] + kept[start + size :]
            left = set(trial)
            answer = _without(run, [part for part in everything if part not in left])
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
    return kept


def requirements(problem: Any) -> list[Requirement]:
    """Return what a plan of `problem` has to respect: memory, device support, colocation, the variant, ..."""
    kinds: tuple[Callable[[Any], Iterator[Requirement]], ...] = (_colocation, _support, _memory, _variant)
    if isinstance(problem, PlacementProblem):
        kinds = _fleet, _types, _pinned, _wishes, _gangs
    elif isinstance(problem, ScheduleProblem):
        kinds = (_jobs,)
    elif isinstance(problem, PipelineProblem):
        kinds = (_rooms,)
    elif isinstance(problem, StagesProblem):
        kinds = _support, _memory, _stashing
    elif problem.objective == "layout":
        kinds = (_pools,)
    return [x for kind in kinds for x in kind(problem)]


def _without(run: Run, dropped: list[Requirement]) -> bool | None:
    """Return whether there is no plan even without the requirements, `None` if undecided in its share of the time."""
    try:
        problem = _relaxed(run.problem, dropped)
    except InstanceError:  # as large as it would have to be, it is none that can be looked at
        return None
    child = Run(
        problem,
        time_limit=_SHARE * run.remaining(),
        seed=run.seed,
        workers=run.workers,
        callbacks=(lambda child: child.plan is not None,),
    )
    with in_time(child):  # here, without policies: it is one of many small questions
        prepared = suite(problem.objective).prepare(child)
        entries = [x for x in suited(problem) if not x.added and not x.learned and x.does.suits(prepared)]
        for entry in entries:
            if not child.stopped:
                guarded(child, entry if entry is not entries[-1] else replace(entry, share=1.0), prepared)
    if child.failure is not None:
        raise child.failure
    return True if child.infeasible else False if child.plan is not None else None


def _relaxed(problem: Any, dropped: Sequence[Requirement]) -> Any:
    for part in dropped:
        if part.label < 0:
            problem = part.without(problem)
    # a graph is checked whenever one is made: one for all classes, of which there may be hundreds
    labels = [part.label for part in dropped if part.label >= 0]
    return _without_classes(labels, problem) if labels else problem


def _at(items: Sequence[Any], i: int, **change: Any) -> tuple[Any, ...]:
    """Return the items with one of them changed."""
    return (*items[:i], replace(items[i], **change), *items[i + 1 :])


def _colocation(problem: GraphProblem) -> Iterator[Requirement]:
    graph = problem.graph
    order = np.argsort(graph.colocation, kind="stable")
    labels, starts, sizes = np.unique(graph.colocation[order], return_index=True, return_counts=True)
    needs = np.add.reduceat(graph.memory[order], starts)
    for label, start, size, need in zip(labels.tolist(), starts.tolist(), sizes.tolist(), needs.tolist(), strict=True):
        if label >= 0 and size > 1:
            named = _few(graph.names, order[start : start + size].tolist())
            words = f"colocation: {named} share a device; together they need {_written(need)}"
            yield Requirement(words, partial(_without_classes, [label]), label)


def _without_classes(labels: list[int], problem: GraphProblem) -> GraphProblem:
    kept = np.where(np.isin(problem.graph.colocation, labels), -1, problem.graph.colocation)
    return replace(problem, graph=replace(problem.graph, colocation=kept))


def _support(problem: GraphProblem) -> Iterator[Requirement]:
    def supported(name: str, problem: GraphProblem) -> GraphProblem:
        time = problem.graph.time.copy()
        row = time[problem.graph.device_types.index(name)]
        row[~np.isfinite(row)] = 0.0
        return replace(problem, graph=replace(problem.graph, time=time))

    for kind, count, row in zip(problem.cluster.device_types, problem.cluster.counts(), problem.time(), strict=True):
        barred = np.flatnonzero(~np.isfinite(row))
        if count and len(barred):
            words = f"device type: {kind.name} cannot run {_few(problem.graph.names, barred.tolist())}"
            yield Requirement(words, partial(supported, kind.name))


def _memory(problem: GraphProblem) -> Iterator[Requirement]:
    def unlimited(t: int, problem: GraphProblem) -> GraphProblem:
        kinds = _at(problem.cluster.device_types, t, memory=None)
        return replace(problem, cluster=replace(problem.cluster, device_types=kinds))

    need, cluster = problem.graph.memory.sum(), problem.cluster
    for t, (kind, count) in enumerate(zip(cluster.device_types, cluster.counts().tolist(), strict=True)):
        if kind.memory is not None and count:
            words = f"memory: each of {count} {kind.name} has {_written(kind.memory)}; all ops need {_written(need)}"
            if isinstance(problem, StagesProblem) and problem.memory_model != "none":
                more = float(problem.need()[1][0].sum())
                kept = "activations and a version of the weights" if problem.stashing else "activations"
                words += f", and {_written(more)} more, {kept}, for each further sample under way"
            yield Requirement(words, partial(unlimited, t))


def _stashing(problem: StagesProblem) -> Iterator[Requirement]:
    if problem.stashing:
        words = "stashing: a stage keeps a version of its weights for each sample under way"
        yield Requirement(words, lambda p: replace(p, stashing=False))


def _variant(problem: GraphProblem) -> Iterator[Requirement]:
    """Return the variant, but of stages: a backward op is in that of its forward op, or there is no such plan."""
    if problem.variant not in ("", "free"):
        yield Requirement(f"variant: the plan is {problem.variant}", lambda p: replace(p, variant="free"))


def _pools(problem: LayoutProblem) -> Iterator[Requirement]:
    def unlimited(i: int, problem: LayoutProblem) -> LayoutProblem:
        return replace(problem, pools=_at(problem.pools, i, memory=_ANY_SIZE))

    for i, pool in enumerate(problem.pools):
        words = f"memory: {pool.gpu} has {quantity(pool.memory, 'B')}"
        yield Requirement(words, partial(unlimited, i))


def _few(names: Sequence[str], members: Sequence[int], most: int = 4) -> str:
    more = len(members) - most
    return f"{', '.join(names[i] for i in members[:most])}{f' and {more} more' if more > 0 else ''}"


def _fleet(problem: PlacementProblem) -> Iterator[Requirement]:
    fleet, jobs = problem.fleet, problem.jobs
    usable = np.asarray(fleet.usable)
    for field, name in (("gpus", "GPUs"), ("cpu", "cores"), ("memory", "bytes of memory")):
        has = getattr(fleet, field)[usable]
        need = sum(_need(job, field) for job in jobs if job.value is None)
        enough = sum(_need(job, field, most=True) for job in jobs)
        most = float(has.max(initial=0))
        words = f"{name}: {len(has)} nodes have {has.sum():.6g}, at most {most:.6g} each; all jobs need {need:.6g}"
        yield _with_fleet(words, partial(_ample, field, enough))
    if any(job.worker.nic or job.server.nic for job in jobs):
        level = fleet.topology.levels[0]
        need = sum(_need(job, "nic") for job in jobs if job.value is None)
        wide = max(level.bandwidth, sum(_need(job, "nic", most=True) for job in jobs))
        nodes = f"NICs: {usable.sum()} nodes have {_written(level.bandwidth)}/s each"
        yield _with_fleet(
            f"{nodes}; all jobs need {_written(need)}/s",
            lambda x: replace(x, topology=replace(x.topology, levels=_at(x.topology.levels, 0, bandwidth=wide))),
        )
    down = int((~usable).sum())
    if down:
        words = f"nodes: {down} of {fleet.n_nodes} are not usable"
        yield _with_fleet(words, lambda x: replace(x, usable=None))


def _need(job: GangJob, field: str, most: bool = False) -> float:
    workers = job.workers[-1 if most else 0]
    if field == "gpus":
        return workers * (job.worker.grants if most else job.worker.gpu)
    return float(workers * getattr(job.worker, field) + job.servers * getattr(job.server, field))


def _ample(field: str, enough: float, fleet: Fleet) -> Fleet:
    has = getattr(fleet, field)
    # a node without GPUs has none because of what it is
    more = np.where((has > 0) | (field != "gpus"), np.maximum(has, int(enough) + 1), has)
    return replace(fleet, **{field: more})


def _with_fleet(words: str, change: Callable[[Fleet], Fleet]) -> Requirement:
    return Requirement(words, lambda problem: replace(problem, fleet=change(problem.fleet)))


def _types(problem: PlacementProblem) -> Iterator[Requirement]:
    def runs(t: int, k: int, problem: PlacementProblem) -> PlacementProblem:
        compute = problem.speeds.compute.copy()
        compute[t, k] = 1.0
        return replace(problem, speeds=replace(problem.speeds, compute=compute))

    speeds = problem.speeds
    present = {problem.fleet.gpu_types[t] for t in np.unique(problem.fleet.gpu_type[problem.fleet.gpus > 0])}
    asked = {job.model for job in problem.jobs}
    for t, k in np.argwhere(~np.isfinite(speeds.compute)).tolist():
        if speeds.gpu_types[t] in present and speeds.models[k] in asked:
            words = f"GPU type: {speeds.models[k]} does not run on {speeds.gpu_types[t]}"
            yield Requirement(words, partial(runs, t, k))


def _pinned(problem: PlacementProblem) -> Iterator[Requirement]:
    def without(name: str, problem: PlacementProblem) -> PlacementProblem:
        return replace(problem, running=tuple(run for run in problem.running if run.job != name))

    for run in problem.running:
        if not run.movable:
            words = f"pinned: job {run.job} stays on {_few(run.nodes, range(len(run.nodes)))}"
            yield Requirement(words, partial(without, run.job))


def _wishes(problem: PlacementProblem) -> Iterator[Requirement]:
    fleet = problem.fleet
    for job in problem.jobs:
        if job.requires:
            able = fleet.admits(job.requires, fleet.taints) & np.asarray(fleet.usable)
            words = f"selector: job {job.name} goes to nodes with {', '.join(job.requires)}: "
            words += f"{able.sum()} of {fleet.n_nodes}, with {fleet.gpus[able].sum()} GPUs"
            yield _wish(words, job, requires=())
        if taints := tuple(taint for taint in fleet.taints if taint not in job.tolerates):
            words = f"taints: job {job.name} stays off nodes with {', '.join(taints)}"
            yield _wish(words, job, tolerates=fleet.taints)
        if job.gpu_types:
            yield _wish(f"types: job {job.name} runs on {', '.join(job.gpu_types)} alone", job, gpu_types=())
        for name in job.apart:
            rest = tuple(other for other in job.apart if other != name)
            yield _wish(f"apart: jobs {job.name} and {name} share no node", job, apart=rest)
        if job.most_per_node is not None:
            words = f"spread: job {job.name} has at most {job.most_per_node} of its {job.gang} workers on a node"
            yield _wish(words, job, most_per_node=None)
        if job.whole_nodes:
            yield _wish(f"whole nodes: job {job.name} shares no node", job, whole_nodes=False)


def _gangs(problem: PlacementProblem) -> Iterator[Requirement]:
    for job in problem.jobs:
        if job.value is None:
            task, words = job.worker, f"gang: job {job.name} runs whole, {job.gang} workers of "
            words += f"{task.gpu:g} GPU, {task.cpu:g} cores and {_written(task.memory)}"
            if task.nic:
                words += f", {_written(task.nic)}/s of a NIC"
            if job.servers:
                server = f"{job.server.cpu:g} cores and {_written(job.server.memory)}"
                words += f", {job.servers} parameter servers of {server}"
            yield _wish(words, job, value=0.0)


def _wish(words: str, job: GangJob, **change: Any) -> Requirement:
    """Return what `job` asks; without it, the job is changed."""

    def changed(now: GangJob) -> GangJob:
        if "apart" in change:  # of the jobs kept apart one goes at a time, whatever went before
            return replace(now, apart=tuple(name for name in now.apart if name in change["apart"]))
        return replace(now, **change)

    def without(problem: PlacementProblem) -> PlacementProblem:
        return replace(problem, jobs=tuple(changed(x) if x.name == job.name else x for x in problem.jobs))

    return Requirement(words, without)


def _rooms(problem: PipelineProblem) -> Iterator[Requirement]:
    """Yield the memory of each device."""
    ample = float(problem.activation.sum()) * problem.micro_batches

    def without(d: int, p: PipelineProblem) -> PipelineProblem:
        return replace(p, capacity=np.where(np.arange(p.devices) == d, ample, p.capacity))

    for d, room in enumerate(problem.capacity.tolist()):
        yield Requirement(f"memory: device {d} has {quantity(room, problem.unit, 6)}", partial(without, d))


def _jobs(problem: ScheduleProblem) -> Iterator[Requirement]:
    """Yield what a schedule has to respect: the GPUs there are, deadlines, and that jobs run."""

    def changed(j: int, **change: Any) -> Callable[[ScheduleProblem], ScheduleProblem]:
        return lambda p: replace(p, jobs=_at(p.jobs, j, **change))

    ample = Pool(sum(job.degrees[-1] for job in problem.jobs))
    yield Requirement(f"GPUs: there are {total(problem.capacity)}", lambda p: replace(p, capacity=ample))
    for j, job in enumerate(problem.jobs):
        if problem.price(j) is not None:
            continue
        degrees = " or ".join(map(str, job.degrees))
        yield Requirement(f"run: job {job.name} must run, on {degrees} GPUs", changed(j, value=0.0))
        if job.deadline is not None:
            words = f"deadline: job {job.name} is due {job.deadline - job.release:.6g} s after its release"
            yield Requirement(words, changed(j, deadline=None))


def _written(size: float) -> str:
    """Return bytes with so many digits that what is needed and what there is differ."""
    return quantity(size, "B", 6)
