"""A workload: jobs that arrive over time, each with its GPUs and its duration."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .arrays import FloatArray, IntArray, frozen, require
from .errors import InstanceError


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """A trace of n jobs, in the order that breaks ties.

    Attributes:
        names: unique job ids.
        submit: seconds, float64 (n,).
        gpus: whole GPUs that the job holds while it runs, int32 (n,).
        duration: seconds it runs alone, float64 (n,).
        queue: the virtual cluster or queue of each job, ``""`` where there is none.
    """

    names: tuple[str, ...]
    submit: FloatArray
    gpus: IntArray
    duration: FloatArray
    queue: tuple[str, ...] = dataclasses.field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        n = len(self.names)
        if not n:
            raise InstanceError("jobs", "the workload has no job")
        if len(set(self.names)) < n:
            seen: set[str] = set()
            for i, name in enumerate(self.names):
                if name in seen:
                    raise InstanceError(f"names[{i}]", f"{name!r} is a duplicate")
                seen.add(name)
        object.__setattr__(self, "queue", tuple(self.queue) or ("",) * n)
        if len(self.queue) != n:
            raise InstanceError("queue", f"has {len(self.queue)} entries where {n} are expected")
        for field, dtype in (("submit", np.float64), ("gpus", np.int32), ("duration", np.float64)):
            object.__setattr__(self, field, frozen(getattr(self, field), dtype, field, (n,)))
        for field in ("submit", "duration"):
            values = getattr(self, field)
            require(np.isfinite(values) & (values >= 0), values, field, "is not a finite number from 0 on")
        require(self.gpus > 0, self.gpus, "gpus", "is not positive")

    @property
    def n_jobs(self) -> int:
        """How many jobs there are."""
        return len(self.names)

    def only(self, queue: str) -> Workload:
        """Return the jobs of one queue.

        Raises:
            InstanceError: if it has none.
        """
        kept = [i for i, name in enumerate(self.queue) if name == queue]
        if not kept:
            known = ", ".join(sorted(set(self.queue))[:20])
            raise InstanceError("queue", f"{queue!r} is not one of {known}")
        return self.take(np.array(kept))

    def take(self, index: NDArray[np.intp]) -> Workload:
        """Return the jobs at `index`, in that order."""
        rows = index.tolist()
        return Workload(
            tuple(self.names[i] for i in rows),
            self.submit[index],
            self.gpus[index],
            self.duration[index],
            tuple(self.queue[i] for i in rows),
        )
