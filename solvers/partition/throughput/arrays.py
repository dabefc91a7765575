"""A quotient as compiled code sees it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.instances.verify import TOLERANCE

from ...compiled.kernel import Bools, Floats, Floats2, Ints
from .. import ragged
from .quotient import Quotient

Stages = list[tuple[int, Ints]]
"""In order: device type, groups."""


class PipelineArrays(NamedTuple):
    """What does not change while plans do; G groups, E nets, T types of devices.

    Attributes:
        net, first: the nets of group g are `net[first[g]:first[g + 1]]`.
        before, first_before: its predecessors, in the same way; none if the variant is ``free``.
        after, first_after: its successors.
        size, cost: pins and seconds of each net.
        time: float64 (T, G); memory, work: float64 (G,).
        room: bytes of a device of each type, float64 (T,); host: bool (T,); speed: float64 (T,).
        counts: devices of each type, int64 (T,).
        stride: how far apart in tables the states are of which one has a device more, int64 (T + 1,).
    """

    net: Ints
    first: Ints
    before: Ints
    first_before: Ints
    after: Ints
    first_after: Ints
    size: Ints
    cost: Floats
    time: Floats2
    memory: Floats
    work: Floats
    room: Floats
    host: Bools
    speed: Floats
    counts: Ints
    stride: Ints


def arrays_of(q: Quotient) -> PipelineArrays:
    """Return the arrays of a quotient."""
    size = np.array([len(pins) for pins, _ in q.nets], dtype=np.int64)
    pins = np.array([g for pins, _ in q.nets for g in pins], dtype=np.int64)
    edges = np.array(() if q.problem.variant == "free" else q.edges, dtype=np.int64).reshape(-1, 2)
    room, counts = q.capacity * (1 + TOLERANCE / 2), q.counts.astype(np.int64)
    return PipelineArrays(
        *ragged(pins, np.repeat(np.arange(len(size)), size), q.n_groups),
        *ragged(edges[:, 1], edges[:, 0], q.n_groups), *ragged(edges[:, 0], edges[:, 1], q.n_groups),
        size, np.array([cost for _, cost in q.nets], dtype=np.float64),
        # copies: compiled code is compiled again for arrays that are read-only
        np.array(q.time, order="C"), np.array(q.memory), np.array(q.work),
        room if q.memory_binds else np.full(len(room), np.inf), np.array(q.host), np.array(q.speed),
        counts, np.concatenate([[1], np.cumprod(counts + 1)]),
    )  # fmt: skip
