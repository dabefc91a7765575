"""Seconds on each GPU type, and what the workers of a job share: from what `submit` is told to what the placer sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.errors import did_you_mean
from gangplan.instances.placement import Fleet, GangJob
from gangplan.instances.verify.actions import verify_shared
from gangplan.solvers.placement.online.shared import Shared, SharedGang, level_groups

from ..queueing.request import Seconds, given_seconds

if TYPE_CHECKING:
    from gangplan.solvers.placement.online.capacity import Capacity

    from ..queueing.request import Request
    from ..state import SchedulerState

Types = tuple[tuple[str, tuple[float, ...]], ...]
"""GPU types, with the time of a job there over that on its best type, for each number of workers."""
TypedSeconds = Mapping[str, float | Sequence[float] | Mapping[int, float]]
"""Seconds by GPU type, for each of them as of `Seconds`."""


def by_type(
    job: GangJob, seconds: Seconds | TypedSeconds, types: Sequence[str] | None
) -> tuple[GangJob, Seconds, Types]:
    """Return the job with the types on which it runs, its seconds on the best of them, and how the others compare.

    `types` are those that there are, `None` if any may come.
    """
    if not isinstance(seconds, Mapping) or not any(isinstance(key, str) for key in seconds):
        return job, seconds, ()  # type: ignore[return-value] # no key is a type
    rows: dict[str, tuple[float, ...]] = {}
    for kind, value in seconds.items():
        if types is not None and kind not in types:
            words = f"{kind!r} is no GPU type of the cluster{did_you_mean(kind, types)}"
            raise InstanceError("seconds", words)
        if job.gpu_types and kind not in job.gpu_types:
            raise InstanceError("seconds", f"{kind!r} is not one of the GPU types that {job.name!r} accepts")
        row = given_seconds(job, value)
        if row is None:
            raise InstanceError("seconds", f"names none on {kind!r}")
        rows[str(kind)] = row
    if not job.worker.gpu:
        raise InstanceError("seconds", f"{job.name!r} has no GPU, so that its seconds are of no type")
    best = tuple(map(min, zip(*rows.values(), strict=True)))
    times = []
    for kind, row in rows.items():
        times.append((kind, tuple(s / least if least else 1.0 for s, least in zip(row, best, strict=True))))
    return replace(job, gpu_types=tuple(sorted(rows))), best, tuple(sorted(times))


def slower_on(request: Request, degree: int, fleet: Fleet, nodes: Mapping[int, object]) -> float:
    """Return how many times its seconds a job takes for the types of these nodes: the slowest counts."""
    at, times = request.job.workers.index(degree), dict(request.types)
    return max(times[fleet.gpu_types[fleet.gpu_type[node]]][at] for node in nodes)


def best_type(state: SchedulerState, request: Request, degree: int, room: Capacity | None) -> Capacity | None:
    """Return the room on the type where a gang takes least where places differ too, as it is if types may mix.

    Of types that are as fast that is one where a group has all workers that are to be in one.
    """
    assert state.places is not None
    gang, fleet = state.placed(request, degree), state.fleet
    room = state.placer.room(gang) if room is None else room
    best, least, group = room, (np.inf, 0), level_groups(fleet, request.terms.within)
    for kind in (kind for kind, _ in request.types if kind in fleet.gpu_types and not request.terms.mixed):
        other = np.flatnonzero(fleet.gpu_type != fleet.gpu_types.index(kind))
        part = room.with_room(other, np.zeros(len(other), dtype=np.int64))
        if part.total < gang.workers[0]:
            continue
        seats = state.places.closest(part.chosen(gang.workers[0]), gang.workers[0])
        held = {node: (0,) * (count * gang.worker.grants) for node, count in sorted(seats.items())}
        if (found := (state.slower(request, degree, held), len(set(group[[*seats]].tolist())))) < least:
            best, least = part, found
    return best


def as_placed(request: Request, gang: GangJob, degree: int) -> GangJob:
    """Return a gang with what its workers share, if they share anything."""
    terms, job = request.terms, request.job
    one = _one_type(request)
    if not (terms.within or one):
        return gang
    at = job.workers.index(degree)
    types = tuple((kind, times[at]) for kind, times in request.types) or tuple((kind, 1.0) for kind in job.gpu_types)
    shared = Shared(terms.within, terms.topology == "required", types if one else (), one and terms.mixed)
    return SharedGang.of(gang, shared)


def _one_type(request: Request) -> bool:
    """Return whether the workers of a job may run on several GPU types, of which all get one unless they may mix."""
    return bool(request.types or len(request.job.gpu_types) > 1) and bool(request.job.worker.gpu)


def below_zero(holders: Mapping[int, object], count: int) -> tuple[int, ...]:
    """Return so many free numbers below 0 on a node, for workers without GPUs."""
    numbers = (-1 - i for i in range(count + len(holders)))
    return tuple(islice((number for number in numbers if number not in holders), count))


def servers_of(job: GangJob, nodes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Return the parameter servers on each node, even beside the workers: so many of n nodes' that come before."""
    if not job.servers:
        return {}
    total, before, servers = sum(map(len, nodes.values())), 0, {}
    for node, seats in nodes.items():
        upto = before + len(seats)
        servers[node] = job.servers * upto // total - job.servers * before // total
        before = upto
    return {node: count for node, count in servers.items() if count}


def in_words(request: Request) -> str:
    """Return what the workers of a job share, for `explain`."""
    terms, job = request.terms, request.job
    words = [f"each {terms.group} on one node"] if terms.group > 1 else []
    if not job.worker.gpu:
        words.append(f"{job.worker.cpu:g} cores each")
    if terms.within:
        words.append(f"all in one {terms.within}" + (", if one has the room" if terms.topology != "required" else ""))
    if job.gpu_types and job.worker.gpu:
        words.append(f"on {' or '.join(job.gpu_types)}" + (", mixed if need be" if terms.mixed else ""))
    return ", ".join(words)


def verify_terms(request: Request, degree: int, fleet: Fleet, nodes: Mapping[int, Sequence[int]]) -> list[str]:
    """Return what is wrong with where a job goes, by its terms, in plain words."""
    terms = request.terms
    one = _one_type(request) and not terms.mixed
    level = terms.within if terms.topology == "required" else ""
    if not (one or level or terms.group > 1):
        return []
    return verify_shared(fleet, request.job, nodes, terms.group, level, one)
