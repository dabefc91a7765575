"""Greedy: fill one stage after the other along a linear extension, next-fit, under a load that is bisected."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...run import Run, watched
from .bounds import impossible
from .evaluate import Loads
from .lattice import linear_extension
from .quotient import Quotient

_BISECTIONS = 24
_PRECISION = 0.002
"""Where the bisection ends; other methods take it from there."""


def greedy(run: Run, q: Quotient) -> None:
    """Offer the pipeline whose stages are filled up to the least load that next-fit can keep.

    Every stage takes groups in order until the next one would lift its load above the limit or does not fit
    its memory; the limit is bisected between the work bound and everything on one device.
    """
    if impossible(q) is not None:
        return
    order = linear_extension(q)
    types = [t for t in np.argsort(-q.speed, kind="stable") for _ in range(q.counts[t])]
    loads = Loads(q)
    low, high = 0.0, None
    limit = float(q.work.sum())
    for _ in range(_BISECTIONS):
        if run.stopped or (high is not None and high - low < _PRECISION * high):
            return
        try:
            stages = _fill(loads, order, types, limit, lambda: run.stopped)
        except TimeoutError:
            return
        if stages is not None:
            run.offer(q.plan(stages), "greedy")
            high = limit
        else:
            low = limit
        limit = 2 * limit if high is None else (low + high) / 2


def _fill(
    loads: Loads, order: list[int], types: list[int], limit: float, stopped: Callable[[], bool]
) -> list[tuple[int, list[int]]] | None:
    q = loads.q
    chain: list[tuple[int, list[int]]] = []
    position = 0
    for t in types:
        stage = loads.stage(t)
        # the load of a stage may fall again as it closes nets: keep the last point where it was within the limit
        best = position
        for i in watched(range(position, len(order)), stopped):
            stage.add(order[i])
            if stage.memory > q.capacity[t] or stage.compute > limit:
                break
            if stage.load <= limit:
                best = i + 1
        chain.append((t, order[position:best]))
        position = best
        if position == len(order):
            return chain
    return None
