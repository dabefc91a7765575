"""Places and their nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gangplan.instances.arrays import IntArray

if TYPE_CHECKING:
    from .build import Decision


def pairs(decision: Decision) -> tuple[IntArray, IntArray]:
    """Return pairs of a place and one of its nodes."""
    place = np.repeat(np.arange(len(decision.rows)), [len(rows) for rows in decision.rows]).astype(np.int32)
    return place, np.array([node for rows in decision.rows for node in rows], dtype=np.int32)
