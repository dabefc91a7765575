"""What the verifier returns, and what holds for every plan of a graph: ops fit, and classes keep together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import FloatArray, IntArray, sums

if TYPE_CHECKING:
    from ..partition import GraphProblem

TOLERANCE = 1e-9
"""Relative slack on sums of floats, which may be taken in another order."""
_PLACES = 4
"""Units in the last place that a time on a clock may be off by: it is rounded, and so is what it is the sum of."""


def time_slack(seconds: Any, at: Any, places: int = _PLACES) -> Any:
    """Return what a time may be off by: a share of `seconds`, a duration, and some last places of the clock at `at`.

    It is never a share of `at` itself, since a clock may start anywhere: Unix times are as good as others.
    """
    return TOLERANCE * seconds + places * np.spacing(np.abs(at))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Judgement:
    """What every verdict says.

    Attributes:
        violations: every violated constraint in plain words; empty if the plan is feasible.
        objective: the recomputed objective, `None` if the plan is infeasible.
    """

    violations: tuple[str, ...]
    objective: float | None

    def __repr__(self) -> str:
        name, wrong = type(self).__name__, self.violations
        if not wrong:
            return f"{name}(feasible, objective {self.objective:.4g}{' s' if name == 'Verdict' else ''})"
        more = [f"... and {len(wrong) - 5} more"] if len(wrong) > 5 else []
        return "\n  ".join([f"{name}(infeasible, {len(wrong)} violations):", *wrong[:5], *more])

    @property
    def ok(self) -> bool:
        """Whether the plan is feasible."""
        return not self.violations


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Verdict(Judgement):
    """What the verifier found of a plan of a graph; its objective is in seconds.

    Attributes:
        load: seconds each device is busy, float64 (n_devices,): compute plus the transfers it takes part in.
        transfer: the part of `load` spent on transfers, float64 (n_devices,).
        memory: bytes used on each device, float64 (n_devices,).
    """

    load: FloatArray
    transfer: FloatArray
    memory: FloatArray

    @classmethod
    def nothing(cls, violations: Iterable[str], devices: int) -> Verdict:
        """Return the verdict on a plan that does not fit its problem at all."""
        zero = np.zeros(devices)
        return cls(tuple(violations), None, zero, zero, zero)


def shape(problem: GraphProblem, ops: tuple[str, ...], device: IntArray) -> list[str]:
    """Return why a plan does not fit its problem at all, in words."""
    names, d = problem.graph.names, problem.cluster.n_devices
    if len(ops) != len(names):
        return [f"the plan places {len(ops)} ops, the graph has {len(names)}"]
    if ops != names:
        i = next(i for i, (mine, theirs) in enumerate(zip(ops, names, strict=True)) if mine != theirs)
        return [f"op {i} of the plan is {ops[i]}, of the graph {names[i]}"]
    return [f"op {names[i]} is on device {device[i]}, the cluster has {d}" for i in np.flatnonzero(device >= d)]


def assignment(problem: GraphProblem, device: IntArray) -> tuple[list[str], FloatArray, FloatArray]:
    """Return violations of support, memory and colocation in words, and each device's compute and memory.

    Returns:
        The violations; seconds and bytes, float64 (n_devices,) each.
    """
    graph, cluster = problem.graph, problem.cluster
    kind = cluster.type_of[device]
    seconds = problem.time()[kind, np.arange(graph.n_ops)]
    unsupported = [
        f"op {graph.names[i]} cannot run on device {device[i]} ({cluster.device_types[kind[i]].name})"
        for i in np.flatnonzero(~np.isfinite(seconds))
    ]
    compute = sums(device, np.where(np.isfinite(seconds), seconds, 0.0), cluster.n_devices)
    memory = sums(device, graph.memory, cluster.n_devices)
    limit = problem.capacity()
    overfull = [
        f"memory: the ops on device {i} need {memory[i]:.6g} bytes, it has {limit[i]:.6g}"
        for i in np.flatnonzero(memory > limit * (1 + TOLERANCE))
    ]
    return [*unsupported, *overfull, *_colocation(problem, device)], compute, memory


def transfers(problem: GraphProblem, device: IntArray) -> FloatArray:
    """Return the seconds each device spends on sending and receiving through the host, float64 (n_devices,).

    An output is received once per device that needs it and sent once, however many ask; a host pays for none.
    """
    graph, cluster = problem.graph, problem.cluster
    u, v = graph.source, graph.target
    cut = device[u] != device[v]
    # a pair of op and receiver as one number: numpy sorts those a hundred times as fast
    received, receiver = np.divmod(
        np.unique(u[cut].astype(np.int64) * cluster.n_devices + device[v[cut]]), cluster.n_devices
    )
    sent = np.unique(u[cut])
    cost = problem.transfer()
    seconds = sums(receiver, cost[received], cluster.n_devices)
    seconds += sums(device[sent], cost[sent], cluster.n_devices)
    seconds[problem.hosts()] = 0.0
    return seconds


def _colocation(problem: GraphProblem, device: IntArray) -> list[str]:
    graph = problem.graph
    member = np.flatnonzero(graph.colocation >= 0)
    _, first, inverse = np.unique(graph.colocation[member], return_index=True, return_inverse=True)
    leader = member[first[inverse]]
    return [
        f"colocation: op {graph.names[i]} is on device {device[i]}, op {graph.names[j]} of its class on {device[j]}"
        for i, j in np.stack([member, leader])[:, device[member] != device[leader]].T.tolist()
    ]
