"""Read Gavel's traces of training jobs (Narayanan et al., OSDI 2020): tab-separated, ten columns, no header.

The columns are the model, the command, its directory, the option that sets the steps, whether it needs data, steps,
GPUs, weight, service-level objective (not read further; -1: none) and arrival in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray, IntArray
from ..errors import InstanceError
from ..intake import as_float, read_text

_COLUMNS = 10


@dataclass(frozen=True, slots=True, eq=False)
class GavelTrace:
    """The jobs of a trace, n of them, in the order of the file.

    Attributes:
        names: the numbers of their lines, from 0 on, as Gavel counts them.
        model: what each trains, with its batch size.
        gpus: of each, all of one type, int32 (n,).
        steps: to be done, int64 (n,).
        weight: of each in fairness, float64 (n,).
        submit: seconds, float64 (n,).
        skipped: lines left out and why; empty unless bad ones were to be skipped.
    """

    names: tuple[str, ...]
    model: tuple[str, ...]
    gpus: IntArray
    steps: NDArray[np.int64]
    weight: FloatArray
    submit: FloatArray
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Job:
    name: str
    model: str
    gpus: int
    steps: int
    weight: float
    submit: float


def is_gavel_trace(path: str | PathLike[str]) -> bool:
    """Return whether the first line of a file has as many tabs as a line of Gavel's traces."""
    if not Path(path).is_file():
        return False  # a pipe can be read once only
    return read_text(path, gzip=True, empty=True).partition("\n")[0].count("\t") == _COLUMNS - 1


def read_gavel_trace(path: str | PathLike[str], *, skip_bad: bool = False) -> GavelTrace:
    """Read a trace.

    Args:
        path: the file.
        skip_bad: leave bad lines out and say which, instead of refusing the file.

    Raises:
        InstanceError: naming file, line, field and the value found.
    """
    source = fspath(path)
    text = read_text(path, gzip=True)
    jobs: list[_Job] = []
    skipped: list[str] = []
    for line, found in _rows(text):
        if isinstance(found, _Job):
            jobs.append(found)
            continue
        placed = InstanceError(f"line {line}: {found.field}", found.problem, source)
        if not skip_bad:
            raise placed
        skipped.append(f"{placed.field}: {placed.problem}")
    if not jobs:
        raise InstanceError("content", f"there is no job; {len(skipped)} bad lines were skipped", source)
    return GavelTrace(
        tuple(job.name for job in jobs),
        tuple(job.model for job in jobs),
        np.array([job.gpus for job in jobs], dtype=np.int32),
        np.array([job.steps for job in jobs], dtype=np.int64),
        np.array([job.weight for job in jobs]),
        np.array([job.submit for job in jobs]),
        tuple(skipped),
    )


def _rows(text: str) -> Iterator[tuple[int, _Job | InstanceError]]:
    for i, line in enumerate(text.splitlines()):
        if not line.strip():
            continue
        cells = line.split("\t")
        try:
            if len(cells) != _COLUMNS:
                raise InstanceError("columns", f"{line!r} has {len(cells)} of them, not {_COLUMNS}")
            if not cells[0].strip():
                raise InstanceError("model", "is empty")
            steps, gpus = (_number(cells[c], name, whole=True) for c, name in ((5, "steps"), (6, "GPUs")))
            weight = _number(cells[7], "weight")
            submit = _number(cells[9], "arrival", zero=True)
            yield i + 1, _Job(str(i), cells[0].strip(), int(gpus), int(steps), weight, submit)
        except InstanceError as error:
            yield i + 1, error


def _number(cell: str, field: str, *, whole: bool = False, zero: bool = False) -> float:
    """Return a finite number above 0, or from 0 on."""
    value = as_float(cell, field, positive=not zero)
    if whole and (value != int(value) or value >= 2**31):
        raise InstanceError(field, f"{cell!r} is not a whole number below 2^31")
    return value
