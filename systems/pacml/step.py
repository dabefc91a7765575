"""One training step of a split job on its servers: ops by shortest remaining time, transfers all at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from itertools import pairwise
from typing import Literal

import numpy as np

from gangplan.instances import RampTopology
from gangplan.instances.arrays import FloatArray, IntArray, frozen, require, require_choice
from gangplan.instances.graph import grouped
from gangplan.instances.ramp import collective_cost, collective_seconds, coordinates
from gangplan.instances.splitting import SplitGraph

Units = Literal["physical", "as-published"]
OP_SECONDS: dict[str, float] = {"physical": 1.0, "as-published": 1e3}
"""What one second of an op counts for. The published code adds op times in ms to transfers in s."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingStep:
    """When each sub-op runs in one training step.

    Attributes:
        seconds: until the last op and the last transfer have ended. With ``units="as-published"`` this, like
            `start` and `finish`, is in the published code's unit: milliseconds of compute plus seconds of transfer.
        start: float64 (n_sub_ops,), when each sub-op first runs.
        finish: float64 (n_sub_ops,), when it has ended. It may have been interrupted between.
    """

    seconds: float
    start: FloatArray
    finish: FloatArray


def training_step(
    split: SplitGraph, servers: IntArray, topology: RampTopology, *, units: Units = "physical"
) -> TrainingStep:
    """Simulate one training step.

    A sub-op is ready when all its inputs have arrived. A server runs one at a time, always the ready one with the
    shortest remaining time (ties: the first), even if it interrupts another. Transfers start when their source ends and
    do not wait for each other. Gradient exchanges hold up no op, but the step lasts until they have ended.

    Args:
        split: the job, its times in seconds.
        servers: the server of each sub-op, int32 (split.n_sub_ops,), e.g. from `gangplan.systems.pacml.jobs.first_fit`.
        units: ``"as-published"`` reproduces PAC-ML's figures with their error, see `OP_SECONDS`.
    """
    require_choice(units, "units", OP_SECONDS)
    servers = frozen(servers, np.int32, "servers", (split.n_sub_ops,))
    known = (servers >= 0) & (servers < topology.n_devices)
    require(known, servers, "servers", f"is not one of the {topology.n_devices} servers")
    cost = delays(split, servers, topology)
    start, finish = _ServerRun(split, servers, cost, OP_SECONDS[units]).times()
    for times in (start, finish):
        times.setflags(write=False)
    return TrainingStep(float((finish + cost.sync).max()), start, finish)


class _ServerRun:
    """The state of the simulation: what each server runs, and what waits."""

    def __init__(self, split: SplitGraph, servers: IntArray, cost: Delays, scale: float) -> None:
        graph = split.graph
        self.bounds: list[int] = split.first.tolist()
        self.op: list[int] = np.repeat(np.arange(graph.n_ops), split.copies).tolist()
        self.remaining: list[float] = (split.seconds * scale)[self.op].tolist()
        self.server: list[int] = servers.tolist()
        self.delay = cost.edge
        source, target = graph.source.tolist(), graph.target.tolist()
        self.parents = grouped(zip(target, ((u, e) for e, u in enumerate(source)), strict=True), graph.n_ops)
        self.children = grouped(zip(source, target, strict=True), graph.n_ops)
        self.unfinished: list[int] = split.copies.tolist()
        self.missing = [len(ends) for ends in self.parents]
        self.start: list[float] = [-1.0] * split.n_sub_ops
        self.finish = np.zeros(split.n_sub_ops)
        # (time, sub-op, turn): ready if the turn is 0, else it has run since that turn unless interrupted
        self.events: list[tuple[float, int, int]] = []

    def times(self) -> tuple[FloatArray, FloatArray]:
        """Run to the end; return start and finish."""
        running: dict[int, tuple[int, float, int]] = {}
        waiting: dict[int, list[tuple[float, int]]] = {server: [] for server in self.server}
        turns = 0
        for v, missing in enumerate(self.missing):
            if not missing:
                self.release(v)
        while self.events:
            now, sub, turn = heappop(self.events)
            server = self.server[sub]
            current = running.get(server)
            if turn == 0:
                heappush(waiting[server], (self.remaining[sub], sub))
                if current is not None:
                    holder, since, _ = current
                    left = self.remaining[holder] - (now - since)
                    if (left, holder) <= waiting[server][0]:
                        continue
                    self.remaining[holder] = left
                    if self.start[holder] == now:
                        self.start[holder] = -1.0  # it has not run yet: both were ready at this instant
                    heappush(waiting[server], (left, holder))
            elif current is None or current[2] != turn:
                continue
            else:
                self.finish[sub] = now
                self.finished(self.op[sub])
            if waiting[server]:
                left, chosen = heappop(waiting[server])
                turns += 1
                running[server] = (chosen, now, turns)
                if self.start[chosen] < 0:
                    self.start[chosen] = now
                heappush(self.events, (now + left, chosen, turns))
            else:
                del running[server]
        return np.array(self.start), self.finish

    def finished(self, u: int) -> None:
        """Count one sub-op of u as done; with the last one, all that u sends is known."""
        self.unfinished[u] -= 1
        if not self.unfinished[u]:
            for v in self.children[u]:
                self.missing[v] -= 1
                if not self.missing[v]:
                    self.release(v)

    def release(self, v: int) -> None:
        """Announce when each sub-op of v has all its inputs: every sub-op needs data from all sub-ops of a parent."""
        ready = np.zeros(self.bounds[v + 1] - self.bounds[v])
        for u, e in self.parents[v]:
            sent = self.finish[self.bounds[u] : self.bounds[u + 1], None]
            np.maximum(ready, (sent + self.delay[e]).max(axis=0), out=ready)
        for sub, time in enumerate(ready.tolist(), start=self.bounds[v]):
            heappush(self.events, (time, sub, 0))


