"""The problem as the recurrence sees it: units of ops that stay together, and what each costs at each degree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gangplan.instances import PartitionProblem, StagesProblem
from gangplan.instances.arrays import FloatArray, row_sums, sums

from ...run import never
from ..throughput.quotient import Quotient, quotient


@dataclass(frozen=True)
class Units:
    """Units in their order, G of them, on a menu of K degrees.

    Attributes:
        order: who comes before whom; its groups are the units.
        seconds: infinite where a unit has no such degree, float64 (K, G).
        held: bytes of weights on one device, float64 (K, G).
        weights: bytes of weights of a whole unit, float64 (G,).
        once, kept: bytes a unit needs on a device, once and per further sample under way, float64 (K, G).
    """

    problem: StagesProblem
    order: Quotient
    seconds: FloatArray
    held: FloatArray
    weights: FloatArray
    once: FloatArray
    kept: FloatArray

    @classmethod
    def of(cls, problem: StagesProblem, order: Quotient) -> Units:
        """Add up the ops of every unit."""
        unit, menu = order.group_of, problem.options()
        seconds, held, once, kept = (
            row_sums(unit, rows, order.n_groups) for rows in (problem.seconds(), menu.parameter_bytes, *problem.need())
        )
        weights = sums(unit, problem.graph.parameter_bytes, order.n_groups)
        return cls(problem, order, seconds, held, weights, once, kept)

    @cached_property
    def nets(self) -> dict[tuple[int, frozenset[int]], float]:
        """The bytes that units send forward: (sender, units that receive it), added up."""
        source, target, sent = self.problem.forward_edges()
        receivers: dict[int, set[int]] = {}
        for u, v in zip(source.tolist(), self.order.group_of[target].tolist(), strict=True):
            receivers.setdefault(u, set()).add(v)
        found: dict[tuple[int, frozenset[int]], float] = {}
        for u, units in receivers.items():
            own = int(self.order.group_of[u])
            if units - {own}:
                key = own, frozenset(units - {own})
                found[key] = found.get(key, 0.0) + float(sent[u])
        return found


class ReducedStages:
    """A problem and its units, made once and shared by all methods of a solve."""

    def __init__(self, problem: StagesProblem, stopped: Callable[[], bool] = never) -> None:
        self.problem, self.stopped = problem, stopped
        self.tried = 0

    @cached_property
    def units(self) -> Units:
        """All units."""
        flat = PartitionProblem(self.problem.graph, self.problem.cluster, "contiguous")
        return Units.of(self.problem, quotient(flat, self.stopped))

    @property
    def capacity(self) -> float:
        """Bytes of a device, infinite if unlimited."""
        return float(self.problem.capacity()[0])

    def impossible(self) -> str | None:
        """Return why there is no plan if that is plain to see, else `None`."""
        units, names = self.units, self.problem.graph.names
        first = np.unique(units.order.group_of, return_index=True)[1]
        runs = np.isfinite(units.seconds)
        if not runs.any(axis=0).all():
            op = names[first[int(np.argmin(runs.any(axis=0)))]]
            return f"no degree of the menu runs op {op} and all ops colocated with it"
        need = np.where(runs, units.once, np.inf).min(axis=0)
        if (need > self.capacity * (1 + 1e-9)).any():
            unit = int(np.argmax(need))
            words = f"memory: op {names[first[unit]]} and its colocated ops need {need[unit]:.6g} bytes"
            return f"{words}, a device has {self.capacity:.6g}"
        degree, devices = self.problem.options().degree[:, None], self.problem.cluster.n_devices
        total = float((np.where(runs, units.once, np.inf) * degree).min(axis=0).sum())
        if total > self.capacity * devices * (1 + 1e-9):
            return f"memory: the ops need {total:.6g} bytes, all devices together have {self.capacity * devices:.6g}"
        return None

    def work_bound(self) -> float:
        """Return the seconds a sample if all devices shared all work evenly: no plan is better."""
        degree = self.problem.options().degree[:, None]
        return float((self.units.seconds * degree).min(axis=0).sum()) / self.problem.cluster.n_devices
