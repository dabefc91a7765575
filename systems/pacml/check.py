"""The check of an outcome: from who held which servers, whoever decided it."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from gangplan.instances.arrays import BoolArray, IntArray
from gangplan.instances.ramp import coordinates, span
from gangplan.instances.schedule import ramp_blocks
from gangplan.instances.verify.verdict import time_slack
from gangplan.simulator.check import check as check_schedule

from .jobs import JobType, first_fit, inside
from .simulate import RampOutcome
from .step import OP_SECONDS, training_step

_MOST = 5
"""Faults of a kind that are told."""


class Checker:
    """Checks outcomes; one that has checked many knows most step times and placements already."""

    def __init__(self) -> None:
        self._seconds: dict[Any, float | None] = {}
        self._steps: dict[Any, float] = {}
        self._held: dict[Any, bytes | None] = {}
        # what memos are of stays alive, so that no two have the same id
        self._types: dict[int, JobType] = {}

    def check(self, outcome: RampOutcome) -> list[str]:
        """Return what is wrong with an outcome, in words; nothing if it is right.

        A job starts as it arrives, on servers that nobody else holds until it ends: a block of its degree, or what
        published first fit finds among the servers then free. It takes as long as a training step on them says, and
        no longer than its user accepts. The rates are those that the rows say.
        """
        words = check_schedule(outcome) or _reasons(outcome)
        return words or [*_times(outcome), *self._places(outcome)]

    def _places(self, o: RampOutcome) -> list[str]:
        words, order = list[str](), np.argsort(o.row_job, kind="stable")
        cut = np.searchsorted(o.row_job[order], np.arange(o.case.n_jobs + 1))
        ends = np.full(o.case.blocks.n_servers, -np.inf)
        for i in np.flatnonzero(o.admitted).tolist():
            servers = np.sort(o.row_node[order[cut[i] : cut[i + 1]]])
            kind = o.case.types[o.case.model[i]]
            self._types[id(kind)] = kind
            free = ends <= o.start[i]
            ends[servers] = o.finish[i]
            seconds, wrong = self._place(kind, int(o.degree[i]), int(o.block[i]), servers, free)
            if wrong:
                words.append(f"job {i} {wrong}")
            elif seconds is None or abs(seconds - (o.finish[i] - o.start[i])) > time_slack(seconds, o.finish[i]):
                words.append(f"job {i} takes {o.finish[i] - o.start[i]!r}, on its servers it would take {seconds!r}")
        return words[:_MOST]

    def _place(
        self, kind: JobType, degree: int, block: int, servers: IntArray, free: BoolArray
    ) -> tuple[float | None, str]:
        """Return the completion time on these servers, or what is wrong with them."""
        held, wrong = servers.tobytes(), ""
        if block >= 0 and held not in _known(kind.blocks.topology, kind.blocks.degrees[degree]):
            wrong = f"holds servers {servers.tolist()}, which are no block of its degree"
        if block < 0 and held != self._first_fit(kind, degree, free):
            wrong = f"holds servers {servers.tolist()}, which first fit would not give it"
        return (None if wrong else self._inside(kind, degree, servers)), wrong

    def _first_fit(self, kind: JobType, degree: int, free: BoolArray) -> bytes | None:
        """Return the servers of first fit; what it finds depends on the first free block of each size only."""
        topology = kind.blocks.topology
        found = []
        for k in kind.sizes[degree]:
            fits = free[ramp_blocks(topology, k)].all(axis=1)
            found.append(int(np.argmax(fits)) if fits.any() else -1)
        key = (id(kind), degree, free.tobytes() if kind.tight[degree] else tuple(found))
        if key not in self._held:
            placed = first_fit(kind.splits[degree], topology, free=free)
            self._held[key] = None if placed is None else np.unique(placed).tobytes()
        return self._held[key]

    def _inside(self, kind: JobType, degree: int, servers: IntArray) -> float | None:
        """Return the completion time on these servers alone; the same wherever in the cluster they are."""
        topology, job = kind.blocks.topology, kind.splits[degree]
        axes = coordinates(topology, servers)
        key = (id(kind), degree, *(np.asarray(axis - axis.min()).tobytes() for axis in axes))
        if key not in self._seconds:
            placed = inside(job, topology, servers)
            self._seconds[key] = None if placed is None else self._step(kind, degree, placed)
        return self._seconds[key]

    def _step(self, kind: JobType, degree: int, placed: IntArray) -> float:
        """Return the completion time, which depends on what each op's servers span and on which sub-ops share one."""
        topology, job = kind.blocks.topology, kind.splits[degree]
        homes = {placed[a:b].tobytes(): placed[a:b] for a, b in pairwise(job.first.tolist())}
        label: dict[int, int] = {}
        shared = tuple(label.setdefault(server, len(label)) for server in placed.tolist())
        key = (id(kind), degree, tuple(span(topology, home) for home in homes.values()), shared)
        if key not in self._steps:
            step = training_step(job, placed, topology, units=kind.units)
            self._steps[key] = kind.steps * step.seconds
        return self._steps[key]


def check(outcome: RampOutcome) -> list[str]:
    """Return what is wrong with an outcome, in words; nothing if it is right. See `Checker.check`."""
    return Checker().check(outcome)


@cache
def _known(topology: Any, degree: int) -> set[bytes]:
    return {row.tobytes() for row in ramp_blocks(topology, degree)}


def _named(bad: BoolArray, problem: str) -> list[str]:
    return [f"job {i} {problem}" for i in np.flatnonzero(bad)[:_MOST].tolist()]


def _reasons(o: RampOutcome) -> list[str]:
    return [
        *_named(o.admitted != (o.reason == 0), "is blocked without a reason, or has one though it ran"),
        *_named(o.admitted != (o.degree >= 0), "has a degree though it is blocked, or none though it ran"),
        *_named(o.degree >= len(o.case.blocks.degrees), "has a degree there is not"),
    ]


def _times(o: RampOutcome) -> list[str]:
    ran = o.admitted
    scale = OP_SECONDS[o.case.units]
    # alone on a server a job takes the sum of its ops
    alone = np.array([kind.steps * scale * float(kind.graph.time[0].sum()) for kind in o.case.types])
    limit = o.case.fraction * alone[o.case.model]
    limit = limit + time_slack(limit, np.where(ran, o.finish, 0.0))
    return [
        *_named(ran & (o.start != o.case.submit), "does not start when it arrives"),
        *_named(ran & ~(o.finish <= o.start + limit), "takes longer than its user accepts"),
    ]
