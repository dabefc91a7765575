"""Read Gavel's ``simulation_throughputs.json``: steps a second of each (model, GPUs) on each type of GPU."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from ..errors import InstanceError

_KEY = re.compile(r"\('(.+)', (\d+)\)")


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
            raise InstanceError("type", f"{kind!r} is not one of {', '.join(self.types)}")
        try:
            return self.speed[kind, model, gpus]
        except KeyError:
            raise InstanceError("model", f"{model!r} on {gpus} GPUs was not measured on {kind}") from None


def read_throughputs(path: str | PathLike[str]) -> Throughputs:
    """Read the table; speeds beside another job and across servers are left to `read_measured`.

    Raises:
        InstanceError: naming file, place and the value found.
    """
    source = fspath(path)
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise InstanceError("JSON", f"{error.msg} at line {error.lineno} column {error.colno}", source) from None
    except (OSError, UnicodeDecodeError, ValueError) as error:
        words = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise InstanceError("file", str(words).lower(), source) from None
    if not isinstance(data, dict) or not data:
        raise InstanceError("content", "is not a table of GPU types", source)
    speed: dict[tuple[str, str, int], float] = {}
    types = tuple(kind for kind in data if not kind.endswith("_unconsolidated"))
    for kind in types:
        if not isinstance(data[kind], dict):
            raise InstanceError(kind, "is not a table of ('model', GPUs) rows", source)
        for key, row in data[kind].items():
            match = _KEY.fullmatch(key)
            if match is None or not isinstance(row, dict):
                raise InstanceError(f"{kind}.{key}", "is not a row of ('model', GPUs)", source)
            value = row.get("null")
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise InstanceError(f"{kind}.{key}.null", f"{value!r} is not a finite number from 0 on", source)
            speed[kind.lower(), match[1], int(match[2])] = float(value)
    return Throughputs(tuple(kind.lower() for kind in types), speed)
