"""What a placement has to respect, one requirement at a time, for `conflict`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gangplan.instances.placement import Fleet, GangJob, PlacementProblem

from .conflict import Requirement

Change = Callable[[PlacementProblem], PlacementProblem]


def requirements(problem: PlacementProblem) -> list[Requirement]:
    """Return what a plan has to respect: capacities, nodes down, what GPU types run, and all that the jobs ask."""
    return [*_fleet(problem), *_types(problem), *_pinned(problem), *_wishes(problem), *_gangs(problem)]


def _fleet(problem: PlacementProblem) -> list[Requirement]:
    fleet, jobs = problem.fleet, problem.jobs
    usable = np.asarray(fleet.usable)
    parts = []
    for field, name in (("gpus", "GPUs"), ("cpu", "cores"), ("memory", "bytes of memory")):
        has = getattr(fleet, field)[usable]
        need = sum(_need(job, field) for job in jobs if job.value is None)
        enough = sum(_need(job, field, most=True) for job in jobs)
        most = float(has.max(initial=0))
        words = (
            f"{name}: {len(has)} nodes have {float(has.sum()):.6g}, at most {most:.6g} each; all jobs need {need:.6g}"
        )
        parts.append(Requirement(words, _with_fleet(partial(_ample, field=field, enough=enough))))
    if any(job.worker.nic or job.server.nic for job in jobs):
        parts.append(_nics(problem))
    down = int((~usable).sum())
    if down:
        words = f"nodes: {down} of {fleet.n_nodes} are not usable"
        parts.append(Requirement(words, _with_fleet(lambda x: replace(x, usable=None))))
    return parts


def _nics(problem: PlacementProblem) -> Requirement:
    """Return what NICs allow; without it, those of all nodes have room for everything."""
    nodes, level = int(np.asarray(problem.fleet.usable).sum()), problem.fleet.topology.levels[0]
    need = sum(_need(job, "nic") for job in problem.jobs if job.value is None)
    enough = sum(_need(job, "nic", most=True) for job in problem.jobs)
    words = f"NICs: {nodes} nodes have {level.bandwidth:.6g} bytes/s each; all jobs need {need:.6g}"

    def ample(fleet: Fleet) -> Fleet:
        levels = replace(level, bandwidth=max(level.bandwidth, enough)), *fleet.topology.levels[1:]
        return replace(fleet, topology=replace(fleet.topology, levels=levels))

    return Requirement(words, _with_fleet(ample))


def _need(job: GangJob, field: str, most: bool = False) -> float:
    workers = job.workers[-1 if most else 0]
    if field == "gpus":
        return workers * (job.worker.grants if most else job.worker.gpu)
    return float(workers * getattr(job.worker, field) + job.servers * getattr(job.server, field))


def _ample(fleet: Fleet, field: str, enough: float) -> Fleet:
    has = getattr(fleet, field)
    # a node without GPUs has none because of what it is
    return replace(fleet, **{field: np.where((has > 0) | (field != "gpus"), np.maximum(has, int(enough) + 1), has)})


def _with_fleet(change: Callable[[Fleet], Fleet]) -> Change:
    return lambda problem: replace(problem, fleet=change(problem.fleet))


def _types(problem: PlacementProblem) -> list[Requirement]:
    speeds, parts = problem.speeds, []
    present = {problem.fleet.gpu_types[t] for t in np.unique(problem.fleet.gpu_type[problem.fleet.gpus > 0])}
    asked = {job.model for job in problem.jobs}
    for t, k in np.argwhere(~np.isfinite(speeds.compute)).tolist():
        if speeds.gpu_types[t] in present and speeds.models[k] in asked:
            words = f"GPU type: {speeds.models[k]} does not run on {speeds.gpu_types[t]}"
            parts.append(Requirement(words, _with_type(t, k)))
    return parts


def _with_type(t: int, k: int) -> Change:
    def without(problem: PlacementProblem) -> PlacementProblem:
        compute = problem.speeds.compute.copy()
        compute[t, k] = 1.0
        return replace(problem, speeds=replace(problem.speeds, compute=compute))

    return without


def _pinned(problem: PlacementProblem) -> list[Requirement]:
    def without(name: str) -> Change:
        return lambda problem: replace(problem, running=tuple(run for run in problem.running if run.job != name))

    return [
        Requirement(f"pinned: job {run.job} stays on {_names(run.nodes)}", without(run.job))
        for run in problem.running
        if not run.movable
    ]


def _wishes(problem: PlacementProblem) -> list[Requirement]:
    parts = []
    fleet = problem.fleet
    for job in problem.jobs:
        if job.requires:
            able = fleet.labelled[[fleet.labels.index(x) for x in job.requires]].all(axis=0) & np.asarray(fleet.usable)
            words = (
                f"selector: job {job.name} goes to nodes with {', '.join(job.requires)}: "
                f"{int(able.sum())} of {fleet.n_nodes}, with {int(fleet.gpus[able].sum())} GPUs"
            )
            parts.append(_wish(words, job, requires=()))
        for name in job.apart:
            rest = tuple(other for other in job.apart if other != name)
            parts.append(_wish(f"apart: jobs {job.name} and {name} share no node", job, apart=rest))
        if job.most_per_node is not None:
            words = f"spread: job {job.name} has at most {job.most_per_node} of its {job.gang} workers on a node"
            parts.append(_wish(words, job, most_per_node=None))
        if job.whole_nodes:
            parts.append(_wish(f"whole nodes: job {job.name} shares no node", job, whole_nodes=False))
    return parts


def _gangs(problem: PlacementProblem) -> list[Requirement]:
    parts = []
    for job in problem.jobs:
        if job.value is None:
            task = job.worker
            words = (
                f"gang: job {job.name} runs whole, {job.gang} workers of {task.gpu:g} GPU, {task.cpu:g} cores "
                f"and {task.memory:.6g} bytes"
            )
            if task.nic:
                words += f", {task.nic:.6g} bytes/s of a NIC"
            if job.servers:
                words += f", {job.servers} servers of {job.server.cpu:g} cores and {job.server.memory:.6g} bytes"
            parts.append(_wish(words, job, value=0.0))
    return parts


def _wish(words: str, job: GangJob, **change: Any) -> Requirement:
    """Return what `job` asks; without it, the job is changed."""

    def without(problem: PlacementProblem) -> PlacementProblem:
        return replace(
            problem, jobs=tuple(replace(x, **_merged(x, change)) if x.name == job.name else x for x in problem.jobs)
        )

    return Requirement(words, without)


def _merged(job: GangJob, change: dict[str, Any]) -> dict[str, Any]:
    # of the jobs kept apart one goes at a time, whatever went before
    if "apart" in change:
        return {"apart": tuple(name for name in job.apart if name in change["apart"])}
    return change


def _names(nodes: tuple[str, ...], most: int = 4) -> str:
    more = len(nodes) - most
    return f"{', '.join(nodes[:most])} and {more} more" if more > 0 else ", ".join(nodes)
