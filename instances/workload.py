"""A workload: jobs that arrive over time, each with its GPUs and its duration."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import AMOUNT, POSITIVE, SHARE, FloatArray, IntArray, array, check_fields, limited
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
        user: who submitted each job, ``""`` where it is not known.
        title: what its user calls it, likewise.
        priority: its class, the higher the sooner, int32 (n,).
        limit: seconds after which it is ended, as its user asked, float64 (n,), infinite where there is none.
    """

    names: tuple[str, ...] = field(metadata={"unique": True})
    submit: FloatArray = field(metadata=array("names", holds=AMOUNT))
    gpus: IntArray = field(metadata=array("names", holds=POSITIVE))
    duration: FloatArray = field(metadata=array("names", holds=AMOUNT))
    queue: tuple[str, ...] = limited((), empty=True)
    model: tuple[str, ...] = limited((), empty=True)
    share: FloatArray | None = field(default=None, metadata=array("names", holds=(*POSITIVE, *SHARE), usual=1.0))
    cpu: FloatArray | None = field(default=None, metadata=array("names", holds=AMOUNT, usual=0.0))
    memory: FloatArray | None = field(default=None, metadata=array("names", holds=AMOUNT, usual=0.0))
    user: tuple[str, ...] = limited((), empty=True)
    title: tuple[str, ...] = limited((), empty=True)
    priority: IntArray | None = field(default=None, metadata=array("names", usual=0))
    limit: FloatArray | None = field(
        default=None, metadata=array("names", holds=POSITIVE, usual=np.inf, null="infinite")
    )

    def __post_init__(self) -> None:
        check_fields(self)
        n = len(self.names)
        for name in ("queue", "model", "user", "title"):
            words = getattr(self, name) or ("",) * n
            object.__setattr__(self, name, words)
            if len(words) != n:
                raise InstanceError(name, f"has {len(words)} entries where {n} are expected")
        if not n:
            raise InstanceError("jobs", "the workload has no job")

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
        taken: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        for name, values in taken.items():
            taken[name] = values[index] if isinstance(values, np.ndarray) else tuple(values[i] for i in rows)
        return Workload(**taken)
