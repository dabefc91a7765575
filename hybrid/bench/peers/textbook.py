"""What the plain formulations share: the data of the problem op by op, nothing contracted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gangplan.instances import GraphProblem, PartitionPlan, PartitionProblem, StepProblem, precedence


@dataclass(frozen=True, slots=True)
class Textbook:
    """The problem in lists, op v, slot s (a stage of a pipeline, or a device), device type t.

    Attributes:
        time: seconds, time[t][v]; infinite where t cannot run v.
        memory, cost: bytes and seconds of transfer of each op.
        edges: all (u, v).
        order: (a, b), the stage of a is at most that of b; empty unless contiguous.
        together: (v, w) on one device.
        counts, capacity, host: of each type.
        kinds: the types a slot may have; more than one only in a pipeline, whose devices may come in any order.
    """

    time: list[list[float]]
    memory: list[float]
    cost: list[float]
    edges: list[tuple[int, int]]
    order: list[tuple[int, int]]
    together: list[tuple[int, int]]
    counts: list[int]
    capacity: list[float]
    host: list[bool]
    kinds: list[list[int]]

    @classmethod
    def of(cls, problem: PartitionProblem) -> Textbook:
        """Lay out `problem`.

        Raises:
            NotImplementedError: for the convex variant, which these formulations leave out.
        """
        if problem.variant == "convex":
            raise NotImplementedError("variant: 'convex' has no plain formulation here")
        graph, cluster = problem.graph, problem.cluster
        types = range(len(cluster.device_types))
        contiguous = problem.variant == "contiguous"
        earlier, later = precedence(graph)
        leader: dict[int, int] = {}
        pairs = [(leader.setdefault(c, v), v) for v, c in enumerate(graph.colocation.tolist()) if c >= 0]
        return cls(
            time=problem.time().tolist(),
            memory=graph.memory.tolist(),
            cost=problem.transfer().tolist(),
            edges=list(zip(graph.source.tolist(), graph.target.tolist(), strict=True)),
            order=list(zip(earlier.tolist(), later.tolist(), strict=True)) if contiguous else [],
            together=[(v, w) for v, w in pairs if v != w],
            counts=cluster.counts().tolist(),
            capacity=[np.inf if kind.memory is None else kind.memory for kind in cluster.device_types],
            host=[kind.host for kind in cluster.device_types],
            kinds=[list(types) if contiguous else [t] for t in cluster.type_of.tolist()],
        )

    @property
    def total(self) -> float:
        """A load that no device can exceed, seconds."""
        most = [max((row[v] for row in self.time if np.isfinite(row[v])), default=0.0) for v in range(len(self.memory))]
        return sum(most) + sum(self.cost)


@dataclass(frozen=True, slots=True)
class Job:
    """A graph on a cluster in lists, op v and device d.

    Attributes:
        problem: as it was.
        time: seconds, time[d][v]; infinite where d cannot run v.
        memory, cost: bytes, and seconds of a transfer through the host, of each op.
        edges: all (u, v).
        together: (v, w) on one device.
        kind, capacity, host: of each device: its type, bytes, and whether it is a host.
        total: seconds that the best plan need not exceed if memory allows it, else no plan.
    """

    problem: GraphProblem
    time: list[list[float]]
    memory: list[float]
    cost: list[float]
    edges: list[tuple[int, int]]
    together: list[tuple[int, int]]
    kind: list[int]
    capacity: list[float]
    host: list[bool]
    total: float

    @classmethod
    def of(cls, problem: GraphProblem) -> Job:
        """Lay out `problem`."""
        graph, cluster = problem.graph, problem.cluster
        time = problem.time()[cluster.type_of]
        leader: dict[int, int] = {}
        pairs = [(leader.setdefault(c, v), v) for v, c in enumerate(graph.colocation.tolist()) if c >= 0]
        longest = np.where(np.isfinite(time), time, 0.0).max(axis=0).sum()
        # an output goes out once and comes into each other device once, one after the other at worst
        moved = problem.transfer().sum() * (cluster.n_devices + 1)
        return cls(
            problem=problem,
            time=time.tolist(),
            memory=graph.memory.tolist(),
            cost=problem.transfer().tolist(),
            edges=list(zip(graph.source.tolist(), graph.target.tolist(), strict=True)),
            together=[(v, w) for v, w in pairs if v != w],
            kind=cluster.type_of.tolist(),
            capacity=problem.capacity().tolist(),
            host=problem.hosts().tolist(),
            total=float(longest + moved),
        )

    @property
    def places(self) -> list[int]:
        """The devices of a latency problem: of hosts of a type without a limit one stands for all, as published."""
        found: list[int] = []
        for d, (host, kind, room) in enumerate(zip(self.host, self.kind, self.capacity, strict=True)):
            if not host or np.isfinite(room) or all(self.kind[other] != kind for other in found):
                found.append(d)
        return found

    def delay(self, u: int, d: int, e: int) -> float:
        """Return the seconds that the output of op u takes from device d to e, of a step-time problem."""
        assert isinstance(self.problem, StepProblem)
        return float(self.problem.delay(np.array([u]), np.array([d]), np.array([e]))[0])


def to_plan(problem: PartitionProblem, slot: list[int], kind: Callable[[int], int]) -> PartitionPlan:
    """Return the plan with op v in slot `slot[v]`, where `kind(s)` is the type of slot s."""
    used = sorted(set(slot))
    if problem.variant != "contiguous":
        return PartitionPlan(problem.graph.names, np.array(slot), np.array([used.index(s) for s in slot]))
    free = [np.flatnonzero(problem.cluster.type_of == t).tolist() for t in range(len(problem.cluster.device_types))]
    device = {s: free[kind(s)].pop(0) for s in used}
    return PartitionPlan(
        problem.graph.names, np.array([device[s] for s in slot]), np.array([used.index(s) for s in slot])
    )
