"""What a round-based scheduler sees, GPUs of several types and jobs with steps to do at a speed on each, and says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import AMOUNT, POSITIVE, FloatArray, IntArray, array, check_fields, require
from gangplan.instances.errors import InstanceError, within
from gangplan.instances.readers.gavel import GavelTrace, Throughputs
from gangplan.instances.workload import Workload

Index = NDArray[np.int64]
_PART = re.compile(r"(\d+)x([A-Za-z][\w.-]*)")
STEPS = 1000
"""Steps that a second of a plain workload's duration stands for: what is left of a job is whole milliseconds."""


@dataclass(frozen=True, slots=True)
class RoundsCluster:
    """GPUs by type; each type's GPUs are numbered on from the type before it.

    `types`: names, in lower case, the most wanted first: who is heterogeneity-aware fills them in this order.
    """

    types: tuple[str, ...] = field(metadata={"unique": True})
    count: tuple[int, ...] = field(metadata={"positive": True})

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.types or len(self.types) != len(self.count):
            raise InstanceError("cluster", f"has {len(self.types)} types and {len(self.count)} counts")

    @property
    def gpus(self) -> int:
        """How many GPUs there are."""
        return sum(self.count)


def parse_cluster(text: str) -> RoundsCluster:
    """Build a cluster from words like ``8xV100+8xP100+8xK80``."""
    types, count = [], []
    for part in text.split("+"):
        match = _PART.fullmatch(part.strip())
        if match is None or not 0 < int(match[1]) <= 10**6:
            raise InstanceError("cluster", f"{part!r} of {text!r} is not GPUs x type, like 8xV100")
        types.append(match[2].lower())
        count.append(int(match[1]))
    return RoundsCluster(tuple(types), tuple(count))


@dataclass(frozen=True, slots=True, eq=False)
class RoundJobs:
    """Jobs, n of them, for a cluster of k types of GPUs.

    Attributes:
        gpus: of each, all of one type at a time, int32 (n,).
        steps: to be done, whole and positive, int64 (n,).
        speed: steps a second on each type, float64 (n, k); 0 where the job does not run.
        weight: of each in fairness, positive, float64 (n,).
        submit: seconds, float64 (n,).
    """

    names: tuple[str, ...] = field(metadata={"unique": True})
    gpus: IntArray = field(metadata=array("names", holds=POSITIVE))
    steps: NDArray[np.int64]
    speed: FloatArray = field(metadata=array("names", None, holds=AMOUNT))
    weight: FloatArray = field(metadata=array("names", holds=(*AMOUNT, *POSITIVE)))
    submit: FloatArray = field(metadata=array("names", holds=AMOUNT))

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.names:
            raise InstanceError("jobs", "there is none")
        steps = np.array(self.steps, dtype=np.int64)
        require(steps > 0, steps, "steps", "is not positive")
        steps.setflags(write=False)
        object.__setattr__(self, "steps", steps)

    @property
    def n_jobs(self) -> int:
        """How many jobs there are."""
        return len(self.names)

    @property
    def workload(self) -> Workload:
        """The same jobs with the seconds that each takes on the type where it is fastest."""
        return Workload(self.names, self.submit, self.gpus, self.steps / self.speed.max(axis=1))


class RoundsPolicy(Protocol):
    """Decides shares of time; the mechanism turns them into leases.

    Attributes:
        in_order: whether types are filled in the cluster's order, else in a random one each round.
        strict: whether a job without a share on a type never runs there, even if GPUs would idle.
    """

    in_order: bool
    strict: bool

    def shares(self, active: Index, left: NDArray[np.int64], age: FloatArray) -> FloatArray:
        """Return each active job's share of time on each type, float64 (a, k), at most 1 in all.

        Args:
            active: the jobs that are there, ascending, int64 (a,); none where all that came are done.
            left: steps they still have to do, int64 (a,).
            age: seconds since they were submitted, float64 (a,).
        """


def from_gavel(trace: GavelTrace, throughputs: Throughputs, cluster: RoundsCluster) -> RoundJobs:
    """Look the jobs of Gavel's trace up in measured throughputs."""
    known: dict[tuple[str, int], list[float]] = {}
    for name, model, gpus in zip(trace.names, trace.model, trace.gpus.tolist(), strict=True):
        if (model, gpus) not in known:
            with within(f"job {name}"):
                known[model, gpus] = [throughputs.of(kind, model, gpus) for kind in cluster.types]
    speed = np.array([known[key] for key in zip(trace.model, trace.gpus.tolist(), strict=True)])
    return RoundJobs(trace.names, trace.gpus, trace.steps, speed, trace.weight, trace.submit)


def from_workload(workload: Workload, speeds: Mapping[str, float], cluster: RoundsCluster) -> RoundJobs:
    """Take a trace that knows durations only: how fast each type is, where 1 is the type they were measured on.

    A step is a millisecond of the duration; a job of none has one.
    """
    for kind in cluster.types:
        value = speeds.get(kind)
        if value is None or not 0 <= value < float("inf"):
            raise InstanceError(f"speeds.{kind}", f"{value!r} is not a finite number from 0 on")
    row = STEPS * np.array([speeds[kind] for kind in cluster.types], dtype=np.float64)
    return RoundJobs(
        workload.names,
        workload.gpus,
        np.maximum(1, np.rint(workload.duration * STEPS)).astype(np.int64),
        np.tile(row, (workload.n_jobs, 1)),
        np.ones(workload.n_jobs),
        workload.submit,
    )
