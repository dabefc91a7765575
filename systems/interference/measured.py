"""Truths that others measured: Gavel's pairs of jobs on a GPU, and DeepShare's pairs of gangs on links.

Neither is of the form of any model of ours. A job beside several others keeps the product of what the pairs keep, which
nobody measured; Gavel's cases have at most two on a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.instances.errors import unknown
from gangplan.instances.intake import as_float, csv_rows, read_text
from gangplan.instances.placement import Fleet
from gangplan.instances.readers.gavel import read_throughputs
from gangplan.instances.readers.measured import Pairs, read_measured

from .job_types import JobTypes
from .speeds import LINKS, PAIRS, SPREADS
from .truths import HiddenTruth, hidden, links

EPOCH = 60.0
"""Seconds of an epoch of these types, alone: their sources count steps."""
_GANGS = (1, 2, 4, 8)
_LINK_KEY = re.compile(r"(.+),(\d{1,4}),(\d{1,4})")


def gpu_pairs(path: str | PathLike[str], fleet: Fleet, gpu: str) -> tuple[JobTypes, HiddenTruth]:
    """Return Gavel's models as types of job, one for each number of workers measured, and the truth of sharing a GPU.

    Args:
        path: ``simulation_throughputs.json``.
        fleet: servers of one GPU; at most two workers share it if each has half of it.
        gpu: k80, p100 or v100.

    Raises:
        InstanceError: naming the file, the place and the value found.
    """
    known = {pairs.name: pairs for pairs in read_measured(path) if isinstance(pairs, Pairs)}
    if gpu not in known:
        raise InstanceError("gpu", unknown(gpu, known))
    pairs, step, row = known[gpu], dict[str, float](), list[int]()
    for (on, model, workers), speed in read_throughputs(path).speed.items():
        if on == gpu and workers in _GANGS and model in pairs.jobs and speed > 0:
            step[f"{model} x{workers}"] = workers / speed
            row.append(pairs.jobs.index(model))
    types, rows = _types(step), np.repeat(np.array(row, dtype=np.int64)[:, None], SPREADS, axis=1)
    known_of = {"row": rows, "kept": filled(pairs.kept), "alone": pairs.alone}
    return types, HiddenTruth(hidden(PAIRS, links(fleet), types, **known_of))


def link_pairs(folder: str | PathLike[str], fleet: Fleet) -> tuple[JobTypes, HiddenTruth]:
    """Return DeepShare's gangs as types of job, and the truth in which those that share a link keep what it measured.

    A gang on k servers is that of the smallest number of nodes measured that is no less than k, or of the largest. On
    one server it is as fast as it was on any number, and shares no link.

    Args:
        folder: with ``shared_thp_ratio.csv`` and ``isolated_thp.csv``.
        fleet: servers that several gangs may share.

    Raises:
        InstanceError: naming the file, the place and the value found.
    """
    (pairs,) = read_measured(Path(folder) / "shared_thp_ratio.csv")
    assert isinstance(pairs, Pairs)
    rows = [row for _, row in csv_rows(read_text(Path(folder) / "isolated_thp.csv"))]
    speed = {row[0]: as_float(row[1], f"isolated_thp.csv: {row[0]}", positive=True) for row in rows[1:]}
    gangs: dict[str, dict[int, int]] = {}
    for i, name in enumerate(pairs.jobs):
        match = _LINK_KEY.fullmatch(name)
        if match is None or name not in speed:
            raise InstanceError("isolated_thp.csv", f"has no row for {name!r}")
        model, workers, nodes = match.groups()
        gangs.setdefault(f"{model} x{workers}", {})[int(nodes)] = i
    alone = np.array([int(name.split(",")[1]) / speed[name] for name in pairs.jobs])
    best = {name: min(float(alone[i]) for i in by.values()) for name, by in gangs.items()}
    row = np.zeros((len(gangs), SPREADS), dtype=np.int64)
    for k, by in enumerate(gangs.values()):
        for at in range(1, SPREADS):
            row[k, at] = by[min((n for n in by if n >= 2**at), default=max(by))]
    size = len(alone)
    row[:, 0] = size + np.arange(len(gangs))  # on one server
    table = np.ones((size + len(gangs), size + len(gangs)))
    table[:size, :size] = filled(pairs.kept)
    types, alone = _types(best), np.append(alone, list(best.values()))
    return types, HiddenTruth(hidden(LINKS, links(fleet), types, row=row, kept=table, alone=alone))


def gangs_of(names: Iterable[str]) -> list[int]:
    """Return the workers of each type of these truths, by its name."""
    return [int(name.rpartition(" x")[2]) for name in names]


def filled(kept: FloatArray) -> FloatArray:
    """Return a table with the product of row and column means, over the mean of all, where nothing was measured."""
    known: BoolArray = np.isfinite(kept)
    logs = np.log(np.where(known, kept, 1.0))
    whole = logs.sum() / known.sum()
    by_row, by_column = (logs.sum(axis=x) / np.maximum(known.sum(axis=x), 1) for x in (1, 0))
    guess = np.minimum(np.exp(by_row[:, None] + by_column - whole), 1.0)
    return np.ascontiguousarray(np.where(known, kept, guess))


def _types(step: dict[str, float]) -> JobTypes:
    """Return types by the seconds of a step of a worker; nothing is known of their batches and bytes."""
    seconds, ones = np.array(list(step.values())), np.ones(len(step))
    return JobTypes(tuple(step), ones, EPOCH * np.array(gangs_of(step)) / seconds, seconds, ones)
