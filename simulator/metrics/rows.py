"""What came of each job, a row each."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from ..trace.outcome import Outcome
from ..trace.spans import spans

Column = list[str] | list[bool] | list[int] | list[float] | list[float | None] | list[list[int]]


def job_rows(outcome: Outcome) -> dict[str, Column]:
    """Return the columns of a table with a row for each job, in the order of the workload.

    Times are in seconds, None for jobs that were rejected. ``wait`` is to the first start; ``gpus`` what the job asked
    for; ``preemptions`` how often it was stopped before its end, by failures too; ``gpu_seconds`` what it held,
    shares added up; ``nodes`` all on which it ran, ascending, none if GPUs were only counted.
    """
    work, ran = outcome.workload, outcome.admitted
    n = work.n_jobs
    held = outcome.row_gpus * outcome.row_share * (outcome.row_end - outcome.row_start)
    parts = spans(outcome)
    opened = np.bincount(parts.job[parts.opens], minlength=n)
    return {
        "job_id": list(work.names),
        "submit": work.submit.tolist(),
        "start": _known(outcome.start, ran),
        "finish": _known(outcome.finish, ran),
        "jct": _known(outcome.finish - work.submit, ran),
        "wait": _known(outcome.start - work.submit, ran),
        "gpus": work.gpus.tolist(),
        "queue": list(work.queue),
        "model": list(work.model),
        "rejected": (~ran).tolist(),
        "preemptions": np.maximum(opened - 1, 0).tolist(),
        "gpu_seconds": np.bincount(outcome.row_job, weights=held, minlength=n).tolist(),
        "nodes": _nodes(outcome),
    }


def _known(values: FloatArray, ran: NDArray[np.bool_]) -> list[float | None]:
    return [value if there else None for value, there in zip(values.tolist(), ran.tolist(), strict=True)]


def _nodes(outcome: Outcome) -> list[list[int]]:
    m = np.int64(len(outcome.room))
    named = outcome.row_node >= 0
    at = np.unique(outcome.row_job[named] * m + outcome.row_node[named])
    cuts = np.searchsorted(at // m, np.arange(outcome.workload.n_jobs + 1)).tolist()
    node = (at % m).tolist()
    return [node[a:b] for a, b in pairwise(cuts)]
