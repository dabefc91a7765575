"""Per-job rows as files: CSV, or Parquet by the extra ``tables``."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from io import BytesIO, StringIO
from typing import Any

from ..trace.outcome import Outcome
from .rows import Column, job_rows


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
    """Return a table as Parquet, zstd; lists stay lists, words that repeat are written once.

    Raises:
        ImportError: without pyarrow.
    """
    import pyarrow as arrow
    from pyarrow import parquet

    word = arrow.dictionary(arrow.int32(), arrow.string())
    kinds = {
        "policy": word,
        "job_id": arrow.string(),
        "gpus": arrow.int32(),
        "queue": word,
        "model": word,
        "rejected": arrow.bool_(),
        "preemptions": arrow.int32(),
        "nodes": arrow.list_(arrow.int32()),
    }
    schema = arrow.schema([(name, kinds.get(name, arrow.float64())) for name in table])
    content = BytesIO()
    parquet.write_table(arrow.table(dict(table), schema=schema), content, compression="zstd")
    return content.getvalue()
