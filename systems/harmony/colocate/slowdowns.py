"""Learned slow-downs on speeds that are known alone: one fit for clusters of every shape and size."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.simulator.snapshots import Snapshots

from ...interference.speeds import Where
from ...interference.truths import HiddenTruth
from .kernel import Fitted, all_logs


class Slowdowns:
    """Speeds alone, times what a job keeps beside those that run with it; a `Truth` for `Greedy`.

    What it keeps is a ratio of two predictions of an ensemble, with the others and without, in which all servers and
    links of a level are alike: so it holds on servers that the ensemble never saw.

    Args:
        fitted: the ensemble, of any cluster with the same types of jobs.
        alone: speeds without interference, of these servers.
    """

    def __init__(self, fitted: Fitted, alone: HiddenTruth) -> None:
        link = alone.hidden.link
        sites = link.shape[1] + int(link.max()) + 1
        self._fitted = fitted._replace(link=link, site=np.ones((len(fitted.site), sites)))
        self._alone = alone

    def speeds(self, now: Snapshots) -> FloatArray:
        """Return the epochs a second of each job, float64 (n,)."""
        rows = (now.kind, now.rows, now.server, now.workers, now.ps)
        together = all_logs(self._fitted, Where(now.first, *rows))
        apart = all_logs(self._fitted, Where(np.arange(len(now.kind) + 1), *rows))
        return np.asarray(self._alone.speeds(now) * np.exp((together - apart).mean(axis=0)))
