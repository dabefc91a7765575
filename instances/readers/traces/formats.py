"""Which format a text is written in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ...errors import InstanceError
from . import pai, published, sacct, swf
from .delimited import table
from .row import Format


def recognise(text: str, seconds: Mapping[str, float]) -> Format:
    """Return the format of a trace.

    Args:
        text: of the file.
        seconds: see `read_trace`.

    Raises:
        InstanceError: if it is none that is known.
    """
    columns = table(text)[0]
    for form in _with_header(seconds):
        if form.needs <= set(columns):
            return form
    if len(columns) == len(pai.COLUMNS) and columns[2].replace(".", "", 1).isdigit():
        headless = partial(table, columns=pai.COLUMNS)
        return Format(frozenset(), headless, pai.pai, calendar=True, merge=True)
    if sacct.looks_like_sacct(table(text, delimiter="|")[0]):
        return Format(frozenset(), partial(table, delimiter="|"), sacct.sacct, calendar=True)
    if swf.looks_like_swf(text):
        return Format(frozenset(), swf.split, swf.swf)
    raise InstanceError("header", f"{', '.join(columns) or 'nothing'} lacks job_id, num_gpu, submit_time or duration")


def _with_header(seconds: Mapping[str, float]) -> tuple[Format, ...]:
    def named(columns: str) -> frozenset[str]:
        return frozenset(columns.split())

    return (
        Format(named("job_id num_gpu submit_time duration"), table, published.plain),
        Format(named("timestamp duration num_gpus cluster"), table, published.philly, calendar=True),
        Format(
            named("job_id vc gpu_num cpu_num submit_time start_time end_time duration"),
            table,
            published.helios,
            calendar=True,
        ),
        Format(
            named("name cpu_milli memory_mib num_gpu gpu_milli creation_time deletion_time scheduled_time"),
            table,
            published.openb,
            calendar=True,
        ),
        Format(named("name time application num_replicas"), table, partial(published.pollux, seconds=seconds)),
        Format(frozenset(pai.COLUMNS), table, pai.pai, calendar=True, merge=True),
    )
