"""One's own cluster and jobs to learn from, and a verdict on what was learned.

A trace is split by time: networks learn from its first `LEARNED` part, are chosen by the next, and judged by the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.errors import InstanceError, in_file
from gangplan.instances.intake import cluster_sizes, parse_toml, read_text
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.workload import Workload
from gangplan.simulator.gangs.arrays import Jobs, begin, cluster_of, jobs_of
from gangplan.simulator.gangs.formula import PATIENT, finish
from gangplan.simulator.gangs.mixes import VALIDATION
from gangplan.simulator.gangs.traffic import Episode, loaded
from gangplan.simulator.metrics import interval

from ...online.guard import BEHIND, RULES

LEARNED, CHOSEN = 0.6, 0.8
"""Until which share of the trace networks learn, and are chosen by."""
OWN = {
    "start": "gnn", "labels": 12_000, "exact": 0.0, "exact_updates": 0, "updates": 800, "anchor": 0.1, "noise": 0.05,
    "rl_updates": 0,
}  # fmt: skip
"""Settings in the place of a configuration's: what ships is corrected on one's own jobs, in minutes."""
FEWEST = 400
"""Jobs of a trace at least."""
LOADING = 2
"""Jobs before an episode that load the cluster, a GPU."""
BLOCKS = 10
"""Parts of the last part of the trace, one after the other, whose mean JCTs are compared."""
NAMES = (BEHIND, "shortest first", "least work first")
"""Of `gangplan.learned.online.guard.RULES`: what the network is compared with, beside `patient`."""


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
        with in_file(path):
            try:
                text = "x".join(map(str, sizes))
                return Fleet.regular(*cluster_sizes(text, "racks x nodes x GPUs", "4x8x8")), Proximity(**table)
            except TypeError:
                known = "racks, nodes, gpus, node, rack, cluster, intensity"
                raise InstanceError("cluster", f"has other keys than {known}") from None

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
        """Do what `gangplan.simulator.gangs.traffic.episode` does."""
        n, cluster = self.jobs.n_jobs, cluster_of(*self.place)
        low, high = (0, int(LEARNED * n)) if first != VALIDATION else (int(LEARNED * n), int(CHOSEN * n))
        jobs = min(jobs, high - low)
        at = int(np.random.default_rng([number, first]).integers(low, high - jobs + 1))
        before = max(at - LOADING * int(cluster.first[-1]), low)
        return loaded(self.window(before, at - before + jobs), cluster, self.window(low, high - low), at - before)

    def verdict(self, policy: Any) -> list[dict[str, Any]]:
        """Return what came of the network and of each rule on the last part of the trace, and whether to use it.

        All play on from the middle of the trace, and parts of its last part are compared.
        """
        n, cluster = self.jobs.n_jobs, cluster_of(*self.place)
        jobs = self.window(n // 2, n - n // 2)

        def means(of: Any) -> FloatArray:
            state = begin(jobs, cluster)
            of.finish(jobs, cluster, state) if hasattr(of, "finish") else finish(jobs, cluster, state, of)
            last = np.array_split((state.finish - jobs.submit)[int(CHOSEN * n) - n // 2 :], BLOCKS)
            return np.array([x.mean() for x in last])

        named = {"patient": PATIENT, **dict(zip(NAMES, RULES, strict=True))}
        mine, rules = means(policy), {name: means(rule) for name, rule in named.items()}
        best = min(rules, key=lambda name: float(rules[name].mean()))
        rows = []
        for name, theirs in rules.items():
            mean, margin = interval((mine - theirs) / theirs.mean())
            rows.append({"rule": name, "mean_jct": float(theirs.mean()), "gnn_less": mean, "margin": margin})
        mean, margin = interval((mine - rules[best]) / rules[best].mean())
        use = margin is not None and mean + margin < 0
        last = {"rule": "gnn", "mean_jct": float(mine.mean()), "use": bool(use), "blocks": BLOCKS, "best": best}
        return [*rows, last]
