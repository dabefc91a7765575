"""What the verifier returns, and what holds for every plan of a graph: ops fit, and classes keep together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import FloatArray, IntArray, sums
from ..partition import precedence
from ..quantities import quantity

if TYPE_CHECKING:
    from ..graph import OpGraph
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
            unit = "s" if name in ("Verdict", "PipelineVerdict") else ""
            return f"{name}(feasible, objective {quantity(self.objective, unit)})"
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


def in_order(what: str, names: tuple[str, ...], where: str, wanted: tuple[str, ...]) -> list[str]:
    """Return why the names in a plan are not those of its problem, in its order; nothing if they are."""
    if names == wanted:
        return []
    if len(names) != len(wanted):
        return [f"the plan places {len(names)} {what}s, the {where} has {len(wanted)}"]
    i = next(i for i, (mine, theirs) in enumerate(zip(names, wanted, strict=True)) if mine != theirs)
    order = f": name them in the order of the {where}" if sorted(names) == sorted(wanted) else ""
    return [f"{what} {i} of the plan is {names[i]}, of the {where} {wanted[i]}{order}"]


def shape(problem: GraphProblem, ops: tuple[str, ...], device: IntArray) -> list[str]:
    """Return why a plan does not fit its problem at all, in words."""
    names, d = problem.graph.names, problem.cluster.n_devices
    return in_order("op", ops, "graph", names) or [
        f"op {names[i]} is on device {device[i]}, the cluster has {d}" for i in np.flatnonzero(device >= d)
    ]


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
        f"memory: the ops on device {i} need {quantity(memory[i], 'B', 6)}, it has {quantity(limit[i], 'B', 6)}"
        for i in np.flatnonzero(memory > limit * (1 + TOLERANCE))
    ]
    return [*unsupported, *overfull, *apart(graph, device, "on device", "on")], compute, memory


def transfers(problem: GraphProblem, device: IntArray) -> FloatArray:
    """Return the seconds each device spends on sending and receiving through the host, float64 (n_devices,).

    An output is received once per device that needs it and sent once, however many ask; a host pays for none.
    """
    cluster, (received, receiver) = problem.cluster, needed(problem, device)
    sent, cost = np.unique(received), problem.transfer()
    seconds = sums(receiver, cost[received], cluster.n_devices) + sums(device[sent], cost[sent], cluster.n_devices)
    seconds[problem.hosts()] = 0.0
    return seconds


def needed(problem: GraphProblem, device: IntArray) -> tuple[IntArray, IntArray]:
    """Return the outputs that a placement asks for elsewhere, as (op, receiving device), each pair once, sorted."""
    u, v = problem.graph.source, problem.graph.target
    cut = device[u] != device[v]
    # a pair as one number: numpy sorts those a hundred times as fast
    pairs = np.unique(u[cut].astype(np.int64) * problem.cluster.n_devices + device[v[cut]])
    op, receiver = np.divmod(pairs, problem.cluster.n_devices)
    return op.astype(np.int32), receiver.astype(np.int32)


def apart(graph: OpGraph, place: IntArray, here: str, there: str) -> list[str]:
    """Return which ops are not at the place of the first op of their class, in words such as ``on device``, ``on``."""
    member = np.flatnonzero(graph.colocation >= 0)
    _, first, inverse = np.unique(graph.colocation[member], return_index=True, return_inverse=True)
    leader = member[first[inverse]]
    wrong = place[member] != place[leader]
    return [
        f"colocation: op {graph.names[i]} is {here} {place[i]}, op {graph.names[j]} of its class {there} {place[j]}"
        for i, j in zip(member[wrong].tolist(), leader[wrong].tolist(), strict=True)
    ]


def backwards(problem: GraphProblem, stage: IntArray, rule: str) -> list[str]:
    """Return the edges of the graph that go from a later stage to an earlier one, which `rule` forbids."""
    earlier, later = precedence(problem.graph)
    names, wrong = problem.graph.names, stage[earlier] > stage[later]
    return [
        f"{rule}: op {names[a]} (stage {stage[a]}) comes before op {names[b]} (stage {stage[b]}) in the graph"
        for a, b in zip(earlier[wrong].tolist(), later[wrong].tolist(), strict=True)
    ]