@dataclass(frozen=True, slots=True, eq=False)
class Delays:
    """Seconds of every transfer.

    Attributes:
        edge: for edge (u, v) of the unsplit graph, float64 (copies[u], copies[v]): from sub-op to sub-op.
        sync: float64 (n_sub_ops,): the longest gradient exchange that a sub-op starts; 0 where it starts none.
    """

    edge: tuple[FloatArray, ...]
    sync: FloatArray


def delays(split: SplitGraph, servers: IntArray, topology: RampTopology) -> Delays:
    """Return the transfer times of a split job, given the server of each sub-op, int32 (split.n_sub_ops,).

    The edges out of a split forward op make one collective if its sub-ops and those of its children, counted once for
    each edge, are on the same servers; so do the edges into a split backward op. Every edge of it takes as long as an
    all-reduce of its bytes. Each pair of siblings of a backward op exchanges its gradients in a collective of two.
    All other edges go one to one. A transfer within a server, or of no bytes, takes no time.
    """
    groups: dict[int, list[int]] = {}
    u, v = split.graph.source.tolist(), split.graph.target.tolist()
    for e, (a, b) in enumerate(zip(u, v, strict=True)):
        groups.setdefault(b if split.graph.backward[a] else a, []).append(e)
    bounds = split.first.tolist()
    home = [servers[a:b] for a, b in pairwise(bounds)]
    edge: list[FloatArray] = [np.zeros(0)] * len(u)
    for owner, members in groups.items():
        joint = split.copies[owner] > 1 and _is_collective([(home[u[e]], home[v[e]]) for e in members], topology)
        if joint:
            size = sum(float(split.edge_bytes[e]) * len(home[u[e]]) * len(home[v[e]]) for e in members)
            seconds = collective_seconds(topology, home[owner], size)
        for e in members:
            a, b = home[u[e]][:, None], home[v[e]][None, :]
            if not split.edge_bytes[e]:
                edge[e] = np.zeros((a.size, b.size))
            elif joint:
                edge[e] = np.where(a == b, 0.0, seconds)
            else:
                edge[e] = topology.transfer_seconds(a, b, split.edge_bytes[e])
    return Delays(tuple(edge), _sync(split, home, topology))


def _is_collective(ends: list[tuple[IntArray, IntArray]], topology: RampTopology) -> bool:
    senders = np.zeros(topology.n_devices, dtype=np.int64)
    receivers = np.zeros(topology.n_devices, dtype=np.int64)
    for a, b in ends:
        senders += np.bincount(a, minlength=topology.n_devices) * len(b)
        receivers += np.bincount(b, minlength=topology.n_devices) * len(a)
    return bool((senders == receivers).all())


def _sync(split: SplitGraph, home: list[IntArray], topology: RampTopology) -> FloatArray:
    longest = np.zeros(split.n_sub_ops)
    first = split.first
    known: dict[bytes, tuple[FloatArray, FloatArray]] = {}
    for op in np.flatnonzero(split.sync_bytes).tolist():
        servers = home[op]
        key = servers.tobytes()
        if key not in known:
            known[key] = _pair_costs(topology, servers)
        fixed, slope = known[key]
        # both directions are in the one collective
        longest[first[op] : first[op + 1]] = (fixed + slope * 2 * split.sync_bytes[op]).max(axis=1)
    return longest


def _pair_costs(topology: RampTopology, servers: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return seconds and seconds per byte of a collective of each pair of servers, float64 (k, k); 0 with itself."""
    differ = [1 + (axis[:, None] != axis[None, :]) for axis in coordinates(topology, servers)]
    index = (differ[0] * 4 + differ[1] * 2 + differ[2]) - 7
    table = np.array(_pair_table(topology))
    return table[index, 0], table[index, 1]


@lru_cache(maxsize=16)
def _pair_table(topology: RampTopology) -> tuple[tuple[float, float], ...]:
    return tuple(collective_cost(topology, (g, r, s)) for g in (1, 2) for r in (1, 2) for s in (1, 2))
