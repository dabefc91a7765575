"""What the network is shown: the images of the cluster and of the queue and their numbers, in a row a state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gangplan.solvers.compiled.kernel import Ints

from ..arrays import Jobs, State
from ..image import SCALARS, draw
from ..rows import JobRows, StateRows
from .recipe import Settings

Halves = NDArray[np.float16]
"""Images are of 0 and 1, and many are kept."""


def observe(jobs: JobRows, state: StateRows, size: Ints, settings: Settings, step: float | None = None) -> Halves:
    """Return what is seen of B states, float16 (B, rows GPUs + slots rows widest + scalars).

    Args:
        jobs, state: an episode a row.
        size: jobs of each, int64 (B,).
        settings: of the images.
        step: seconds of a row, by default that of training.
    """
    b, rows, slots = len(size), settings.rows, settings.slots
    parts = [
        np.zeros(shape, dtype=np.float32)
        for shape in ((b, rows, settings.gpus), (b, slots, rows, settings.widest), (b, len(SCALARS)))
    ]
    draw(jobs, state, size, step or settings.step, settings.backlog, *parts)
    return np.concatenate([x.reshape(b, -1) for x in parts], axis=1, dtype=np.float16, casting="same_kind")


def alone(jobs: Jobs, state: State) -> tuple[JobRows, StateRows, Ints]:
    """Return one episode as rows, which are views."""
    size = np.array([len(jobs.submit)])
    return JobRows(*(x[None] for x in jobs)), StateRows(*(x[None] for x in state)), size


def set_aside(seen: Halves, aside: NDArray[np.bool_], settings: Settings) -> Halves:
    """Mark the GPUs that are set aside for the first job, bool (B, GPUs), and let the job shrink by them."""
    b, rows, cells = len(seen), settings.rows, settings.rows * settings.gpus
    cluster, job = seen[:, :cells].reshape(b, rows, -1), seen[:, cells : cells + rows * settings.widest]
    cluster[:] = np.where(aside[:, None, :], -1.0, cluster)
    block = job.reshape(b, rows, -1)
    left = block[:, 0].sum(axis=1) - aside.sum(axis=1)
    block *= np.arange(settings.widest) < left[:, None, None]
    seen[:, :cells], seen[:, cells : cells + rows * settings.widest] = cluster.reshape(b, -1), block.reshape(b, -1)
    return seen
