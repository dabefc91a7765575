"""One case: servers, the jobs that arrive, and the truth about how they slow one another down.

The servers of a data centre, for many schedulers that own racks, hold several groups of GPUs. The leaves of such a
fleet, what policies call servers, are groups of two GPUs behind a PCIe switch or an NVLink island; above them are
sockets, servers, racks and the network. Whatever places tasks on servers places them on groups.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray, IntArray, require, require_choice, require_number
from gangplan.instances.cluster import Level, TreeTopology
from gangplan.instances.errors import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.simulator.snapshots import Truth

from .places import servers_for
from .truths import HiddenTruth, TrueJobs, contention

INTERVAL = 1200.0
"""Seconds between decisions: 20 minutes, as published."""


@dataclass(frozen=True, slots=True, eq=False)
class InterferenceCase:
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
    jobs: TrueJobs
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

    def at(self, servers: slice) -> InterferenceCase:
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


GPUS, NIC = 2, 125e6
"""GPUs of a group; bytes/s between servers at which the synchronisation of the testbed was measured."""
RACK = 8
"""Servers of a rack."""
_GROUP, _SOCKET = 16 * NIC, 12 * NIC
"""Bytes/s of a group's link to its socket, and of a socket's to the other."""
_NETWORKS: dict[str, tuple[tuple[str, float], ...]] = {
    "fat-tree": (("rack", 1.0), ("aggregation", RACK / 2), ("core", RACK)),
    "leaf-spine": (("rack", 1.0), ("spine", RACK / 4)),
    "flat": (("rack", 1.0), ("core", RACK)),
}
"""Of each level above the server, what joins its members, over a NIC. An aggregation has four racks; flat, as RAMP is,
nothing binds above the servers."""


def centre(network: str, servers: int = 64, gpus: int = 4) -> Fleet:
    """Return a data centre.

    Args:
        network: ``fat-tree`` (racks, aggregations of four racks, core), ``leaf-spine`` or ``flat``.
        servers: how many, in racks of eight.
        gpus: of each server, 4 or 8, in groups of two, on two sockets.
    """
    require_choice(network, "network", tuple(_NETWORKS))
    require_number(servers, "servers", positive=True, whole=True)
    pod = 4 * RACK if network == "fat-tree" else RACK
    if servers % pod:
        raise InstanceError("servers", f"{servers!r} do not fill {'aggregations' if pod > RACK else 'racks'} of {pod}")
    if gpus not in (4, 8):
        raise InstanceError("gpus", f"{gpus!r} is neither 4 nor 8")
    sizes = [gpus // (2 * GPUS), 2, RACK, *([4, servers // pod] if network == "fat-tree" else [servers // RACK])]
    above = [Level(name, NIC * share) for name, share in _NETWORKS[network]]
    levels = (Level("socket", _GROUP), Level("server", _SOCKET), *above)
    m = prod(sizes)
    return Fleet(
        names=tuple(f"group{i}" for i in range(m)),
        gpu_types=("testbed",),
        gpu_type=np.zeros(m, dtype=np.int32),
        gpus=np.full(m, GPUS, dtype=np.int32),
        cpu=np.full(m, 16.0),
        memory=np.full(m, 48e9),
        link=np.full(m, _GROUP),
        topology=TreeTopology.regular(levels, tuple(sizes)),
    )


def owners(fleet: Fleet, racks: int = 1) -> IntArray:
    """Return which agent owns each leaf if each owns so many racks, the last perhaps fewer, int32 (m,)."""
    names = [level.name for level in fleet.topology.levels]
    if "rack" not in names:
        raise InstanceError("fleet", "has no level called rack")
    return np.asarray(fleet.topology.group[names.index("rack")] // racks, dtype=np.int32)


def centre_truth(fleet: Fleet, seed: int) -> HiddenTruth:
    """Draw a truth as `contention` does, with links as fast as their level, give or take a quarter."""
    found, rng = contention(fleet, seed), np.random.default_rng([seed, 22])
    rows, levels = found.hidden.link, fleet.topology.levels
    quality = np.empty(len(found.hidden.quality))
    for row, level in zip(rows, levels, strict=True):
        quality[row] = level.bandwidth / NIC
    quality *= np.exp(rng.uniform(-0.22, 0.22, len(quality)))
    return HiddenTruth(found.hidden._replace(quality=quality))


def moved(
    make: Callable[..., InterferenceCase],
    network: str,
    seed: int,
    jobs: int,
    servers: int,
    gpus: int = 4,
    *,
    wide: int = 1,
    **words: Any,
) -> InterferenceCase:
    """Return a case of the testbed in a data centre.

    Args:
        make: `cases.poisson` or another that takes `jobs`, `servers` and `cluster`.
        network, servers, gpus: see `centre`.
        wide: by which the tasks and the epochs of jobs of four workers or more are multiplied, at the same load.
        seed, jobs, words: of `make`; ``interval`` is that of the case.
    """
    require_number(wide, "wide", positive=True, whole=True)
    interval, cluster = words.pop("interval", None), words.get("cluster", 0)
    fleet = centre(network, servers, gpus)
    case = make(seed, jobs, fleet.n_nodes, **words)
    work, times = case.jobs.profiled * case.jobs.workers, np.where(case.jobs.workers >= 4, wide, 1).astype(np.int32)
    longer = float((work * times).sum() / work.sum())
    many = replace(
        case.jobs,
        submit=case.jobs.submit * longer,
        workers=case.jobs.workers * times,
        servers=case.jobs.servers * times,
        epochs=case.jobs.epochs * times,
    )
    found = replace(case, fleet=fleet, jobs=many, truth=centre_truth(fleet, cluster))
    return found if interval is None else replace(found, interval=interval)


def centres(make: Callable[..., InterferenceCase]) -> dict[str, Callable[..., InterferenceCase]]:
    """Return cases by name, of the arrivals of `make`: 64 servers, 256, and 64 with jobs of up to 16 workers."""
    found: dict[str, Callable[..., InterferenceCase]] = {}
    for name in _NETWORKS:
        at = partial(moved, make, name, load=1.5)
        found[name] = partial(at, jobs=400, servers=64)
        found[f"{name}-256"] = partial(at, jobs=1600, servers=256)
        found[f"{name}-wide"] = partial(at, jobs=400, servers=64, wide=4)
    return found
