"""Place gangs one after the other: policies say where the workers of each go, its servers follow them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from gangplan.instances.arrays import IntArray

from ..run import Run
from .policies import Offer, Policy, serve, take
from .prepare import PreparedBatch, Rows
from .state import PlacementState


def placements(state: PlacementState, j: int, policies: Iterable[Policy]) -> Iterator[Rows]:
    """Yield where `policies` put job j, which is not placed: for each number of workers it may have and that fits.

    Parameter servers go beside the workers, and again apart from them: the NIC of a node with both carries the traffic
    of both.
    """
    job = state.batch.jobs[j]
    room = state.room(j)
    offer = Offer(state, j, room)
    total = int(room.sum(dtype=np.int64))
    for degree in (degree for degree in reversed(job.workers) if degree <= total):
        seen: list[dict[int, int]] = []
        for policy in policies:
            workers = policy(offer, degree)
            if not workers or workers in seen:
                continue
            seen.append(workers)
            workers = {node: w for node, w in sorted(workers.items()) if w}
            rows = _with_servers(workers, {})
            if not job.servers:
                yield rows
                continue
            room_for = state.server_room(j, rows)
            apart = room_for.copy()
            apart[list(rows)] = 0
            servers = serve(workers, job.servers, room_for, partial(Offer, state, j, apart))
            if servers is not None:
                yield _with_servers(workers, servers)
            alone = np.minimum(apart, 1)
            if len(rows) > 1 and int(alone.sum()) >= job.servers:
                # on nodes of their own, those with quiet NICs first, then the near
                near = nearest_first(state, max(workers, key=workers.__getitem__))
                near = near[np.argsort(state.crossing[near], kind="stable")]
                yield _with_servers(workers, take(near, alone, job.servers))


def _with_servers(workers: Mapping[int, int], servers: Mapping[int, int]) -> Rows:
    return {node: (workers.get(node, 0), servers.get(node, 0)) for node in sorted({*workers, *servers})}


def nearest_first(state: PlacementState, seed: int) -> IntArray:
    """Return all nodes by their distance from `seed` in the network, ties by number."""
    group = state.batch.group
    distance = (group != group[:, seed][:, None]).sum(axis=0)
    return np.asarray(np.argsort(distance, kind="stable"), dtype=np.int32)


_TRIES = 20
"""Orders of the jobs that are tried."""
_LOOK = 0.4
"""What the verifier takes, in terms of the time in which the plan was made."""


def build(run: Run, batch: PreparedBatch, policies: Sequence[Policy], by: str) -> PlacementState | None:
    """Place every job by the best of `policies`, offer the plan, and return it; `None` if some gang found no place.

    Jobs that run come first, at their place; then those with the least choice and the largest; a gang that finds no
    place is moved to the front and all others are placed again, if that is in vain without holding places for those
    that may move.
    """
    order, stay = order_of(batch), True
    before = run.remaining()
    for _ in range(_TRIES):
        state = start(batch, stay)
        if not all(state.rows[j] for j in batch.pinned):
            return None
        failed = None
        for j in order:
            if run.stopped:
                return None
            if not state.rows[j]:
                cheapest(state, j, policies)
            if not state.rows[j] and batch.jobs[j].value is None:
                failed = j
                break
        if failed is None:
            total = state.exact()
            if run.remaining() < _LOOK * (before - run.remaining()):
                run.stop_reason = run.stop_reason or "time limit"
            if not run.stopped and (run.objective is None or total < run.objective):
                run.offer(state.plan(), by)
            return state
        if order[0] == failed:
            if not stay or not batch.standing:
                return None
            stay = False
        order.remove(failed)
        order.insert(0, failed)
    return None


def start(batch: PreparedBatch, stay: bool = True) -> PlacementState:
    """Return the placement of the jobs that run and can stay: those pinned and, if they are to, those that may move."""
    state = PlacementState(batch)
    movable = [(j, rows) for j, (rows, _) in batch.standing.items()] if stay else []
    for j, rows in [*batch.pinned.items(), *movable]:
        if stays(state, j, rows):
            state.add(j, rows)
    state.settle()
    return state


def stays(state: PlacementState, j: int, rows: Rows) -> bool:
    """Return whether job j, which is not placed, can be on just these rows."""
    return all((w or p) and state.holds(j, node, w, p) for node, (w, p) in rows.items())


def cheapest(state: PlacementState, j: int, policies: Sequence[Policy], before: Rows | None = None) -> None:
    """Place job j, which is not placed, where the goal is least; leave it out if that is better or nothing fits.

    `policies` propose places; `before` is a place that is known to fit.
    """
    standing = state.batch.standing.get(j, ({}, 0.0))[0]
    options = [rows for rows in (before, standing) if rows and (rows is before or stays(state, j, rows))]
    options += placements(state, j, policies)
    if len(options) == 1 and state.batch.jobs[j].value is None:
        state.add(j, options[0])  # there is nothing to compare
        return
    best: Rows = {}
    least = state.settle()
    for rows in options:
        state.add(j, rows)
        total = state.settle()
        if total < least:
            best, least = rows, total
        state.remove(j)
    if best:
        state.add(j, best)
    state.settle()


def order_of(batch: PreparedBatch) -> list[int]:
    """Return the jobs: those that must be placed first, of these the ones that need whole nodes, then the largest."""

    def key(j: int) -> tuple[object, ...]:
        job = batch.jobs[j]
        gpus = job.workers[0] * job.worker.gpu
        choice = int(batch.allowed[j][batch.kind].sum()) if any(job.where) else batch.n_nodes
        return job.value is not None, not job.whole_nodes, choice, -gpus, -job.worker.cpu * job.workers[0], j

    return sorted(range(len(batch.jobs)), key=key)
