"""Read Gavel's ``simulation_throughputs.json``: steps a second of each (model, GPUs) on each type of GPU."""

from __future__ import annotations

import re
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

from ..arrays import require_number
from ..errors import InstanceError, unknown
from ..intake import read_json

_KEY = re.compile(r"\('(.+)', (\d{1,9})\)")


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
        """Return the steps a second of a model on `gpus` GPUs of a type.

        Raises:
            InstanceError: if it was not measured.
        """
        if kind not in self.types:
            raise InstanceError("type", unknown(kind, self.types))
        try:
            return self.speed[kind, model, gpus]
        except KeyError:
            raise InstanceError("model", f"{model!r} on {gpus} GPUs was not measured on {kind}") from None


def read_throughputs(path: str | PathLike[str]) -> Throughputs:
    """Read the table; speeds beside another job and across servers are left to `read_measured`.

    Raises:
        InstanceError: naming file, place and the value found.
    """
    data = read_json(path)
    try:
        return _parsed(data)
    except InstanceError as error:
        raise error.of(fspath(path)) from None


def _parsed(data: Any) -> Throughputs:
    if not isinstance(data, dict) or not data:
        raise InstanceError("content", "is not a table of GPU types")
    speed: dict[tuple[str, str, int], float] = {}
    types = tuple(kind for kind in data if not kind.endswith("_unconsolidated"))
    for kind in types:
        if not isinstance(data[kind], dict):
            raise InstanceError(kind, "is not a table of ('model', GPUs) rows")
        for key, row in data[kind].items():
            match = _KEY.fullmatch(key)
            if match is None or not isinstance(row, dict):
                raise InstanceError(f"{kind}.{key}", "is not a row of ('model', GPUs)")
            speed[kind.lower(), match[1], int(match[2])] = _number(row.get("null"), f"{kind}.{key}.null")
    return Throughputs(tuple(kind.lower() for kind in types), speed)


def _number(value: Any, field: str) -> float:
    require_number(value, field)
    return float(value)
