"""What a cluster really does to jobs that share it: drawn from a seed, or measured by others; no policy sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require_number
from gangplan.instances.placement import Fleet
from gangplan.simulator.snapshots import Long, Snapshots

from .job_types import MEASURED, TESTBED, JobTypes
from .speeds import CONTENTION, SPREADS, Hidden, Where, all_speeds

_WORKER, _SERVER = (0.33, 0.15), (0.15, 0.24)
"""What a worker, and a parameter server, adds to a worker and to a parameter server on its server, in the mean."""
_SPREAD = 1.2
"""Of the logarithm of what types suffer and exert. A worker beside a worker and a parameter server keeps 0.46, 0.65,
0.81, 0.91 and 0.95 of its speed at the quantiles 0.1, 0.25, 0.5, 0.75 and 0.9; DeepShare's pairs kept 0.53, 0.64, 0.82,
0.96 and 1.0 (its jobs shared links)."""
_UPLINK = (2.0, 4.0)
"""Bandwidth of an uplink over that of a NIC, from and to."""


@dataclass(frozen=True, slots=True, eq=False)
class HiddenTruth:
    """A truth for the compiled simulator; `Truth` is what it is to others."""

    hidden: Hidden

    def speeds(self, now: Snapshots) -> FloatArray:
        """Return the epochs a second of each job, float64 (n,)."""
        where = Where(now.first, now.kind, now.rows, now.server, now.workers, now.ps)
        return np.asarray(all_speeds(self.hidden, where))

    def alone(self) -> HiddenTruth:
        """Return the truth without interference: every job is as fast where it is as if nobody else were there."""
        h = self.hidden
        return HiddenTruth(h._replace(host=0.0 * h.host, duty=0.0 * h.duty, kept=np.ones_like(h.kept)))

    @property
    def apart(self) -> bool:
        """Whether no job slows another down."""
        h = self.hidden
        return not (h.host.any() or h.duty.any() or (h.kept != 1.0).any())

    def at(self, servers: slice) -> HiddenTruth:
        """Return the truth of some servers and of the links that their jobs cross, if nobody else were there."""
        link = self.hidden.link[:, servers]
        known, at = np.unique(link, return_inverse=True)
        parts = {
            "link": at.reshape(link.shape),
            "socket": self.hidden.socket[servers],
            "quality": self.hidden.quality[known],
        }
        return HiddenTruth(self.hidden._replace(**parts))

    def slower_link(self, link: int, factor: float) -> HiddenTruth:
        """Return the truth with one link at `factor` of its bandwidth: the NIC of a server, or behind them an uplink.

        Raises:
            InstanceError: naming the argument and the value found.
        """
        require_number(factor, "factor", positive=True)
        quality = self.hidden.quality.copy()
        if not 0 <= link < len(quality):
            raise InstanceError("link", f"{link!r} is none of {len(quality)} links")
        quality[link] *= factor
        return HiddenTruth(self.hidden._replace(quality=quality))


def contention(fleet: Fleet, seed: int) -> HiddenTruth:
    """Draw a truth of the form of the placement cost model, with the measured speeds where a job is alone.

    Drawn from the seed are what workers and parameter servers of each type do to those on their server (by two kinds
    of pressure, PCIe and host memory), how well each server's sockets keep them apart, the duties of the types on links
    (about their share of the time, alone), and the uplinks.

    Args:
        fleet: the servers.
        seed: of what is drawn.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    require_number(seed, "seed", whole=True)
    rng = np.random.default_rng([seed, 21])
    k, link = len(TESTBED.names), links(fleet)
    suffer, exert = rng.lognormal(0.0, _SPREAD, (2, 2, 2 * k))  # by the kind of pressure
    host = np.einsum("pa,pb->ab", suffer, exert) / (2 * np.exp(_SPREAD**2))
    host *= np.kron(np.array([_WORKER, _SERVER]).T, np.ones((k, k)))
    sync = np.maximum(MEASURED[[1, 0]] - MEASURED[2], 0.0)
    natural = sync[1] / MEASURED[0]
    duty = np.clip(natural ** rng.uniform(0.3, 1.0) * rng.lognormal(0.0, 0.3, k), 0.05, 1.0)
    quality = np.concatenate([np.ones(fleet.n_nodes), rng.uniform(*_UPLINK, link.max() + 1 - fleet.n_nodes)])
    socket = rng.uniform(0.5, 1.5, fleet.n_nodes)
    return HiddenTruth(
        hidden(
            CONTENTION,
            link,
            TESTBED,
            step=MEASURED[2].copy(),
            sync=np.ascontiguousarray(sync.T),
            host=np.minimum(host, 2.0),
            socket=socket,
            duty=duty,
            quality=quality,
        )
    )


def links(fleet: Fleet) -> Long:
    """Return by which link the traffic of each server leaves its group of each level, int64 (L, m): first its own."""
    rows, begin = [np.arange(fleet.n_nodes)], fleet.n_nodes
    for group in fleet.topology.group[: len(fleet.topology.levels) - 1]:
        rows.append(begin + group)
        begin += int(group.max()) + 1
    return np.array(rows, dtype=np.int64)


def hidden(mode: int, link: Long, types: JobTypes, **known: Any) -> Hidden:
    """Return a truth of a mode, with what is known of it and, of the rest, nothing that slows anybody down."""
    k, m, x = len(types.names), link.shape[1], int(link.max()) + 1
    usual = Hidden(
        mode=mode,
        link=link,
        step=types.compute.copy(),
        sync=np.zeros((k, 2)),
        batches=types.batches.copy(),
        host=np.zeros((2 * k, 2 * k)),
        socket=np.ones(m),
        duty=np.zeros(k),
        quality=np.ones(x),
        row=np.zeros((k, SPREADS), dtype=np.int64),
        kept=np.zeros((0, 0)),
        alone=np.zeros(0),
    )
    return usual._replace(**known)
