"""How long jobs run that nobody gave an estimate for: as long as finished ones like them did."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.placement import GangJob

USUAL = 3600.0
"""Seconds, before any job has finished."""
_LAST = 256
"""Finished jobs of a kind that count."""
_KINDS = 1024
"""Kinds that are remembered, those that finished last."""
_FEW = 8
"""So many of a kind are needed; fewer are told by all jobs."""


class Guess:
    """Medians of the GPU seconds of finished jobs: by model and GPUs, by GPUs, of all."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], deque[float]] = {}

    def saw(self, job: GangJob, work: float) -> None:
        """Learn from a job that finished after so many GPU seconds."""
        most = job.workers[-1] * job.worker.grants
        for key in ((job.model, most), ("", most), ("", 0)):
            works = self._seen.pop(key, deque(maxlen=_LAST))
            works.append(work)
            self._seen[key] = works  # the latest last
        while len(self._seen) > _KINDS:
            del self._seen[next(iter(self._seen))]

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

    def load(self, state: list[list[Any]]) -> None:
        """Take over what `state` returned.

        Raises:
            InstanceError: naming what of it is wrong.
        """
        self._seen.clear()
        for i, (model, gpus, works) in enumerate(state[-_KINDS:]):
            if not isinstance(model, str):
                raise InstanceError(f"guess[{i}]", f"{model!r} is no model")
            require_number(gpus, f"guess[{i}]", whole=True)
            for work in works:
                require_number(work, f"guess[{i}]")
            self._seen[model, gpus] = deque(works, maxlen=_LAST)
