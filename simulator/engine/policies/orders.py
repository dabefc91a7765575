"""Policies that say who is first: fixed orders, least left, least attained, the poorest tenant; priority classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require_choice, require_number
from gangplan.instances.lazy import OfLast

from ...trace.simulate import ORDERS
from ..jobs import Long
from ..policy import EngineView

_SLACK = 1e-9


class Fixed:
    """First in first out, shortest or longest job first, fewest GPUs, least work.

    Shortest first has the least mean wait of all that do not preempt, on one machine (Smith, Naval Research Logistics
    Quarterly 1956); longest first keeps the makespan low (Graham, SIAM Journal on Applied Mathematics 1969).
    """

    steady = True

    def __init__(self, name: str = "fifo") -> None:
        require_choice(name, "name", ORDERS)
        self.name, self._keys = name, OfLast(ORDERS[name])

    def select(self, view: EngineView, jobs: Long) -> FloatArray:
        """Order by the table's figure."""
        return self._keys(view.workload)[jobs]


class SRTF:
    """Run whoever has least left to do, and stop others for it.

    Schrage, "A proof of the optimality of the shortest remaining processing time discipline" (Operations Research
    1968): on one machine no policy has a lower mean completion time. It needs to know durations.
    """

    preemptive = True
    steady = True

    def select(self, view: EngineView, jobs: Long) -> FloatArray:
        """Order by the work left."""
        return view.left(jobs)


class Tiresias:
    """Run jobs that have held few GPU seconds before those that have held many; no duration is known.

    Discretised 2D-LAS of Gu et al., "Tiresias: a GPU cluster manager for distributed deep learning" (NSDI 2019): the
    service attained, GPUs times time, picks one of the queues between the thresholds; the lower goes first, and within
    a queue the earlier submitted. Promotion of starving jobs is left out.

    Args:
        thresholds: GPU seconds, ascending; by default one and ten GPU hours.
    """

    preemptive = True
    steady = True

    def __init__(self, thresholds: Sequence[float] = (3600.0, 36000.0)) -> None:
        for i, value in enumerate(thresholds):
            require_number(value, f"thresholds[{i}]", positive=True)
            if i and value <= thresholds[i - 1]:
                raise InstanceError(f"thresholds[{i}]", f"{value!r} does not ascend")
        self.thresholds = np.array(thresholds, dtype=np.float64)
        self._reached = self.thresholds * (1 - _SLACK)  # waking at the very time, rounding may leave a little

    def select(self, view: EngineView, jobs: Long) -> FloatArray:
        """Order by queue."""
        return self._reached.searchsorted(view.attained(jobs), "right").astype(np.float64)

    def wake(self, view: EngineView) -> float:
        """Look again when a running job comes to the next queue, if anyone waits."""
        if not len(view.waiting):
            return np.inf
        running = view.running
        attained = view.attained(running)
        queue = self._reached.searchsorted(attained, "right")
        on = queue < len(self.thresholds)
        if not on.any():
            return np.inf
        seconds = (self.thresholds[queue[on]] - attained[on]) / view.degree[running[on]]
        return float(max(view.now + seconds.min(), np.nextafter(view.now, np.inf)))


class DRF:
    """Serve the tenant whose dominant share is least.

    That is the largest of its shares of the cluster's GPUs, cores and memory (Ghodsi et al., "Dominant resource
    fairness", NSDI 2011). By progressive filling: the jobs of a tenant go in the order of their submission, and each
    counts what its tenant's earlier ones would hold. A tenant is a queue of the trace.
    """

    def __init__(self) -> None:
        self._known = OfLast(_tenants)

    def select(self, view: EngineView, jobs: Long) -> FloatArray:
        """Order by the dominant share that the tenant has when it is the job's turn."""
        tenants, every = self._known(view)
        held = np.zeros((int(tenants.max()) + 1, every.shape[1]))
        waits = np.ones(len(tenants), dtype=bool)
        waits[view.running] = False
        np.add.at(held, tenants[view.running], every[view.running])
        order = np.lexsort((view.rank[jobs], waits[jobs], tenants[jobs]))
        tenant, asks = tenants[jobs[order]], every[jobs[order]] * waits[jobs[order], None]
        before = np.cumsum(asks, axis=0) - asks
        first = np.flatnonzero(np.diff(tenant, prepend=-1))
        before -= np.repeat(before[first], np.diff(np.append(first, len(tenant))), axis=0)
        share = np.empty(len(jobs))
        share[order] = (held[tenant] + before).max(axis=1)
        return share


def _tenants(view: EngineView) -> tuple[Long, FloatArray]:
    """Return the tenant of each job, int64 (n,), and its share of each resource that jobs ask for, float64 (n, R)."""
    work, fleet = view.workload, view.fleet
    pairs = ((work.gpus * np.asarray(work.share), fleet.gpus), (work.cpu, fleet.cpu), (work.memory, fleet.memory))
    columns = [np.asarray(asks) / max(float(has.sum()), 1e-300) for asks, has in pairs if np.any(asks)]
    return np.unique(np.array(work.queue), return_inverse=True)[1].astype(np.int64), np.stack(columns, axis=1)


class Classes:
    """Put jobs of a higher priority first, as batch systems do, and those of one priority in the order of `policy`.

    A part that stands before `policy` in an `EngineScheduler`: whatever else there is to decide is left to it. Where
    that stops jobs, those of a higher class stop those of lower ones.
    """

    def __init__(self, policy: Any) -> None:
        self._policy = policy if hasattr(policy, "select") else Fixed()
        self.steady = isinstance(self._policy, Fixed)
        self._places = OfLast(self._of_all)

    def select(self, view: EngineView, jobs: Long) -> FloatArray:
        """Return the place of each job among all, equal ones of one class having the same."""
        if not self.steady:
            return in_classes(np.asarray(view.workload.priority)[jobs], self._policy.select(view, jobs))
        return self._places(view)[jobs]

    def _of_all(self, view: EngineView) -> FloatArray:
        keys = self._policy.select(view, np.arange(view.workload.n_jobs))
        return in_classes(np.asarray(view.workload.priority), keys)


def in_classes(priority: Long, keys: FloatArray) -> FloatArray:
    """Return numbers that are ordered by priority, the highest first, then by `keys`; float64 (n,)."""
    order = np.lexsort((keys, -priority.astype(np.int64)))
    apart = np.ones(len(order), dtype=bool)
    apart[1:] = (np.diff(priority[order]) != 0) | (keys[order][1:] != keys[order][:-1])
    rank = np.empty(len(order))
    rank[order] = np.cumsum(apart)
    return rank
