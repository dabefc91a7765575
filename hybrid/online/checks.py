"""Refuse a job that cannot run on a cluster, whatever else runs there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gangplan.instances import InstanceError

from .kinds import check_terms
from .request import Request

if TYPE_CHECKING:
    from .state import ClusterState


def check_new(state: ClusterState, request: Request) -> None:
    """Refuse a job that cannot run here, whatever else runs.

    Raises:
        InstanceError: naming the field.
    """
    name, held = request.name, state.later.held
    for words, jobs in (
        ("waits", state.waiting), ("runs", state.running), ("waits", held), ("was done", state.finished)
    ):  # fmt: skip
        if name in jobs:
            raise InstanceError("job.name", f"{name!r} {words} already: give each job a name of its own")
    check_changed(state, request)


def check_changed(state: ClusterState, request: Request) -> None:
    """Refuse a job whose name is known as `check_new` does, and forget what was kept of that name."""
    job = request.job
    state.forget(request)
    if 0 < job.worker.gpu < 1:
        raise InstanceError("job.worker.gpu", f"{job.worker.gpu!r} is not a whole number of GPUs")
    if not (job.worker.gpu or job.worker.cpu or job.worker.memory or job.worker.nic):
        raise InstanceError("job.worker", "asks for nothing: name GPUs, cores, memory or NIC")
    check_terms(request, state.fleet)
    state.sharing.check(request.terms.queue)
    if not state.bundle(request, job.workers[0]):
        types, asked = state.fleet.gpu_types, job.workers[0] * job.worker.grants
        if job.gpu_types and not {*job.gpu_types} & {*types}:
            raise InstanceError("job.gpu_types", f"the cluster has {', '.join(types)}, not {', '.join(job.gpu_types)}")
        there = int(state.fleet.gpus[state.fleet.usable].sum())
        more = f"{asked} GPUs, more than the {there} that there are" if asked > there else _needs(request)
        raise InstanceError("job", f"{job.name!r} with {job.workers[0]} workers never fits: {more}")
    if state.accounts.bounded:
        whole = state.placer.whole[:3, state.fleet.usable].sum(axis=1).tolist()
        asks = state.asks(request, job.workers[0])
        state.forget(request)  # another job may be called like it if it is refused
        if limit := state.accounts.never(request.terms, asks, whole):
            raise InstanceError("job", f"{job.name!r} never may start: {limit}")


def _needs(request: Request) -> str:
    """Say what a worker needs and no nodes have."""
    need = request.job.worker
    units = {"GPUs": need.gpu, "cores": need.cpu, "bytes": need.memory, "bytes/s of NIC": need.nic}
    return f"no nodes have room for workers of {', '.join(f'{x:g} {unit}' for unit, x in units.items() if x)}"
