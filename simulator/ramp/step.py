"""One training step of a split job on its servers: ops by shortest remaining time, transfers all at once."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal

import numpy as np

from gangplan.instances import InstanceError, RampTopology
from gangplan.instances.arrays import FloatArray, IntArray, frozen, require
from gangplan.instances.splitting import SplitGraph

from .communication import Delays, delays

Units = Literal["physical", "as-published"]
OP_SECONDS: dict[str, float] = {"physical": 1.0, "as-published": 1e3}
"""What one second of an op counts for. The published code adds op times in ms to transfers in s."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
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


def training_step(split: SplitGraph, servers: IntArray, topology: RampTopology, *, units: Units = "physical") -> Step:
    """Simulate one training step.

    A sub-op is ready when all its inputs have arrived. A server runs one at a time, always the ready one with the
    shortest remaining time (ties: the first), even if it interrupts another. Transfers start when their source ends and
    do not wait for each other. Gradient exchanges hold up no op, but the step lasts until they have ended.

    Args:
        split: the job, its times in seconds.
        servers: the server of each sub-op, int32 (split.n_sub_ops,), e.g. from `gangplan.simulator.first_fit`.
        topology: the cluster.
        units: ``"as-published"`` reproduces PAC-ML's figures with their error, see `OP_SECONDS`.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    if units not in OP_SECONDS:
        raise InstanceError("units", f"{units!r} is not one of {', '.join(OP_SECONDS)}")
    servers = frozen(servers, np.int32, "servers", (split.n_sub_ops,))
    known = (servers >= 0) & (servers < topology.n_devices)
    require(known, servers, "servers", f"is not one of the {topology.n_devices} servers")
    cost = delays(split, servers, topology)
    start, finish = _Run(split, servers, cost, OP_SECONDS[units]).times()
    for times in (start, finish):
        times.setflags(write=False)
    return Step(float((finish + cost.sync).max()), start, finish)


class _Run:
    """The state of the simulation: what each server runs, and what waits."""

    def __init__(self, split: SplitGraph, servers: IntArray, cost: Delays, scale: float) -> None:
        graph = split.graph
        self.bounds: list[int] = split.first.tolist()
        self.op: list[int] = np.repeat(np.arange(graph.n_ops), split.copies).tolist()
        self.remaining: list[float] = (split.seconds * scale)[self.op].tolist()
        self.server: list[int] = servers.tolist()
        self.delay = cost.edge
        self.parents: list[list[tuple[int, int]]] = [[] for _ in range(graph.n_ops)]
        self.children: list[list[int]] = [[] for _ in range(graph.n_ops)]
        for e, (u, v) in enumerate(zip(graph.source.tolist(), graph.target.tolist(), strict=True)):
            self.parents[v].append((u, e))
            self.children[u].append(v)
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
