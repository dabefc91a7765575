"""Where compiled code makes a schedule, and keeps what it needs on the way."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....compiled.kernel import Bools, Floats, Floats2, Ints
from .arrays import Arrays


class Workroom(NamedTuple):
    """Where a schedule is made; n ops, k devices.

    Attributes:
        device: of each op, int64 (n,).
        order: in which ops are scheduled, int64 (n,); nearly that of the schedule before.
        topological: ops in a topological order, int64 (n,).
        tail: longest way from the start of each op to the end, float64 (n,).
        start, finish: of each op, float64 (n,).
        low, high, busy: see `timetable`; float64 (k, n) twice, int64 (k,).
        key, heap: what ops are sorted by, float64 (n,), and how far that is, int64 (n,).
        line: ops by their starts, see `critical`, int64 (n,).
        found, holds: ops that hold up the end, int64 (n,), and whether one does, bool (n,).
        behind, last: what the device of each op did just before it, int64 (n,), and each device last, int64 (k,).
        late, other: ops that are put off, and the order with that, see `reorder`, int64 (n,).
    """

    device: Ints
    order: Ints
    topological: Ints
    tail: Floats
    start: Floats
    finish: Floats
    low: Floats2
    high: Floats2
    busy: Ints
    key: Floats
    heap: Ints
    line: Ints
    found: Ints
    holds: Bools
    behind: Ints
    last: Ints
    late: Ints
    other: Ints


def workroom(a: Arrays) -> Workroom:
    """Return an empty workroom for a problem."""
    n, k = len(a.group), len(a.room)
    order = np.argsort(a.topological)

    def ints(size: int) -> Ints:
        return np.zeros(size, np.int64)

    return Workroom(
        ints(n), order, order.copy(), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros((k, n)), np.zeros((k, n)),
        ints(k), np.zeros(n), ints(n), ints(n), ints(n), np.zeros(n, np.bool_), ints(n), ints(k), ints(n), ints(n),
    )  # fmt: skip
