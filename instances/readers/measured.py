"""Read measured speeds: pairs of jobs that shared a GPU or links, and one job under many placements.

Formats, as published: Gavel's ``simulation_throughputs.json`` (Narayanan et al., OSDI 2020), DeepShare's
``shared_thp_ratio.csv`` and Pollux's ``*-placements.csv`` (Qiao et al., OSDI 2021). Tables that papers print, like that
of Harmony (Bao et al., INFOCOM 2019), as CSV: ``model, apart, mixed, together`` in samples/s (see `Servers`),
``compute`` in seconds, ``gradient`` in bytes, ``batch`` in samples. Tables of jobs alone and together: see `together`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from ..arrays import FloatArray, IntArray, require
from ..errors import ENTRIES, InstanceError, in_file
from ..intake import as_float, csv_rows, parse_json, read_text
from .gavel import throughput_tables
from .together import Together, looks_like_together, read_together
from .trace_rows import Content, Format, TraceRow, table

_number = partial(as_float, positive=True)
_PLACEMENT = re.compile(r"[1-9]+")
_SERVERS = ("model", "apart", "mixed", "together", "compute", "gradient", "batch")


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """What jobs keep of their throughput beside one another.

    Attributes:
        name: of the data set.
        jobs: their names, n of them.
        alone: throughput of each job alone, float64 (n,); NaN where unknown.
        kept: share of it that the row's job keeps beside the column's, float64 (n, n); NaN where not measured.
        links: whether they share links and nothing else; else GPUs.
    """

    name: str
    jobs: tuple[str, ...]
    alone: FloatArray
    kept: FloatArray
    links: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredSteps:
    """One model's steps under many placements, n of them.

    Attributes:
        name: of the model.
        placement: workers on each node, e.g. ``112``: two nodes with one worker, one with two.
        nodes, workers, most: int32 (n,), how many nodes and workers, and the most workers on one node.
        batch: samples a worker takes in each step, float64 (n,).
        seconds: of a step, float64 (n,).
    """

    name: str
    placement: tuple[str, ...]
    nodes: IntArray
    workers: IntArray
    most: IntArray
    batch: FloatArray
    seconds: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Servers:
    """Steps of n model types through parameter servers in three placements.

    Attributes:
        name: of the data set.
        models: their names.
        compute: seconds that a worker computes in a step, float64 (n,).
        gradient: bytes, float64 (n,).
        seconds: of a step with workers and parameter servers on different nodes, on some of the same, and all on one,
            float64 (n, 3).
    """

    name: str
    models: tuple[str, ...]
    compute: FloatArray
    gradient: FloatArray
    seconds: FloatArray


def read_measured(path: str | PathLike[str]) -> list[Pairs | MeasuredSteps | Servers | Together]:
    """Read a file of one of the formats; Gavel's has pairs of each GPU type."""
    text, name = read_text(path), Path(path).stem
    with in_file(path):
        if text.lstrip().startswith("{"):
            return list(_gavel(text))
        header = table(text)[0]
        if header[:2] == ("placement", "local_bsz"):
            return [_pollux(table(text), name.removesuffix("-placements"))]
        if header == _SERVERS:
            return [_servers(table(text), name)]
        if looks_like_together(header):
            return [read_together(text, name)]
        rows = [row for _, row in csv_rows(text)]
        if header[:1] == ("",) and len(header) == len(rows) > 1:
            return [_matrix(rows, name)]
    raise InstanceError("content", f"{text.lstrip()[:60]!r} begins no known format of measured speeds", fspath(path))


def _gavel(text: str) -> list[Pairs]:
    found = []
    for kind, rows in throughput_tables(parse_json(text)).items():
        single = [(place, model, row) for place, (model, gpus), row in rows if gpus == 1]
        order = {f"('{model}', 1)": i for i, (_, model, _) in enumerate(single)}
        alone = np.array([_number(row.get("null"), f"{place}.null") for place, _, row in single])
        ENTRIES.check(len(single) ** 2, kind)
        kept = np.full((len(single), len(single)), np.nan)
        for i, (place, _, row) in enumerate(single):
            for b, value in row.items():
                if b not in order or not isinstance(value, list):
                    continue
                both = [as_float(x, f"{place}.{b}[{k}]") for k, x in enumerate(value)]
                if both and min(both) > 0:  # 0: the pair does not fit the memory
                    kept[i, order[b]] = _number(both[0] / float(alone[i]), f"{place}.{b}")
        if single:
            found.append(Pairs(kind, tuple(model for _, model, _ in single), alone, kept))
    return found


def _matrix(rows: list[list[str]], name: str) -> Pairs:
    jobs = rows[0][1:]
    for i, row in enumerate(rows[1:]):
        if row[0] != jobs[i] or len(row) != len(rows[0]):
            raise InstanceError(f"line {i + 2}", f"{row[0]!r} does not fit the header's {jobs[i]!r}")
    kept = np.full((len(jobs), len(jobs)), np.nan)  # as large as the file, which the lines above made sure of
    for i, row in enumerate(rows[1:]):
        for k, cell in enumerate(row[1:]):
            kept[i, k] = _number(cell, f"line {i + 2}: {jobs[k]}")
    return Pairs(name, tuple(jobs), np.full(len(jobs), np.nan), kept, links=True)


def _pollux(content: Content, name: str) -> MeasuredSteps:
    placement, batch, seconds = zip(*_STEPS.read(content)[0], strict=True)
    per_node = [[int(digit) for digit in text] for text in placement]
    return MeasuredSteps(
        name=name,
        placement=placement,
        nodes=np.array([len(x) for x in per_node], dtype=np.int32),
        workers=np.array([sum(x) for x in per_node], dtype=np.int32),
        most=np.array([max(x) for x in per_node], dtype=np.int32),
        batch=np.array(batch),
        seconds=np.array(seconds),
    )


def _step(row: TraceRow) -> tuple[str, float, float]:
    if not _PLACEMENT.fullmatch(row["placement"]):
        raise InstanceError("placement", f"{row['placement']!r} is not the workers on each node, such as 112")
    return row["placement"], _number(row["local_bsz"], "local_bsz"), _number(row["step_time"], "step_time")


def _servers(content: Content, name: str) -> Servers:
    models, *columns = zip(*_PLACED.read(content)[0], strict=True)
    figures = np.array(columns)
    with np.errstate(over="ignore", under="ignore"):
        seconds = (figures[5] / figures[:3]).T
    require(np.isfinite(seconds) & (seconds > 0), seconds, "seconds", "of a step is out of all bounds")
    return Servers(name, models, figures[3], figures[4], seconds)


_STEPS = Format("Pollux' placements", "placement local_bsz step_time", "", _step)
_PLACED = Format(
    "three placements", " ".join(_SERVERS), "", lambda row: [row["model"], *(_number(row[x], x) for x in _SERVERS[1:])]
)
