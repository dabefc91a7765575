"""What a log says of jobs that ran together: who had how much on which server or link, and how fast each job was."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.simulator.snapshots import Long, Snapshots

AMOUNTS = ("workers", "servers", "once", "more")
"""What a job has at a place: workers and parameter servers on a server; on a link how many times its bytes pass in a
step, up to once and what is beyond."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownSetting:
    """What is known of a cluster and its job types before anything runs.

    Attributes:
        features: of each of T types, float64 (T, F); of those that are alike, alike.
        unit: speed of one worker of each type alone, in the unit of the log, float64 (T,).
        link: by which link a server's traffic leaves its group of each level, int64 (L, m); see
            `gangplan.systems.interference.truths.links`.
    """

    features: FloatArray
    unit: FloatArray
    link: Long

    @property
    def sites(self) -> int:
        """How many servers and links there are."""
        return int(self.link.shape[1] + self.link.max() + 1)


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Jobs that ran together, and how fast.

    Attributes:
        setting: where.
        now: who was where, n jobs.
        speed: of each job, relative to its workers alone, float64 (n,); NaN where it is not known.
    """

    setting: KnownSetting
    now: Snapshots
    speed: FloatArray

    def __post_init__(self) -> None:
        if self.speed.shape != self.now.kind.shape:
            raise InstanceError("speed", f"has {self.speed.size} entries where {len(self.now.kind)} are expected")
        bad = np.isinf(self.speed) | (self.speed <= 0)
        if bad.any():
            at = int(np.argmax(bad))
            raise InstanceError(f"speed[{at}]", f"{float(self.speed[at])!r} is not a positive number")
        if len(self.now.kind) and not 0 <= self.now.kind.min() <= self.now.kind.max() < len(self.setting.features):
            raise InstanceError("kind", f"has an entry outside 0 to {len(self.setting.features) - 1}")

    @classmethod
    def measured(cls, setting: KnownSetting, now: Snapshots, speed: FloatArray) -> Samples:
        """Return samples of speeds in the unit of the log."""
        return cls(setting, now, speed / (setting.unit[now.kind] * now.total(now.workers)))

    @property
    def known(self) -> BoolArray:
        """Whose speed is known, bool (n,)."""
        return np.isfinite(self.speed)

    def only(self, chosen: BoolArray) -> Samples:
        """Return the same jobs at the same places, with the speeds of `chosen`, bool (n,), alone."""
        return replace(self, speed=np.where(chosen, self.speed, np.nan))

    def take(self, snapshots: Long) -> Samples:
        """Return some of the snapshots."""
        now, jobs = self.now.take(snapshots)
        return Samples(self.setting, now, self.speed[jobs])

    def first(self, samples: int) -> Samples:
        """Return the first snapshots, with as many known speeds as asked for, or all."""
        last = int(np.searchsorted(np.cumsum(self.known), samples)) + 1
        asked = self.only(self.known & (np.arange(len(self.speed)) < last))
        return asked.take(np.arange(min(int(np.searchsorted(self.now.first, last)), len(self.now))))

    def combination(self) -> Long:
        """Return of each row of `now` the combination on its server, int64 (r,); -1 for a job that is alone there.

        Servers with the same number of jobs of each type have the same combination.
        """
        now, word = self.now, np.random.default_rng(0).integers(1, 2**62, len(self.setting.features), dtype=np.uint64)
        place = np.unique(now.of[now.job] * self.setting.sites + now.server, return_inverse=True)[1]
        key = np.zeros(int(place.max(initial=-1)) + 1, dtype=np.uint64)
        np.add.at(key, place, word[now.kind[now.job]])  # sums wrap around: a hash of the multiset
        alone = np.bincount(place, minlength=len(key)) < 2
        return np.where(alone, -1, (key % np.uint64(2**62)).astype(np.int64))[place]

    def touching(self, chosen: Long) -> BoolArray:
        """Return which jobs are on a server with one of the `chosen` combinations, bool (n,)."""
        found = np.zeros(len(self.speed), dtype=bool)
        found[self.now.job[np.isin(self.combination(), chosen)]] = True
        return found


class JobRows(NamedTuple):
    """What each job has at each of its places, m rows; places are servers and links of one snapshot.

    Attributes:
        job, place, site: of each row, int64 (m,); sites are the same in all snapshots, servers first, then links.
        link: whether it is one, bool (m,).
        amount: in `AMOUNTS`, float64 (m, 4).
    """

    job: Long
    place: Long
    site: Long
    link: BoolArray
    amount: FloatArray

    def others(self, values: FloatArray) -> FloatArray:
        """Return for each row the sum of `values`, (m, ...), over the rows of other jobs at its place."""
        total = np.zeros((int(self.place.max(initial=-1)) + 1, *values.shape[1:]))
        np.add.at(total, self.place, values)
        return np.asarray(total[self.place] - values)


def rows_of(now: Snapshots, setting: KnownSetting) -> JobRows:
    """Return the rows of all jobs on servers, and on the links that they cross."""
    m, sites, job = setting.link.shape[1], setting.sites, now.job
    workers, servers = now.total(now.workers), now.total(now.ps)
    jobs, where = [job], [now.server]
    amounts = [np.stack([now.workers, now.ps, 0 * job, 0 * job], axis=1).astype(float)]
    for level in setting.link:
        found, index = np.unique(job * sites + level[now.server], return_inverse=True)
        owner, link = np.divmod(found, sites)
        here, beside = (np.bincount(index, x, len(found)) for x in (now.workers, now.ps))
        w, p = workers[owner], servers[owner]
        ring = 2.0 * (w - 1) / np.maximum(w, 1)
        passes = np.where(p > 0, (here * (p - beside) + beside * (w - here)) / np.maximum(p, 1), ring)
        crosses = np.bincount(owner, minlength=len(now.kind))[owner] > 1
        traffic = np.stack([0 * passes, 0 * passes, np.minimum(passes, 1), np.maximum(passes - 1, 0)], axis=1)
        jobs.append(owner[crosses])
        where.append(m + link[crosses])
        amounts.append(traffic[crosses])
    owner, site = np.concatenate(jobs), np.concatenate(where)
    place = np.unique(now.of[owner] * sites + site, return_inverse=True)[1]
    return JobRows(owner, place, site, site >= m, np.concatenate(amounts))
