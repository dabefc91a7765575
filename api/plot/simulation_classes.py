"""Jobs in a few classes that colours can tell apart: by virtual cluster, or by size."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from gangplan.instances.workload import Workload

from .colours import FEW
from .layout import IntArray

SIZES = ((1, "1 GPU"), (2, "2 GPUs"), (4, "3-4 GPUs"), (8, "5-8 GPUs"), (16, "9-16 GPUs"), (32, "17-32 GPUs"))
LARGER = "more than 32 GPUs"
SPECTRUM = ("#56b4e9", "#009e73", "#b8a800", "#e69f00", "#d55e00", "#cc79a7", "#7a5c9e")
"""Of sizes, the small ones first; after Okabe and Ito (2008) as `FEW`."""
OTHERS = "#8a929c"
MOST_QUEUES = 20
"""Beyond these, queues are users rather than clusters, and sizes say more."""


@dataclass(frozen=True, slots=True)
class Classes:
    """Names and colours, and how jobs get into them.

    Attributes:
        names, colours: of the classes that have a job.
        queues: the queue of each class but the last, which has all others; empty if jobs are classed by size.
        tops: the most GPUs of a job of each class, if jobs are classed by size.
    """

    names: tuple[str, ...]
    colours: tuple[str, ...]
    queues: tuple[str, ...] = ()
    tops: tuple[int, ...] = ()

    def of(self, workload: Workload) -> IntArray:
        """Return the class of each job, int (n,)."""
        if self.tops:
            return np.searchsorted(np.array(self.tops), workload.gpus).astype(np.int32)
        number = {queue: i for i, queue in enumerate(self.queues)}
        return np.array([number.get(queue, len(number)) for queue in workload.queue], dtype=np.int32)


def classify(workload: Workload) -> Classes:
    """Return classes for the jobs of a workload: its queues, those with most work first, or sizes."""
    work: Counter[str] = Counter()
    for queue, seconds in zip(workload.queue, (workload.gpus * workload.duration).tolist(), strict=True):
        work[queue] += seconds
    if 1 < len(work) <= MOST_QUEUES:
        queues = [queue for queue, _ in work.most_common()]
        named = queues if len(queues) <= len(FEW) else queues[: len(FEW) - 1]
        names, colours = [queue or "no queue" for queue in named], list(FEW[: len(named)])
        if len(queues) > len(named):
            names.append(f"{len(queues) - len(named)} others")
            colours.append(OTHERS)
        return Classes(tuple(names), tuple(colours), queues=tuple(named))
    bounds = [*SIZES, (int(workload.gpus.max()), LARGER)] if workload.gpus.max() > SIZES[-1][0] else list(SIZES)
    at = np.unique(np.searchsorted([top for top, _ in bounds], workload.gpus)).tolist()
    return Classes(
        tuple(bounds[i][1] for i in at), tuple(SPECTRUM[i] for i in at), tops=tuple(bounds[i][0] for i in at)
    )
