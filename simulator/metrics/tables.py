"""What came of each job, a row each, and files of such rows: CSV, or Parquet by the extra ``tables``."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from io import BytesIO, StringIO
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from ..outcome import Outcome
from ..spans import spans

Column = list[str] | list[bool] | list[int] | list[float] | list[float | None] | list[list[int]]


def job_rows(outcome: Outcome) -> dict[str, Column]:
    """Return the columns of a table with a row for each job, in the order of the workload.

    Times are in seconds, None for jobs that were rejected. ``wait`` is to the first start; ``gpus`` what the job asked
    for; ``preemptions`` how often it was stopped before its end, by failures too; ``gpu_seconds`` what it held,
    shares added up; ``nodes`` all on which it ran, ascending, none if GPUs were only counted. ``user`` and ``title``
    are there if the trace names any.
    """
    work, ran = outcome.workload, outcome.admitted
    n = work.n_jobs
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
        **{name: list(words) for name, words in (("user", work.user), ("title", work.title)) if any(words)},
        "rejected": (~ran).tolist(),
        "preemptions": np.maximum(opened - 1, 0).tolist(),
        "gpu_seconds": np.bincount(outcome.row_job, weights=outcome.held, minlength=n).tolist(),
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


def columns(outcomes: Mapping[str, Outcome]) -> dict[str, Column]:
    """Return the rows of several policies below one another, `policy` being the first column."""
    found: dict[str, Any] = {"policy": []}
    for policy, outcome in outcomes.items():
        one = job_rows(outcome)
        found["policy"] += [policy] * outcome.workload.n_jobs
        for name, values in one.items():
            found.setdefault(name, []).extend(values)
    return found


def to_csv(table: Mapping[str, Column]) -> bytes:
    """Return a table as CSV: nothing for None, lists with spaces between their entries, true and false as 1 and 0."""
    lists: dict[str, Iterable[Any]] = dict(table)
    lists["nodes"] = (" ".join(map(str, nodes)) for nodes in lists["nodes"])
    lists["rejected"] = map(int, lists["rejected"])
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(lists)
    writer.writerows(zip(*lists.values(), strict=True))
    return text.getvalue().encode()


def to_parquet(table: Mapping[str, Column]) -> bytes:
    """Return a table as Parquet, zstd; lists stay lists, words that repeat are written once."""
    import pyarrow as arrow
    from pyarrow import parquet

    word = arrow.dictionary(arrow.int32(), arrow.string())
    kinds = {
        "policy": word,
        "job_id": arrow.string(),
        "gpus": arrow.int32(),
        "queue": word,
        "model": word,
        "user": word,
        "title": word,
        "rejected": arrow.bool_(),
        "preemptions": arrow.int32(),
        "nodes": arrow.list_(arrow.int32()),
    }
    schema = arrow.schema([(name, kinds.get(name, arrow.float64())) for name in table])
    content = BytesIO()
    parquet.write_table(arrow.table(dict(table), schema=schema), content, compression="zstd")
    return content.getvalue()
