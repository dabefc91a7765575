"""Refuse a job that cannot run on a cluster, whatever else runs there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.quantities import counted
from gangplan.solvers.placement.online.capacity import Kind
from gangplan.solvers.placement.online.shared import levels_of
from gangplan.solvers.placement.online.state import MOST

from ..starting.gpu_types import as_placed
from .accounts import Amounts
from .request import Request

if TYPE_CHECKING:
    from .job_lines import JobLines


def check_new(state: JobLines, request: Request) -> None:
    """Refuse a job that cannot run here, whatever else runs, unless it waits for nodes.

    Raises:
        InstanceError: naming the field.
    """
    check_known(state, request)
    _check_fits(state, request)


def check_known(state: JobLines, request: Request) -> None:
    """Refuse a job that none can be: one that came when there were other nodes and queues may be whatever fits none."""
    name, held = request.job.name, state.later.held
    for words, jobs in (
        ("waits", state.waiting), ("runs", state.running), ("waits", held), ("was done", state.finished)
    ):  # fmt: skip
        if name in jobs:
            raise InstanceError("job.name", f"{name!r} {words} already: give each job a name of its own")
    _check_form(state, request)


def check_changed(state: JobLines, request: Request, before: Request) -> None:
    """Refuse a change of a job as `check_new` does, unless the job as it was would be refused too."""
    _check_form(state, request)
    if request.terms.queue != before.terms.queue:
        state.sharing.check(request.terms.queue)
    try:
        _check_fits(state, before)
    except InstanceError:
        return  # nodes are gone, or limits are others
    _check_fits(state, request)


def _check_form(state: JobLines, request: Request) -> None:
    """Refuse a job that none can be, whatever its name, and forget what was kept of that name."""
    job = request.job
    state.forget(request)
    if 0 < job.worker.gpu < 1:
        raise InstanceError("job.worker.gpu", f"{job.worker.gpu!r} is not a whole number of GPUs")
    if not (job.worker.gpu or job.worker.cpu or job.worker.memory or job.worker.nic):
        raise InstanceError("job.worker", "asks for nothing: name GPUs, cores, memory or NIC")
    _check_groups(request)
    if state.speeds is not None and job.worker.gpu and job.model not in state.speeds.models:
        raise InstanceError("job.model", f"{job.model!r} has no speed")


def _check_groups(request: Request) -> None:
    """Refuse numbers of workers that are no groups."""
    terms, job = request.terms, request.job
    for degree in job.workers:
        if degree % terms.group:
            raise InstanceError("group", f"{terms.group!r} does not divide {degree}, a number of workers")
    if terms.group > 1 and not job.worker.gpu:
        raise InstanceError("group", f"{terms.group!r} is of no meaning for {job.name!r}, which has no GPU")
    if job.most_per_node is not None and terms.group > job.most_per_node:
        raise InstanceError("group", f"{terms.group!r} is more than most_per_node, {job.most_per_node}")


def _check_names(request: Request, fleet: Fleet) -> None:
    """Refuse a level, a label or types that the cluster has not."""
    level, levels, types = request.terms.within, levels_of(fleet), request.job.gpu_types
    if level and level not in levels:
        raise InstanceError("within", f"{level!r} is no level of the cluster: {', '.join(levels)}")
    for label in request.job.requires:
        if label not in fleet.labels:
            raise InstanceError("job.requires", f"{label!r} is no label of the fleet")
    if types and not {*types} & {*fleet.gpu_types}:
        raise InstanceError("job.gpu_types", f"the cluster has {', '.join(fleet.gpu_types)}, not {', '.join(types)}")


def _check_fits(state: JobLines, request: Request) -> None:
    """Refuse a job that never fits the nodes that there are, nor its limits; only these if it waits for nodes."""
    job, waits = request.job, request.terms.await_nodes
    if request.terms.queue:
        state.sharing.check(request.terms.queue)
    if not waits:
        _check_names(request, state.fleet)
    if not waits and not state.bundle(request, job.workers[0]):
        asked, there = job.workers[0] * job.worker.grants, state.fleet.n_gpus
        more = f"{asked} GPUs, more than the {there} that there are" if asked > there else _lacks(state, request)
        words = f"{job.name!r} with {job.workers[0]} workers never fits: {more}"
        raise InstanceError("job", f"{words}; await_nodes=True has it wait for nodes to come")
    if state.accounts.bounded:
        whole = [int(MOST)] * 3 if waits else state.placer.whole[:3].sum(axis=1).tolist()
        if limit := state.accounts.never(request.terms, _least(state, request), whole):
            raise InstanceError("job", f"{job.name!r} never may start: {limit}")


def _least(state: JobLines, request: Request) -> Amounts:
    """Return what a job keeps from others with the fewest workers if all nodes are up."""
    degree = request.job.workers[0]
    size = state.bundle(request, degree, up=False) if request.together else request.terms.group
    gang = request.placed(degree, max(1, size))
    return tuple(gang.workers[0] * need for need in Kind.workers(gang).need[:3])


def too_few(state: JobLines, request: Request, degree: int) -> str:
    """Return how many of its workers the nodes have room for if nobody is there, in words."""
    there, up = (_room(state, request, degree, up) for up in (False, True))
    which, room = ("there are", there) if there < degree else ("are up", up)
    return f"the nodes that {which} are too few for it: they have room for {room} of its {counted(degree, 'worker')}"


def _room(state: JobLines, request: Request, degree: int, up: bool) -> int:
    """Return how many of its workers have room in one domain if nobody is there."""
    gang, group = as_placed(request, state.loose(request), degree), request.terms.group
    kind = Kind.workers(gang)
    room = state.placer.most_on(kind, up=up) // group * group
    return int(np.bincount(state.placer.domain(kind), room).max(initial=0))


def _lacks(state: JobLines, request: Request) -> str:
    """Say how many nodes there are too few, or what a worker needs and no nodes have."""
    degree = request.job.workers[0]
    if 0 < _room(state, request, degree, False) < degree:
        return too_few(state, request, degree)
    need = request.job.worker
    units = {"GPUs": need.gpu, "cores": need.cpu, "bytes": need.memory, "bytes/s of NIC": need.nic}
    return f"no nodes have room for workers of {', '.join(f'{x:g} {unit}' for unit, x in units.items() if x)}"
