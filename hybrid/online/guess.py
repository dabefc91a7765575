"""How long jobs run that nobody gave an estimate for: as long as finished ones like them did."""

from __future__ import annotations

from collections import defaultdict, deque

import numpy as np

from gangplan.instances.placement import GangJob

USUAL = 3600.0
"""Seconds, before any job has finished."""
_LAST = 256
"""Finished jobs of a kind that count."""
_FEW = 8
"""So many of a kind are needed; fewer are told by all jobs."""


class Guess:
    """Medians of the GPU seconds of finished jobs: by model and GPUs, by GPUs, of all."""

    def __init__(self) -> None:
        self._seen: defaultdict[tuple[str, int], deque[float]] = defaultdict(lambda: deque(maxlen=_LAST))

    def saw(self, job: GangJob, work: float) -> None:
        """Learn from a job that finished after so many GPU seconds."""
        most = job.workers[-1] * job.worker.grants
        for key in ((job.model, most), ("", most), ("", 0)):
            self._seen[key].append(work)

    def seconds(self, job: GangJob) -> tuple[float, ...]:
        """Return what a job is expected to take with each number of workers, in inverse proportion to it."""
        most = job.workers[-1] * job.worker.grants
        for key in ((job.model, most), ("", most), ("", 0)):
            seen = self._seen.get(key, ())
            if len(seen) >= (_FEW if key[1] else 1):
                work = float(np.median(np.array(seen)))
                return tuple(work / (degree * job.worker.grants) for degree in job.workers)
        return tuple(USUAL * job.workers[-1] / degree for degree in job.workers)

    def state(self) -> list[list[object]]:
        """Return what was learned, for JSON."""
        return [[model, gpus, list(works)] for (model, gpus), works in self._seen.items()]

    def load(self, state: list[list[object]]) -> None:
        """Take over what `state` returned."""
        self._seen.clear()
        for model, gpus, works in state:
            assert isinstance(model, str)
            assert isinstance(gpus, int)
            assert isinstance(works, list)
            self._seen[model, gpus].extend(works)
