"""The image state of TopDRL: who is on each GPU for how long, the jobs in sight as blocks, and figures of the rest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import require_number
from gangplan.simulator.gangs.arrays import ARRIVED, WAITING
from gangplan.simulator.gangs.step import remaining
from gangplan.solvers.compiled.kernel import Ints, Singles2, Singles3, Singles4, by_reference, lean, lean_kernel

from .batch import Batch, JobRows, StateRows, jobs_at, state_at

BEHIND, FREE, BUSY, WANTED, WORK, ARRIVING = range(6)
SCALARS = ("behind", "free", "busy", "wanted", "work", "arriving")
"""Jobs that wait behind those in sight, over the backlog shown, at most 1; idle GPUs, and held ones, over those
of the cluster; GPUs that all waiting jobs ask for, over the same; their GPU seconds over those of the cluster in the
image; 1 while jobs may still arrive."""

Singles = NDArray[np.float32]


class Image(NamedTuple):
    """What a policy sees of B episodes, float32.

    Attributes:
        cluster: (B, rows, GPUs), 1 where a GPU is held in the row's step from now on, as far as durations are told.
        queue: (B, slots, rows, width), a block of 1 for each job in sight: its steps by its GPUs.
        scalars: (B, 6), see `SCALARS`.
    """

    cluster: Singles
    queue: Singles
    scalars: Singles


def image(batch: Batch, *, rows: int = 30, width: int = 8, step: float = 1.0, backlog: int = 5) -> Image:
    """Return the images of all episodes of a batch, as they are now.

    Args:
        rows: steps from now on.
        width: GPUs of the widest block; wider jobs are shown as this.
        step: seconds of a row; a part of a step counts as a whole one.
        backlog: of how many jobs behind those in sight the count is shown.

    Raises:
        InstanceError: if one of them is not positive.
    """
    require_frame(rows, width, step, backlog)
    b, gpus = len(batch), batch.state.holder.shape[1]
    made = Image(
        np.zeros((b, rows, gpus), dtype=np.float32),
        np.zeros((b, batch.slots, rows, width), dtype=np.float32),
        np.zeros((b, len(SCALARS)), dtype=np.float32),
    )
    draw(batch.jobs, batch.state, batch.size, float(step), backlog, *made)
    return made


def require_frame(rows: int, width: int, step: float, backlog: int) -> None:
    """Raise `InstanceError` if an argument of `image` is not positive."""
    for name, value in (("rows", rows), ("width", width), ("backlog", backlog)):
        require_number(value, name, positive=True, whole=True)
    require_number(step, "step", positive=True)


@lean_kernel
def draw(
    jobs: JobRows, state: StateRows, size: Ints, step: float, backlog: int, cluster: Singles3, queue: Singles4,
    scalars: Singles2,
) -> None:  # fmt: skip
    """Draw each episode, see `Image`, on arrays of 0."""
    for b in range(len(size)):
        of, now = by_reference(jobs_at(jobs, size[b], b)), by_reference(state_at(state, size[b], b))
        rows, gpus = cluster.shape[1], cluster.shape[2]
        slots, width = queue.shape[1], queue.shape[3]
        busy, wanted, work = 0, 0, 0.0
        for gpu in range(gpus):
            job = now.holder[gpu]
            if job >= 0 and size[b] > 0:  # a row may never have had an episode
                busy += 1
                for t in range(steps(remaining(of, now, job), step, rows)):
                    cluster[b, t, gpu] = 1.0
        waiting = now.count[WAITING]
        for at in range(waiting):
            job = now.queue[at]
            wanted += of.gpus[job]
            work += of.gpus[job] * of.expected[job]
            if at < slots:
                for t in range(steps(of.expected[job], step, rows)):
                    queue[b, at, t, : min(of.gpus[job], width)] = 1.0
        scalars[b, BEHIND] = min(max(waiting - slots, 0) / backlog, 1.0)
        scalars[b, FREE], scalars[b, BUSY] = (gpus - busy) / gpus, busy / gpus
        scalars[b, WANTED], scalars[b, WORK] = wanted / gpus, work / (gpus * rows * step)
        scalars[b, ARRIVING] = now.count[ARRIVED] < size[b]


@lean
def steps(seconds: float, step: float, most: int) -> int:
    """Return over how many rows a time extends, at least 1."""
    return int(min(max(np.ceil(seconds / step - 1e-9), 1.0), most))
