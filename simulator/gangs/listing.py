"""A list that says of each job when it goes, where, and how long it waits for close GPUs; run in compiled code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gangplan.solvers.compiled.kernel import Floats, Ints, by_reference, kernel, lean

from .allocate import choose
from .arrays import RUNNING, WAITING, Cluster, Jobs, State
from .step import begin_job, communication, pass_time, total


class Listing(NamedTuple):
    """What a plan says of each of n jobs.

    Attributes:
        key: who has the least goes first, float64 (n,).
        allocator: one of `ALLOCATORS`, by its place, int64 (n,).
        most: the communication cost above which a job waits, unless nothing runs, float64 (n,).
        blocks: 1 if those behind a job that waits wait too, else 0, int64 (n,).
    """

    key: Floats
    allocator: Ints
    most: Floats
    blocks: Ints


@lean
def decode(jobs: Jobs, cluster: Cluster, state: State, of: Listing, take: Ints, until: float) -> None:
    """Run from `state`, whose queue is in the order of the keys, to the last instant before `until`.

    At each instant the list is gone through once: whoever fits starts, whoever does not waits, and if it `blocks` so
    do those behind it. Nothing that was passed over fits once others have started.
    """
    while True:
        at, idle = 0, total(state.free)
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


@lean
def sort_in(state: State, key: Floats, known: int) -> None:
    """Put those that joined the queue behind the first `known`, which are in order, to their places."""
    for i in range(known, state.count[WAITING]):
        job, at = state.queue[i], i
        while at > 0 and key[state.queue[at - 1]] > key[job]:
            state.queue[at] = state.queue[at - 1]
            at -= 1
        state.queue[at] = job


@lean
def restore(to: State, of: State) -> None:
    """Copy a state over another one."""
    n = len(of.start)
    _copy(to.clock, of.clock, 1)
    _copy(to.start, of.start, n)
    _copy(to.finish, of.finish, n)
    _copy(to.urgency, of.urgency, n)
    _copy(to.cost, of.cost, n)
    _copy(to.count, of.count, len(of.count))
    _copy(to.queue, of.queue, of.count[WAITING])
    _copy(to.running, of.running, of.count[RUNNING])
    _copy(to.free, of.free, len(of.free))
    _copy(to.holder, of.holder, len(of.holder))
    _copy(to.held, of.held, len(of.held))


@lean
def _copy(to: Any, of: Any, n: int) -> None:
    for i in range(n):
        to[i] = of[i]


@kernel
def run_list(jobs: Jobs, cluster: Cluster, state: State, of: Listing, until: float) -> None:
    """Run from a state by a list, to the last instant before `until`, to the end if that is infinite."""
    now, take = by_reference(state), np.zeros_like(state.free)
    sort_in(now, of.key, 0)
    decode(by_reference(jobs), by_reference(cluster), now, by_reference(of), take, until)
