"""A list that says of each job when it goes, where, and how long it waits for close GPUs; run in compiled code."""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython import cclass, final, nogil

from .arrays import Arrays

if not cython.compiled:
    from gangplan.solvers.native import Float, Floats, Int, Ints

    from .allocate import choose
    from .arrays import RUNNING, WAITING, GpuRacks, Jobs, State
    from .step import begin_job, communication, pass_time, total


@final
@cclass
class Listing(Arrays):
    """What a plan says of each of n jobs.

    Attributes:
        key: who has the least goes first, float64 (n,).
        allocator: one of `ALLOCATORS`, by its place, int64 (n,).
        most: the communication cost above which a job waits, unless nothing runs, float64 (n,).
        blocks: 1 if those behind a job that waits wait too, else 0, int64 (n,).
    """

    def __init__(self, *arrays: Any) -> None:
        self.key, self.allocator, self.most, self.blocks = arrays
        self.own(("key", "allocator", "most", "blocks"), arrays, *[len(arrays[0])] * 4)


def decode(jobs: Jobs, cluster: GpuRacks, state: State, of: Listing, take: Ints, until: Float) -> None:
    """Run from `state`, whose queue is in the order of the keys, to the last instant before `until`.

    At each instant the list is gone through once: whoever fits starts, whoever does not waits, and if it `blocks` so
    do those behind it. Nothing that was passed over fits once others have started.
    """
    while True:
        at: Int = 0
        idle: Int = total(state.free)
        while at < state.count[WAITING] and idle > 0:
            job = state.queue[at]
            need = jobs.gpus[job]
            if (
                need <= idle
                and choose(of.allocator[job], need, cluster, state.free, take)
                and (communication(cluster, take) <= of.most[job] or state.count[RUNNING] == 0)
            ):
                begin_job(jobs, cluster, state, at, take)
                idle -= need
            elif of.blocks[job]:
                break
            else:
                at += 1
        known = state.count[WAITING]
        if not pass_time(jobs, cluster, state, until):
            return
        sort_in(state, of.key, known)


def sort_in(state: State, key: Floats, known: Int) -> None:
    """Put those that joined the queue behind the first `known`, which are in order, to their places."""
    for i in range(known, state.count[WAITING]):
        job = state.queue[i]
        at: Int = i
        while at > 0 and key[state.queue[at - 1]] > key[job]:
            state.queue[at] = state.queue[at - 1]
            at -= 1
        state.queue[at] = job


def run_list(jobs: Jobs, cluster: GpuRacks, state: State, of: Listing, until: Float) -> None:
    """Run from a state by a list, to the last instant before `until`, to the end if that is infinite."""
    state.require(jobs, cluster)
    if len(of.key) < len(jobs.submit):
        raise ValueError(f"the list says nothing of {len(jobs.submit) - len(of.key)} jobs")
    take: Ints = np.zeros(len(cluster.rack), np.int64)
    with nogil:
        sort_in(state, of.key, 0)
        decode(jobs, cluster, state, of, take, until)
