"""A plan as a list of jobs: who goes first, by which allocator, who may hold up others, who waits for a close place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeGuard

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require_number
from gangplan.solvers.compiled.kernel import Floats, Ints, by_reference, kernel, lean

from .allocate import ALLOCATORS, CLOSEST, choose
from .arrays import ARRIVED, RUNNING, WAITING, Cluster, Jobs, State, begin_job, communication, least_cost, pass_time
from .rules import LOG_SLOWDOWN, Rule, score


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


def listing(rule: Rule, jobs: Jobs, cluster: Cluster) -> Listing:
    """Return the list that decodes to what a rule does.

    Raises:
        InstanceError: if the rule is no list: it backfills, or its score depends on the place.
    """
    if rule.discipline == "easy":
        raise InstanceError("discipline", "is 'easy', which no list is")
    if rule.vector()[LOG_SLOWDOWN] != 0:
        raise InstanceError("weights", "has log_slowdown: no list knows the place")
    n = len(jobs.submit)
    blocks = np.full(n, int(rule.discipline == "head"))
    return Listing(keys(rule, jobs, cluster), np.full(n, ALLOCATORS.index(rule.allocator)), np.full(n, np.inf), blocks)


def is_list(policy: object) -> TypeGuard[Rule]:
    """Return whether a policy is a rule that `listing` takes."""
    return isinstance(policy, Rule) and policy.discipline != "easy" and policy.vector()[LOG_SLOWDOWN] == 0


def keys(rule: Rule, jobs: Jobs, cluster: Cluster) -> FloatArray:
    """Return the scores that a rule gives jobs wherever they go, float64 (n,)."""
    key = np.empty(len(jobs.submit))
    _keys(jobs, cluster, rule.vector(), rule.noise(len(key)), key)
    return key


@lean
def decode(jobs: Jobs, cluster: Cluster, state: State, of: Listing, take: Ints, until: float) -> None:
    """Run from `state`, whose queue is in the order of the keys, to the last instant before `until`.

    At each instant the list is gone through once: whoever fits starts, whoever does not waits, and if it `blocks` so
    do those behind it. Nothing that was passed over fits once others have started.
    """
    while True:
        at, idle = 0, 0
        for node in range(len(take)):
            idle += state.free[node]
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
        arrived, known = state.count[ARRIVED], state.count[WAITING]
        soon = jobs.submit[arrived] if arrived < len(jobs.submit) else np.inf
        if state.count[RUNNING] > 0:
            soon = min(soon, state.finish[state.running[0]])
        if soon >= until:
            return
        pass_time(jobs, cluster, state)
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
    _recopy(to.count, of.count, len(of.count))
    _recopy(to.queue, of.queue, of.count[WAITING])
    _recopy(to.running, of.running, of.count[RUNNING])
    _recopy(to.free, of.free, len(of.free))
    _recopy(to.holder, of.holder, len(of.holder))
    _recopy(to.held, of.held, len(of.held))


@lean
def _copy(to: Floats, of: Floats, n: int) -> None:
    for i in range(n):
        to[i] = of[i]


@lean
def _recopy(to: Ints, of: Ints, n: int) -> None:
    for i in range(n):
        to[i] = of[i]


@kernel
def run_list(jobs: Jobs, cluster: Cluster, state: State, of: Listing, until: float) -> None:
    """Run from a state by a list, to the last instant before `until`, to the end if that is infinite."""
    now, take = by_reference(state), np.zeros_like(state.free)
    sort_in(now, of.key, 0)
    decode(by_reference(jobs), by_reference(cluster), now, by_reference(of), take, until)


@kernel
def _keys(jobs: Jobs, cluster: Cluster, weights: Floats, noise: Floats, key: Floats) -> None:
    none = np.zeros(0, dtype=np.int64)
    for job in range(len(key)):
        key[job] = score(by_reference(jobs), by_reference(cluster), job, weights, noise, none, False)


@dataclass(frozen=True, slots=True)
class Patient:
    """Start jobs in the order of log length + a log GPUs + b log least slowdown, each once it finds close GPUs.

    The least slowdown is that on an empty cluster. A job that would be more than exp(c) times as slow as that waits, as
    long as anything runs; those behind it may pass. The defaults are the best of cross-entropy search over 176
    workloads with training seeds.

    Attributes:
        gpus: a.
        slowdown: b.
        patience: c, at least 0.
    """

    gpus: float = 0.777
    slowdown: float = 0.639
    patience: float = 0.091
    allocator: ClassVar[str] = "closest"

    def __post_init__(self) -> None:
        for name in ("gpus", "slowdown"):
            require_number(abs(getattr(self, name)), name)
        require_number(self.patience, "patience")

    def finish(self, jobs: Jobs, cluster: Cluster, state: State) -> None:
        """Run from a state to the end, where all jobs have a start and a finish."""
        run_list(jobs, cluster, state, self.listing(jobs, cluster), np.inf)

    def listing(self, jobs: Jobs, cluster: Cluster) -> Listing:
        """Return the rule as a list of these jobs."""
        least = 1 + jobs.intensity * least_cost(cluster)[jobs.gpus]
        key = np.log(np.maximum(jobs.expected, 1e-9)) + self.gpus * np.log(jobs.gpus) + self.slowdown * np.log(least)
        with np.errstate(divide="ignore"):
            most = (least * np.exp(self.patience) - 1) / jobs.intensity + 1e-9
        return Listing(key, np.full(len(key), CLOSEST), most, np.zeros(len(key), dtype=np.int64))
