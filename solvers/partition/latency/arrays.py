"""The latency problem as arrays for compiled code; the letters are those of docs/latency.md."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.instances.graph import grouped
from gangplan.instances.verify import TOLERANCE

from ...compiled.kernel import Floats, Floats2, Ints, Ints2
from ...compiled.routines import ints
from .reduced import Reduced


class LatencyArrays(NamedTuple):
    """A problem of I items in G groups, S slots and N nets; ``x_first`` says where the part of each begins in ``x``.

    Attributes:
        kind, host: device type of each slot, and 1 if it is a host, int64 (S,).
        room: bytes of each slot, float64 (S,).
        time: seconds of each item on each type, float64 (T, I).
        group_time, memory: of each group, float64 (T, G) and (G,).
        group: of each item, int64 (I,).
        member_first, member: items of each group.
        before_first, before, after_first, after: items before and after each item.
        size, cost: items of each net, and seconds to move it, (N,).
        net_first, net: nets of each item.
    """

    kind: Ints
    host: Ints
    room: Floats
    time: Floats2
    group_time: Floats2
    memory: Floats
    group: Ints
    member_first: Ints
    member: Ints
    before_first: Ints
    before: Ints
    after_first: Ints
    after: Ints
    size: Ints
    cost: Floats
    net_first: Ints
    net: Ints


class LatencyState(NamedTuple):
    """Where a search is.

    Attributes:
        slot: of each group, int64 (G,).
        load, used: seconds of the call in each slot, and bytes, float64 (S,).
        inside: items of each net in each slot, int64 (N, S).
        moved, came_from: groups that a move has moved, and their slots before, int64 (G,).
        finish, waits: when each call, then each item on a host, is done, and how many it still waits for, (S + I,).
        queue: calls and items on hosts that wait for nobody, int64 (S + I,).
        top, below: first item of each call, and the next one of each item, int64 (S,) and (I,).
    """

    slot: Ints
    load: Floats
    used: Floats
    inside: Ints2
    moved: Ints
    came_from: Ints
    finish: Floats
    waits: Ints
    queue: Ints
    top: Ints
    below: Ints


def arrays_of(r: Reduced) -> LatencyArrays:
    """Return the arrays of a problem."""
    kind = np.array([slot.kind for slot in r.slots], np.int64)
    host = np.array([slot.host for slot in r.slots], np.int64)
    room = np.array([slot.capacity for slot in r.slots]) * (1 + TOLERANCE)
    pins = [sorted({a, *others}) for a, others, _ in r.nets]
    nets = grouped(((v, e) for e, pin in enumerate(pins) for v in pin), r.n_items)
    before, after = r.neighbours
    parts = (_flat(r.groups), _flat(before), _flat(after))
    cost = np.array([cost for _, _, cost in r.nets], float)
    return LatencyArrays(
        kind, host, room, np.ascontiguousarray(r.time), np.ascontiguousarray(r.group_time),
        np.ascontiguousarray(r.group_memory), r.group_of.astype(np.int64), *parts[0], *parts[1], *parts[2],
        np.array([len(pin) for pin in pins], np.int64), cost, *_flat(nets),
    )  # fmt: skip


def state_of(data: LatencyArrays, slots: list[int]) -> LatencyState:
    """Return a search that is at a plan; what follows from the plan is counted by whoever goes on."""
    groups, count, items, nets = len(slots), len(data.kind), len(data.group), len(data.size)
    units = count + items

    return LatencyState(
        np.array(slots, np.int64), np.zeros(count), np.zeros(count), np.zeros((nets, count), np.int64), ints(groups),
        ints(groups), np.zeros(units), ints(units), ints(units), ints(count), ints(items),
    )  # fmt: skip


def _flat(parts: list[list[int]]) -> tuple[Ints, Ints]:
    first = np.concatenate([[0], np.cumsum([len(x) for x in parts])]).astype(np.int64)
    return first, np.array([v for x in parts for v in x], np.int64)
