"""Read a table of jobs that were measured alone and beside one another, as its owner has it.

A row is a job with its partner: ``model, batch size, GPUs, speed alone, speed together, partner model, partner batch
size, partner GPUs``, and, where they were measured, ``partner speed alone, partner speed together``. Or a row is a job,
and those that ran together have the same ``group``; with neither, each two rows that follow one another are a pair.
Batch size and GPUs may be left out. Columns may come in any order and in other words (``model_2``, ``throughput
(isolated)``); those that say nothing of this kind are not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray
from ..errors import InstanceError
from ..intake import as_float, csv_rows
from .trace_rows import Format


def _words(text: str) -> list[str]:
    return [x for x in re.split(r"[^a-z0-9]+", text) if x]


_FIELDS = {
    "model": {"model", "type", "name", "network", "workload"},
    "batch": {"batch", "bs", "batchsize"},
    "gpus": {"gpus", "gpu", "workers", "ngpus"},
    "alone": {"alone", "isolated", "isolation", "solo", "exclusive", "standalone", "dedicated"},
    "together": {"together", "colocated", "colocation", "shared", "corun", "packed", "paired"},
    "group": {"group", "pair", "run"},
}
"""The words of which one says what a column holds; a column that has words of two fields is not used."""
_KNOWN = set().union(*_FIELDS.values())
_PARTNER = {"partner", "other", "2", "b", "second", "neighbour", "neighbor"}
_FIRST = {"1", "a", "first", "own"}
_FILLERS = set(
    _words(
        "size speed throughput thp of the number num count n s samples images steps iterations epochs it per sec "
        "second co id job global local train training measured mean avg average when with in"
    )
)


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """Jobs that ran together, n of them, and what they kept of their speed.

    Attributes:
        name: of the table; it says so if rows were taken for pairs two by two.
        words: of each of T types, its model.
        numbers: of each type, what else tells it: batch size and GPUs, as far as the table has them.
        kind: type of each job, int64 (n,).
        group: of each job, ascending from 0, int64 (n,); those of one group ran together.
        kept: speed together over speed alone, float64 (n,); NaN where it was not measured.
    """

    name: str
    words: tuple[str, ...]
    numbers: tuple[tuple[float, ...], ...]
    kind: NDArray[np.int64]
    group: NDArray[np.int64]
    kept: FloatArray


def looks_like_together(header: Iterable[str]) -> bool:
    """Return whether a header has speeds alone or together."""
    return not {"alone", "together"}.isdisjoint(key for _, key in map(_column, header))


def read_together(text: str, name: str) -> Together:
    """Read the table."""
    rows = csv_rows(text)
    header = [cell.strip() for cell in next(rows)[1]]
    places = _places(header)
    lines = iter([(line, [cell.strip() for cell in cells]) for line, cells in rows])
    made, _ = Format("jobs together", "", "", lambda row: list(_jobs(row, places))).read((tuple(header), lines))
    two_by_two = places.keys().isdisjoint({(True, "model"), (False, "group")})
    if two_by_two and len(made) % 2:
        words = f"{len(made)} rows are not pairs, and no column 'partner model' or 'group' says who ran with whom"
        raise InstanceError("content", words)
    types: dict[tuple[str, tuple[float, ...]], int] = {}
    groups: dict[str, list[tuple[int, float]]] = {}
    for i, jobs in enumerate(made):
        for word, numbers, kept, group in jobs:
            kind = types.setdefault((word, numbers), len(types))
            groups.setdefault(group or f"row {i // (1 + two_by_two)}", []).append((kind, kept))
    found = [(kind, g, kept) for g, jobs in enumerate(groups.values()) for kind, kept in jobs]
    whole = np.array([(kind, g) for kind, g, _ in found], dtype=np.int64)
    share = np.array([kept for _, _, kept in found], dtype=np.float64)
    name += " (rows paired two by two)" * two_by_two
    return Together(name, tuple(w for w, _ in types), tuple(n for _, n in types), whole[:, 0], whole[:, 1], share)


def _column(title: str) -> tuple[bool, str]:
    """Return whether a column is of the partner, and which of `_FIELDS` it is, or nothing."""
    text = re.sub(r"\bco[-_ ]", "co", re.sub(r"([a-z])([A-Z0-9])", r"\1 \2", title).lower())
    words = _words(re.sub(r"[([].*?[)\]]", lambda x: x[0] if _KNOWN & set(_words(x[0])) else " ", text))  # no units
    known = [field for field, names in _FIELDS.items() if names & set(words)]
    rest = set(words) - _FILLERS - _PARTNER - _FIRST - _KNOWN
    return bool(_PARTNER & set(words)), known[0] if len(known) == 1 and not rest else ""


def _places(header: list[str]) -> dict[tuple[bool, str], str]:
    """Return the title of the column of each field of the job and of its partner."""
    found: dict[tuple[bool, str], str] = {}
    for title in header:
        key = _column(title)
        if key[1]:
            if key in found:
                raise InstanceError("header", f"{title!r} says the same as {found[key]!r}")
            found[key] = title
    needs = {"model": (False, "model"), "speed alone": (False, "alone"), "speed together": (False, "together")}
    if any(partner for partner, _ in found):
        needs["partner model"] = (True, "model")
    for words, key in needs.items():
        if key not in found:
            raise InstanceError("header", f"{','.join(header)} has no column {words!r}")
    for mine in ("batch", "gpus"):
        if (True, "model") in found and ((False, mine) in found) != ((True, mine) in found):
            raise InstanceError("header", f"has {mine!r} of one of the partners only")
    if ((True, "alone") in found) != ((True, "together") in found):
        raise InstanceError("header", "has one of the partner's speeds only")
    return found


def _jobs(
    row: dict[str, str], places: dict[tuple[bool, str], str]
) -> Iterator[tuple[str, tuple[float, ...], float, str]]:
    """Yield model, numbers, share kept and group of the job of a row, and of its partner."""

    def cell(partner: bool, field: str) -> tuple[str, str]:
        title = places[partner, field]
        return row[title], title

    for partner in (False, True):
        if (partner, "model") not in places:
            continue
        word, title = cell(partner, "model")
        if not word:
            raise InstanceError(title, "is empty")
        numbers = tuple(
            as_float(*cell(partner, field), positive=True) for field in ("batch", "gpus") if (partner, field) in places
        )
        kept = float("nan")
        if (partner, "together") in places and (not partner or cell(partner, "together")[0]):
            alone, together = (as_float(*cell(partner, x), positive=True) for x in ("alone", "together"))
            kept = as_float(together / alone, f"{cell(partner, 'together')[1]} over speed alone", positive=True)
        group = "" if (True, "model") in places or (False, "group") not in places else cell(False, "group")[0]
        yield word, numbers, kept, group
