"""What the rows of an evaluation come to: means with their intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from gangplan.simulator.metrics.compare import interval

Row = dict[str, Any]
_NAMES = frozenset({"family", "seed", "size"})
"""Columns that say which instance it is."""


def means(rows: Sequence[Row]) -> list[Row]:
    """Return a row for each combination of the text columns: how many ``rows``, and for each number a pair.

    The pair is the mean over the rows that have one and half the width of its 95% interval (Student's t), None for a
    single value. Columns that name instances are left out.
    """
    columns = list(dict.fromkeys(key for row in rows for key in row))
    texts = [c for c in columns if c not in _NAMES and any(isinstance(row.get(c), str) for row in rows)]
    numbers = [c for c in columns if c not in _NAMES and any(_is_number(row.get(c)) for row in rows)]
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row.get(c) for c in texts)].append(row)
    found = []
    for key, members in groups.items():
        about: Row = dict(zip(texts, key, strict=True)) | {"rows": len(members)}
        for c in numbers:
            values = [float(row[c]) for row in members if _is_number(row.get(c))]
            about[c] = interval(np.array(values)) if values else None
        found.append(about)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
