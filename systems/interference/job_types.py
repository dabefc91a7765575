"""What jobs are: their types, and n of them with demands, counts and epochs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import (
    AMOUNT,
    NONE,
    POSITIVE,
    TIMES,
    Checked,
    FloatArray,
    IntArray,
    array,
    check_fields,
    require,
)

RESOURCES = ("GPUs", "cores", "bytes of host memory")
WORKER, SERVER = (1.0, 2.0, 8e9), (0.0, 4.0, 8e9)
"""What a worker and a parameter server of the 2019 testbed occupy, in `RESOURCES`."""


@dataclass(frozen=True, slots=True, eq=False)
class JobTypes(Checked):
    """What everybody knows of K types of job.

    Attributes:
        names: unique.
        batch: samples a worker takes in a step, float64 (K,).
        batches: of all workers together that make an epoch, float64 (K,).
        compute: seconds of a step of one worker, as profiled alone, float64 (K,).
        gradient: bytes of the model, float64 (K,).
    """

    names: tuple[str, ...] = field(metadata={"unique": True})
    batch: FloatArray = field(metadata=array("names", holds=POSITIVE))
    batches: FloatArray = field(metadata=array("names", holds=POSITIVE))
    compute: FloatArray = field(metadata=array("names", holds=POSITIVE))
    gradient: FloatArray = field(metadata=array("names", holds=AMOUNT))


_TESTBED = {  # samples/s with workers and servers apart, mixed, together; ms of compute; MB; batches an epoch; batch
    "ResNet-50": (20.5, 40.9, 67.2, 449, 102.2, 115, 32),
    "VGG-16": (11, 17.5, 59.8, 535, 553.4, 115, 32),
    "ResNeXt-110": (374, 381.2, 567.2, 226, 6.92, 390, 128),
    "Inception-BN": (116, 149.9, 157, 815, 42.1, 120, 128),
    "Seq2Seq": (169, 231.5, 856, 75, 36.5, 780, 64),
    "CTC": (51, 68, 85.5, 585, 24, 193, 50),
    "DSSM": (405, 388.9, 450.2, 567, 6, 349, 256),
    "WLM": (80, 161.2, 1036.4, 154, 19.2, 165, 160),
}
_COLUMNS = np.array(list(_TESTBED.values()), dtype=float).T
TESTBED = JobTypes(tuple(_TESTBED), _COLUMNS[6], _COLUMNS[5], _COLUMNS[3] / 1e3, _COLUMNS[4] * 1e6)
"""The eight types of Harmony's testbed (Bao, Peng, Wu; INFOCOM 2019)."""
MEASURED: FloatArray = _COLUMNS[6] / _COLUMNS[:3]
"""Seconds of their steps with two workers and two parameter servers: on two servers, the workers on one of them; on two
servers, one of each on both; on one server, float64 (3, 8)."""


@dataclass(frozen=True, slots=True, eq=False)
class Jobs:
    """What owners submit, n jobs.

    Attributes:
        types: what they may be.
        submit: seconds, ascending, float64 (n,).
        kind: index into the types, int32 (n,).
        workers: how many, int32 (n,).
        servers: parameter servers, int32 (n,); 0 if the workers synchronise by a ring all-reduce.
        epochs: to be done, float64 (n,).
        worker, server: what one of each occupies, in `RESOURCES`, float64 (n, 3); by default as in the testbed.
    """

    types: JobTypes
    submit: FloatArray = field(metadata=array(None, holds=TIMES))
    kind: IntArray = field(metadata=array("submit", holds=AMOUNT))
    workers: IntArray = field(metadata=array("submit", holds=POSITIVE))
    servers: IntArray = field(metadata=array("submit", holds=AMOUNT))
    epochs: FloatArray = field(metadata=array("submit", holds=POSITIVE))
    worker: FloatArray = field(default=NONE, metadata=array("submit", None, holds=AMOUNT))
    server: FloatArray = field(default=NONE, metadata=array("submit", None, holds=AMOUNT))

    def __post_init__(self) -> None:
        for name, usual in (("worker", WORKER), ("server", SERVER)):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.tile(usual, (len(self.submit), 1)))
        check_fields(self)
        require(self.kind < len(self.types.names), self.kind, "kind", f"is none of {len(self.types.names)} types")
        require(np.diff(self.submit, prepend=0.0) >= 0, self.submit, "submit", "does not ascend")
        for name in ("worker", "server"):
            need = getattr(self, name)
            require(np.array([need.shape[1] == len(RESOURCES)]), np.array([need.shape[1]]), name, "resources, not 3")

    def __len__(self) -> int:
        return len(self.submit)

    @property
    def alike(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first of all jobs of the same type that ask for the same, (g,), and which of these each is like, (n,)."""
        asked = np.column_stack([self.kind, self.workers, self.servers, self.worker, self.server])
        _, first, group = np.unique(asked, axis=0, return_index=True, return_inverse=True)
        return first, group.reshape(-1)

    @property
    def profiled(self) -> FloatArray:
        """Seconds that each job would take by what was profiled alone, without synchronisation, float64 (n,)."""
        step = (self.types.compute * self.types.batches)[self.kind]
        return np.asarray(self.epochs * step / self.workers)
