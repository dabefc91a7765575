"""How one gang is placed: a policy says where its workers go, the servers follow them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from gangplan.instances.arrays import IntArray

from .policies import Offer, Policy, take
from .prepare import Rows
from .state import State


def placements(state: State, j: int, policies: Iterable[Policy]) -> Iterator[Rows]:
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
            rows = {node: (w, 0) for node, w in sorted(workers.items()) if w}
            if not job.servers:
                yield rows
                continue
            room_for = state.server_room(j, rows)
            if int(room_for.sum(dtype=np.int64)) >= job.servers:
                yield _beside(state, j, rows, room_for.copy())
            if len(rows) > 1:
                yield from _apart(state, j, rows, room_for)


def _beside(state: State, j: int, rows: Rows, room: IntArray) -> Rows:
    """Return the rows with parameter servers: beside the workers as evenly as room allows, then near, then anywhere."""
    servers = state.batch.jobs[j].servers
    count = dict.fromkeys(rows, 0)
    for _ in range(servers):
        able = [node for node in rows if count[node] < room[node]]
        if not able:
            break
        node = min(able, key=lambda n: ((count[n] + 1) / rows[n][0], n))
        count[node] += 1
    left = servers - sum(count.values())
    if left:
        room[list(rows)] = 0
        count |= take(nearest_first(state, _fullest(rows)), room, left)
    return {node: (rows.get(node, (0, 0))[0], count[node]) for node in sorted(count)}


def _apart(state: State, j: int, rows: Rows, room: IntArray) -> Iterator[Rows]:
    """Yield the rows with a parameter server each on nodes of their own, those with quiet NICs first, then the near."""
    servers = state.batch.jobs[j].servers
    room = np.minimum(room, 1)
    room[list(rows)] = 0
    if int(room.sum()) >= servers:
        near = nearest_first(state, _fullest(rows))
        chosen = take(near[np.argsort(state.crossing[near], kind="stable")], room, servers)
        yield {node: (rows.get(node, (0, 0))[0], chosen.get(node, 0)) for node in sorted({*rows, *chosen})}


def _fullest(rows: Rows) -> int:
    return max(rows, key=lambda node: (rows[node][0], -node))


def nearest_first(state: State, seed: int) -> IntArray:
    """Return all nodes by their distance from `seed` in the network, ties by number."""
    group = state.batch.group
    distance = (group != group[:, seed][:, None]).sum(axis=0)
    return np.asarray(np.argsort(distance, kind="stable"), dtype=np.int32)
