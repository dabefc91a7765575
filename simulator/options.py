"""Degrees that jobs may run at, and how long each takes at each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import (
    AMOUNT,
    POSITIVE,
    FloatArray,
    IntArray,
    array,
    check_fields,
    require,
    require_number,
)
from gangplan.instances.workload import Workload


@dataclass(frozen=True, slots=True, eq=False)
class DegreeOptions:
    """The degrees of n jobs, one after the other; job j has the entries first[j] up to first[j + 1].

    Attributes:
        gpus: the degrees, int32 (e,), ascending within a job.
        duration: seconds that the job takes at each of them, float64 (e,).
    """

    first: IntArray
    gpus: IntArray = field(metadata=array(None, holds=POSITIVE))
    duration: FloatArray = field(metadata=array("gpus", holds=AMOUNT))

    def __post_init__(self) -> None:
        check_fields(self)
        require(np.diff(self.first) > 0, self.first[1:], "first", "leaves a job without a degree")
        if len(self.first) < 2 or self.first[0] != 0 or self.first[-1] != len(self.gpus):
            raise InstanceError("first", f"does not run from 0 to {len(self.gpus)}, the number of entries")
        inner = np.ones(len(self.gpus), dtype=bool)
        inner[self.first[:-1]] = False
        ascends = ~inner[1:] | (np.diff(self.gpus) > 0)
        require(ascends, self.gpus[1:], "gpus", "does not ascend")

    @property
    def n_jobs(self) -> int:
        """How many jobs there are."""
        return len(self.first) - 1

    def degrees(self, job: int) -> IntArray:
        """Return the degrees of a job, ascending."""
        return np.asarray(self.gpus[self.first[job] : self.first[job + 1]])

    def durations(self, job: int) -> FloatArray:
        """Return the seconds of a job at each of its degrees."""
        return np.asarray(self.duration[self.first[job] : self.first[job + 1]])

    def entry(self, job: int, degree: int) -> int:
        """Return the entry of a job at a degree."""
        degrees = self.degrees(job)
        at = int(np.searchsorted(degrees, degree))
        if at == len(degrees) or degrees[at] != degree:
            raise InstanceError("degree", f"{degree!r} is not one of {', '.join(map(str, degrees))}")
        return int(self.first[job]) + at

    def told(self, own: FloatArray, seconds: FloatArray) -> DegreeOptions:
        """Return the options of jobs that are told to take `seconds` where they take `own`, float64 (n,) each.

        At other degrees they take as much longer or shorter as they do in truth; a job of no time takes that at all.
        """
        count = np.diff(self.first)
        true, told = np.repeat(own, count), np.repeat(seconds, count)
        ratio = np.divide(self.duration, true, out=np.ones(len(true)), where=true > 0)
        return DegreeOptions(self.first, self.gpus, told * ratio)

    @classmethod
    def rigid(cls, workload: Workload) -> DegreeOptions:
        """Return the options of a trace: each job with the GPUs it asked for."""
        return cls(np.arange(workload.n_jobs + 1, dtype=np.int32), workload.gpus, workload.duration)

    @classmethod
    def scaling(cls, workload: Workload, degrees: Sequence[int], overhead: float = 0.1) -> DegreeOptions:
        """Return options by a law of scaling: d GPUs take (1 + c (d - 1)) / d times as long as one.

        The degree that the trace gives keeps its duration, and is on the options. `overhead`: c, from 0 (ideal) up.
        """
        for i, degree in enumerate(degrees):
            require_number(degree, f"degrees[{i}]", positive=True, whole=True)
        require_number(overhead, "overhead")
        lists = [np.unique([*degrees, own]) for own in workload.gpus.tolist()]
        gpus = np.concatenate(lists)
        count = np.array([len(one) for one in lists])
        own, seconds = np.repeat(workload.gpus, count), np.repeat(workload.duration, count)
        slower = (1 + overhead * (gpus - 1)) / gpus / ((1 + overhead * (own - 1)) / own)
        first = np.concatenate([[0], np.cumsum(count)])
        return cls(first, gpus, np.where(gpus == own, seconds, seconds * slower))
