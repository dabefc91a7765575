"""A workload: jobs that arrive over time, each with its GPUs and its duration."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import FloatArray, IntArray, frozen, require, require_unique
from .errors import InstanceError


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """A trace of n jobs, in the order that breaks ties.

    Attributes:
        names: unique job ids.
        submit: seconds, float64 (n,).
        gpus: whole GPUs that the job holds while it runs, int32 (n,).
        duration: seconds it runs alone, float64 (n,).
        queue: the virtual cluster, queue or user of each job, ``""`` where there is none.
        model: the model type, by which speeds are known, ``""`` where it is not.
        share: of each of its GPUs that the job holds, above 0 and at most 1, float64 (n,).
        cpu: cores, float64 (n,), 0 where they are not known.
        memory: bytes of host memory, float64 (n,), 0 where they are not known.
    """

    names: tuple[str, ...]
    submit: FloatArray
    gpus: IntArray
    duration: FloatArray
    queue: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    share: FloatArray | None = None
    cpu: FloatArray | None = None
    memory: FloatArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        n = len(self.names)
        if not n:
            raise InstanceError("jobs", "the workload has no job")
        require_unique(self.names, "names")
        for field in ("queue", "model"):
            words = tuple(getattr(self, field)) or ("",) * n
            object.__setattr__(self, field, words)
            if len(words) != n:
                raise InstanceError(field, f"has {len(words)} entries where {n} are expected")
        for field, usual in (("share", 1.0), ("cpu", 0.0), ("memory", 0.0)):
            if getattr(self, field) is None:
                object.__setattr__(self, field, np.full(n, usual))
        object.__setattr__(self, "gpus", frozen(self.gpus, np.int32, "gpus", (n,)))
        for field in ("submit", "duration", "share", "cpu", "memory"):
            values = frozen(getattr(self, field), np.float64, field, (n,))
            object.__setattr__(self, field, values)
            require(np.isfinite(values) & (values >= 0), values, field, "is not a finite number from 0 on")
        require(self.gpus > 0, self.gpus, "gpus", "is not positive")
        share = np.asarray(self.share)
        require((share > 0) & (share <= 1), share, "share", "is not above 0 and at most 1")

    def __repr__(self) -> str:
        days = float(self.submit.max() - self.submit.min()) / 86400
        return f"Workload({self.n_jobs} jobs of 1 to {self.gpus.max()} GPUs, arriving in {days:.3g} days)"

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
        taken: dict[str, Any] = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for field, values in taken.items():
            taken[field] = values[index] if isinstance(values, np.ndarray) else tuple(values[i] for i in rows)
        return Workload(**taken)
