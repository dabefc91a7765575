"""One's own cluster and jobs to learn from, and a verdict on what was learned.

A trace is split by time: networks learn from its first `LEARNED` part, are chosen by the next, and judged by the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.intake import cluster_sizes, parse_toml, read_text
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.workload import Workload
from gangplan.simulator.gangs.arrays import Cluster, Jobs, State, begin, cluster_of, jobs_of
from gangplan.simulator.gangs.mixes import VALIDATION
from gangplan.simulator.metrics import interval

from .candidates import scratch_of
from .guard import RULES
from .rollouts import finish_by_rule
from .workloads import Episode

LEARNED, CHOSEN = 0.6, 0.8
"""Until which share of the trace networks learn, and are chosen by."""
OWN = {"start": "gnn", "labels": 12_000, "updates": 800, "iterated_updates": 0}
"""Settings in the place of a configuration's: what ships is corrected on one's own jobs, in minutes."""
WINDOW, FEWEST = 150, 400
"""Jobs of a window; jobs of a trace at least."""
WINDOWS = 20
"""Windows of the verdict at most; half of each is in the next one where the trace is short."""
NAMES = ("patient", "shortest first", "least work first")
"""What the network is compared with, see `gangplan.learned.online.guard.RULES`."""


@dataclass(frozen=True)
class OwnCluster:
    """A cluster and the jobs of a trace.

    Attributes:
        trace: a file that `gangplan simulate` reads.
        cluster: racks x nodes x GPUs, like ``4x8x8``; or a TOML file with these as ``racks``, ``nodes``, ``gpus``, and
            the fields of `Proximity`.
    """

    trace: str
    cluster: str

    @cached_property
    def place(self) -> tuple[Fleet, Proximity]:
        """The nodes, and how slow gangs are that are apart."""
        if not self.cluster.endswith(".toml"):
            return Fleet.regular(*cluster_sizes(self.cluster, "racks x nodes x GPUs", "4x8x8")), Proximity()
        path = Path(self.cluster)
        table = parse_toml(read_text(path))
        sizes = [table.pop(name, None) for name in ("racks", "nodes", "gpus")]
        try:
            text = "x".join(map(str, sizes))
            return Fleet.regular(*cluster_sizes(text, "racks x nodes x GPUs", "4x8x8")), Proximity(**table)
        except TypeError:
            known = "racks, nodes, gpus, node, rack, cluster, intensity"
            raise InstanceError("cluster", f"has other keys than {known}", str(path)) from None
        except InstanceError as error:
            raise error.of(str(path)) from None

    @cached_property
    def jobs(self) -> Workload:
        """The jobs of the trace, by submission."""
        work, (fleet, _) = read_trace(self.trace).workload, self.place
        fits = np.flatnonzero((work.gpus <= fleet.n_gpus) & (np.asarray(work.share) == 1) & (work.duration > 0))
        work = work.take(fits[np.argsort(work.submit[fits], kind="stable")])
        if work.n_jobs < FEWEST:
            words = f"has {work.n_jobs} jobs of whole GPUs that fit the cluster, fewer than {FEWEST}"
            raise InstanceError("trace", words, self.trace)
        return work

    def window(self, begin: int, jobs: int) -> Jobs:
        """Return so many jobs from one on."""
        return jobs_of(self.jobs.take(np.arange(begin, begin + jobs)), self.place[1])

    def episode(self, number: int, jobs: int, first: int) -> Episode:
        """Do what `gangplan.learned.online.workloads.episode` does."""
        n = self.jobs.n_jobs
        low, high = (0, int(LEARNED * n)) if first != VALIDATION else (int(LEARNED * n), int(CHOSEN * n))
        jobs = min(jobs, high - low)
        at = int(np.random.default_rng([number, first]).integers(low, high - jobs + 1))
        pool = self.window(low, high - low)
        return Episode(self.window(at, jobs), cluster_of(*self.place), pool)

    def verdict(self, policy: Any) -> list[dict[str, Any]]:
        """Return what came of the network and of each rule on the last part of the trace, and whether to use it."""
        n, cluster = self.jobs.n_jobs, cluster_of(*self.place)
        low = int(CHOSEN * n)
        size = min(WINDOW, n - low)
        starts = np.unique(np.linspace(low, n - size, min(WINDOWS, max(2 * ((n - low) // size), 2)), dtype=int))
        windows = [self.window(int(at), size) for at in starts]
        mine = np.array([_mean(policy, jobs, cluster) for jobs in windows])
        known = zip(NAMES, RULES, strict=True)
        rules = {name: np.array([_mean(rule, jobs, cluster) for jobs in windows]) for name, rule in known}
        best = min(rules, key=lambda name: float(rules[name].mean()))
        rows = []
        for name, theirs in rules.items():
            mean, margin = interval((mine - theirs) / theirs.mean())
            rows.append({"rule": name, "mean_jct": float(theirs.mean()), "gnn_less": mean, "margin": margin})
        mean, margin = interval((mine - rules[best]) / rules[best].mean())
        use = margin is not None and mean + margin < 0
        last = {"rule": "gnn", "mean_jct": float(mine.mean()), "use": bool(use), "windows": len(windows), "best": best}
        return [*rows, last]


def _mean(policy: Any, jobs: Jobs, cluster: Cluster) -> float:
    """Return the mean JCT by a policy, or by the three numbers of a rule."""
    state: State = begin(jobs, cluster)
    if hasattr(policy, "finish"):
        policy.finish(jobs, cluster, state)
    else:
        finish_by_rule(jobs, cluster, state, scratch_of(cluster).ideal, policy)
    return float((state.finish - jobs.submit).mean())
