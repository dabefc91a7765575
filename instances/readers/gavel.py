"""Read Gavel's files (Narayanan et al., OSDI 2020): traces of training jobs, and the speeds of models on GPUs.

A trace has ten columns with tabs between them, and no header: the model, the command, its directory, the option that
sets the steps, whether it needs data, steps, GPUs, weight, service-level objective (not read further; -1: none) and
arrival in seconds. ``simulation_throughputs.json`` has the steps a second of each (model, GPUs) on each type of GPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray, IntArray, require_choice, require_number
from ..errors import InstanceError, in_file
from ..intake import as_float, read_json, read_text
from .trace_rows import Format, TraceRow

_COLUMNS = ("model", "command", "directory", "option", "data", "steps", "GPUs", "weight", "objective", "arrival")


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


def is_gavel_trace(path: str | PathLike[str]) -> bool:
    """Return whether the first line of a file has as many tabs as a line of Gavel's traces."""
    if not Path(path).is_file():
        return False  # a pipe can be read once only
    return looks_like_gavel(read_text(path, gzip=True, empty=True).partition("\n")[0])


def looks_like_gavel(line: str) -> bool:
    """Return whether a line has as many tabs as one of Gavel's traces."""
    return line.count("\t") == len(_COLUMNS) - 1


def read_gavel_trace(path: str | PathLike[str], *, skip_bad: bool = False) -> GavelTrace:
    """Read a trace."""
    rows = ((i, line.split("\t")) for i, line in enumerate(read_text(path, gzip=True).splitlines(), 1) if line.strip())
    with in_file(path):
        jobs, skipped = _TRACE.read((_COLUMNS, rows), skip_bad)
    names, models, gpus, steps, weights, submits = zip(*jobs, strict=True)
    return GavelTrace(
        names,
        models,
        np.array(gpus, dtype=np.int32),
        np.array(steps, dtype=np.int64),
        np.array(weights),
        np.array(submits),
        tuple(skipped),
    )


def _job(row: TraceRow) -> tuple[str, str, int, int, float, float]:
    weight = as_float(row["weight"], "weight", positive=True)
    return str(row.line - 1), row.text("model"), row.whole("GPUs"), row.whole("steps"), weight, row.number("arrival")


_TRACE = Format("Gavel's", " ".join(_COLUMNS), "", _job)
_MODEL_GPUS = re.compile(r"\('(.+)', (\d{1,9})\)")


@dataclass(frozen=True, slots=True)
class Throughputs:
    """Measured speeds, jobs alone on their GPUs.

    Attributes:
        types: of GPUs, in lower case.
        speed: steps a second by (type, model, GPUs); 0 where the job does not fit.
    """

    types: tuple[str, ...]
    speed: dict[tuple[str, str, int], float]

    def of(self, kind: str, model: str, gpus: int) -> float:
        """Return the steps a second of a model on `gpus` GPUs of a type."""
        require_choice(kind, "type", self.types)
        try:
            return self.speed[kind, model, gpus]
        except KeyError:
            raise InstanceError("model", f"{model!r} on {gpus} GPUs was not measured on {kind}") from None


def read_throughputs(path: str | PathLike[str]) -> Throughputs:
    """Read the table; speeds beside another job and across servers are left to `read_measured`."""
    speed: dict[tuple[str, str, int], float] = {}
    types: list[str] = []
    with in_file(path):
        for kind, rows in throughput_tables(read_json(path)).items():
            types.append(kind.lower())
            for place, (model, gpus), row in rows:
                require_number(row.get("null"), f"{place}.null")
                speed[kind.lower(), model, gpus] = float(row["null"])
    return Throughputs(tuple(types), speed)


Table = list[tuple[str, tuple[str, int], dict[str, Any]]]
"""Of one type of GPU: each row's place in the file, its model and GPUs, and its speeds alone and beside others."""


def throughput_tables(data: Any) -> dict[str, Table]:
    """Return the rows of ``simulation_throughputs.json`` by GPU type, those across servers left out."""
    if not isinstance(data, dict) or not data:
        raise InstanceError("content", "is not a table of GPU types")
    found: dict[str, Table] = {}
    for kind, table in data.items():
        if kind.endswith("_unconsolidated"):
            continue
        if not isinstance(table, dict):
            raise InstanceError(kind, "is not a table of ('model', GPUs) rows")
        found[kind] = []
        for key, row in table.items():
            match = _MODEL_GPUS.fullmatch(key)
            if match is None or not isinstance(row, dict):
                raise InstanceError(f"{kind}.{key}", "is not a row of ('model', GPUs)")
            found[kind].append((f"{kind}.{key}", (match[1], int(match[2])), row))
    return found
