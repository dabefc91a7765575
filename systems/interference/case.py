"""One case: servers, the jobs that arrive, and the truth about how they slow one another down."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require, require_number
from gangplan.instances.placement import Fleet
from gangplan.simulator.snapshots import Truth

from .job_types import Jobs
from .speeds import servers_for
from .truths import HiddenTruth

INTERVAL = 1200.0
"""Seconds between decisions: 20 minutes, as published."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """What is simulated.

    Attributes:
        fleet: the servers and the network above them.
        jobs: what arrives.
        truth: how fast jobs run beside one another; hidden from policies.
        interval: seconds between decisions.
        alike: the same number for jobs of the same type that ask for the same, (n,).
        fewest: servers, of those that have most, that hold each job, (n,).
    """

    fleet: Fleet
    jobs: Jobs
    truth: Truth
    interval: float = INTERVAL
    alike: NDArray[np.intp] = field(init=False)
    fewest: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        require_number(self.interval, "interval", positive=True)
        if not len(self.jobs):
            raise InstanceError("jobs", "there is none")
        fewest, group = self._fewest()
        object.__setattr__(self, "alike", group)
        object.__setattr__(self, "fewest", fewest)
        require(fewest <= self.fleet.n_nodes, self.jobs.workers, "jobs.workers", "do not fit the empty fleet")

    def _fewest(self) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        jobs = self.jobs
        have, (first, group) = self.capacity, jobs.alike
        most = have[np.argsort(-(have / np.maximum(have.max(axis=0), 1e-9)).sum(axis=1), kind="stable")]
        each = zip(
            jobs.worker[first],
            jobs.server[first],
            jobs.workers[first].tolist(),
            jobs.servers[first].tolist(),
            strict=True,
        )
        return np.array([servers_for(most, *asked) for asked in each])[group], group

    def at(self, servers: slice) -> Case:
        """Return the case of some servers alone; a job that they cannot hold needs more in `fewest` than there are."""
        found = copy(self)
        truth = self.truth.at(servers) if isinstance(self.truth, HiddenTruth) else self.truth
        object.__setattr__(found, "fleet", self.fleet.at(range(*servers.indices(self.fleet.n_nodes))))
        object.__setattr__(found, "truth", truth)
        object.__setattr__(found, "fewest", found._fewest()[0])
        return found

    @property
    def capacity(self) -> FloatArray:
        """What each server has, in `RESOURCES`, float64 (m, 3)."""
        found = np.stack([self.fleet.gpus.astype(float), self.fleet.cpu, self.fleet.memory], axis=1)
        if self.fleet.usable is not None:
            found[~self.fleet.usable] = 0.0
        return found


def harmony_fleet(servers: int = 6, *, rack: int = 8, gpus: int = 2) -> Fleet:
    """Return servers like those of Harmony's testbed, 16 cores and 48 GB each, in racks of equal size.

    Raises:
        InstanceError: if the servers do not fill racks.
    """
    require_number(servers, "servers", positive=True, whole=True)
    require_number(rack, "rack", positive=True, whole=True)
    inside = min(rack, servers)
    if servers % inside:
        raise InstanceError("servers", f"{servers!r} do not fill racks of {rack}")
    return Fleet.regular(servers // inside, inside, gpus, gpu_type="testbed", cpu=16.0, memory=48e9, nic=125e6)
