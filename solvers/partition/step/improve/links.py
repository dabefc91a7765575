"""Schedules in which transfers wait for one another on the links; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....compiled.kernel import Floats2, Ints, Ints2, Ints3, lean
from ..model import Prepared
from .arrays import Arrays
from .timetable import first_gap, occupy
from .workroom import Workroom


class Links(NamedTuple):
    """The links of a cluster and what they do when; n ops, k devices, m links; nothing without contention.

    Attributes:
        route: links between two devices, int64 (k, k, most), -1 behind the last.
        low, high, busy: stretches of each link, see `timetable`; float64 (m, transfers) twice, int64 (m,).
        sent, made: when the output of each op begins to be sent to each device, float64 (n, k), and by which schedule,
            int64 (n, k).
        schedule: number of the schedule, int64 (1,).
        reads: what an op reads, in the order in which it is made, int64 (n,).
    """

    route: Ints3
    low: Floats2
    high: Floats2
    busy: Ints
    sent: Floats2
    made: Ints2
    schedule: Ints
    reads: Ints


def links_of(p: Prepared) -> Links:
    """Return the links of a problem."""
    n, k, m, transfers = (p.n, p.n_devices, len(p.links.names), len(p.edges[0])) if p.contention else (0, 0, 0, 0)
    ways = [(a, b, p.routes[a][b]) for a in range(k) for b in range(k)]
    route = np.full((k, k, 1 + max((len(way) for _, _, way in ways), default=0)), -1)
    for a, b, way in ways:
        route[a, b, : len(way)] = way
    return Links(
        route, np.zeros((m, transfers)), np.zeros((m, transfers)), np.zeros(m, np.int64), np.zeros((n, k)),
        np.zeros((n, k), np.int64), np.zeros(1, np.int64), np.zeros(n, np.int64),
    )  # fmt: skip


@lean
def forward_on_links(a: Arrays, x: Links, room: Workroom, limit: float) -> tuple[float, int]:
    """Do what `polish.forward` does where links carry one transfer at a time, as `Decoder.times` does.

    Args:
        a, x: problem and links.
        room: has devices, order and tails; gets the times.
        limit: makespan from which on it gives up.
    """
    last, done = 0.0, 0
    for d in range(len(room.busy)):
        room.busy[d] = 0
    for link in range(len(x.busy)):
        x.busy[link] = 0
    x.schedule[0] += 1
    for v in room.order:
        d = room.device[v]
        ready, took = _arrival(a, x, room, v, d), a.seconds[d, v]
        at = first_gap(room.low[d], room.high[d], room.busy[d], ready, took)
        done += 1
        if at + room.tail[v] >= limit:
            return np.inf, done
        room.start[v], room.finish[v] = at, at + took
        last = max(last, at + took)
        room.busy[d] = occupy(room.low[d], room.high[d], room.busy[d], at, at + took)
    return last, done


@lean
def _arrival(a: Arrays, x: Links, room: Workroom, v: int, d: int) -> float:
    """Book what op v on device d reads and has not been sent there yet; return when all of it is there."""
    size, ready = 0, 0.0
    for i in range(a.before_first[v], a.before_first[v + 1]):
        u, j = a.before[i], size
        while j > 0 and room.finish[x.reads[j - 1]] > room.finish[u]:
            x.reads[j] = x.reads[j - 1]
            j -= 1
        x.reads[j] = u
        size += 1
    for i in range(size):
        u = x.reads[i]
        here = room.device[u]
        took, there = a.delay[a.level[d, here], u], room.finish[u]
        if took > 0.0:
            if x.made[u, d] != x.schedule[0]:
                x.made[u, d], x.sent[u, d] = x.schedule[0], _send(x, x.route[here, d], there, took)
            there = x.sent[u, d]
        ready = max(ready, there + took)
    return ready


@lean
def _send(x: Links, way: Ints, ready: float, took: float) -> float:
    """Book the earliest time at which all links of a way are free, and return it."""
    at, before = ready, -1.0
    while at != before:
        before = at
        for link in way:
            if link >= 0:
                at = first_gap(x.low[link], x.high[link], x.busy[link], at, took)
    for link in way:
        if link >= 0:
            x.busy[link] = occupy(x.low[link], x.high[link], x.busy[link], at, at + took)
    return at
