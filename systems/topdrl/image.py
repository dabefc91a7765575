"""The image state of TopDRL: who is on each GPU for how long, the jobs in sight as blocks, and figures of the rest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import require_number

from .batch import Batch
from .kernels import draw

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
    b, gpus = len(batch), len(batch.cluster.node)
    made = Image(
        np.zeros((b, rows, gpus), dtype=np.float32),
        np.zeros((b, batch.slots, rows, width), dtype=np.float32),
        np.zeros((b, len(SCALARS)), dtype=np.float32),
    )
    draw(batch.episodes, float(step), backlog, *made)
    return made


def require_frame(rows: int, width: int, step: float, backlog: int) -> None:
    """Raise `InstanceError` if an argument of `image` is not positive."""
    for name, value in (("rows", rows), ("width", width), ("backlog", backlog)):
        require_number(value, name, positive=True, whole=True)
    require_number(step, "step", positive=True)
