"""The front of the round-based simulator: arguments checked, the policy asked, rounds run, leases checked."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require_choice, require_number

from ..check import assert_sound
from .jobs import RoundJobs, RoundsCluster
from .loop import Rounds
from .outcome import RoundOutcome, check_rounds, outcome_of
from .policies import ROUND_POLICIES, RoundsPolicy


def simulate_rounds(
    jobs: RoundJobs,
    cluster: RoundsCluster,
    policy: str | Callable[[RoundJobs, RoundsCluster, int], RoundsPolicy] = "max_min_fairness_perf",
    *,
    length: float = 360.0,
    gap: float = 1920.0,
    overhead: float = 0.0,
    seed: int = 0,
) -> RoundOutcome:
    """Run `jobs` in rounds, as Gavel does (Narayanan et al., OSDI 2020, section 5); `docs/rounds.md` has the rules.

    Args:
        policy: a name of `ROUND_POLICIES`, or what makes a policy: what share of time each job is to have on each type.
        length: of a round in seconds; a round ends earlier if all its jobs are done with their whole steps.
        gap: least seconds between two allocations, except for the first.
        overhead: seconds that a job loses at the start of each lease that does not extend one.
        seed: of what is random: the order of types each round, types that `fifo` draws.
    """
    if isinstance(policy, str):
        require_choice(policy, "policy", ROUND_POLICIES)
    require_number(length, "length", positive=True)
    require_number(gap, "gap")
    require_number(overhead, "overhead")
    require_number(seed, "seed", whole=True)
    if overhead >= length:
        raise InstanceError("overhead", f"{overhead!r} is not below the length of a round, {length!r}")
    jobs = _ready(jobs, cluster, length - overhead)
    decide = (ROUND_POLICIES[policy] if isinstance(policy, str) else policy)(jobs, cluster, seed)
    chunk = min(1024, max(16, 200_000 // cluster.gpus))
    s = Rounds(jobs, cluster, length, gap, overhead, decide.strict, chunk)
    generator = random.Random(seed + 5)  # Gavel's generator: its figures come out
    allocations, leases = _run(s, decide, generator, chunk, len(cluster.types))
    begins, lease, span, held = (np.concatenate(part) for part in zip(*leases, strict=True))
    span[:, :2], begins = _absolute(span[:, :2], jobs), _absolute(begins, jobs)
    outcome = outcome_of(jobs, cluster, begins, allocations, overhead, (lease, span, held))
    assert_sound(check_rounds(outcome), "impossible leases")
    return outcome


def _absolute(times: FloatArray, jobs: RoundJobs) -> FloatArray:
    there = jobs.submit - jobs.submit[0]
    at = np.minimum(np.searchsorted(there, times), jobs.n_jobs - 1)
    return np.where(there[at] == times, jobs.submit[at], jobs.submit[0] + times)


def _ready(jobs: RoundJobs, cluster: RoundsCluster, time: float) -> RoundJobs:
    """Sort by arrival, and take away speeds where a job does not fit or makes no step within a round."""
    if jobs.speed.shape[1] != len(cluster.types):
        raise InstanceError("speed", f"has {jobs.speed.shape[1]} columns for {len(cluster.types)} types")
    runs = (jobs.speed * time >= 1) & (jobs.gpus[:, None] <= np.array(cluster.count))
    if not runs.any(axis=1).all():
        i = int(np.argmin(runs.any(axis=1)))
        need = f"{jobs.gpus[i]} GPUs of a type and {jobs.speed[i].max():.6g} steps a second"
        raise InstanceError(f"job {jobs.names[i]}", f"has no place: {need}")
    order = np.argsort(jobs.submit, kind="stable")
    return replace(
        jobs,
        names=tuple(jobs.names[i] for i in order),
        speed=np.where(runs, jobs.speed, 0.0)[order],
        **{field: getattr(jobs, field)[order] for field in ("gpus", "steps", "weight", "submit")},
    )


def _run(
    s: Rounds, decide: RoundsPolicy, generator: random.Random, chunk: int, types: int
) -> tuple[int, list[tuple[FloatArray, NDArray[np.int64], FloatArray, NDArray[np.int64]]]]:
    orders = np.tile(np.arange(types), (chunk, 1))
    allocations, leases, fresh = 0, [], True
    while True:
        if fresh and not decide.in_order:
            orders = np.array([_shuffled(generator, types) for _ in range(chunk)])
        why = s.advance(orders)
        fresh = why != "allocate"
        if why == "stuck":
            raise RuntimeError("no job runs and none is to come: the policy gives no share to those that are left")
        if why == "allocate":
            _allocate(s, decide)
            allocations += 1
            continue
        leases.append(s.written())
        if why == "done":
            return allocations, leases


def _shuffled(types: random.Random, k: int) -> list[int]:
    order = list(range(k))
    types.shuffle(order)
    return order


def _allocate(s: Rounds, decide: RoundsPolicy) -> None:
    """Settle what jobs are owed under the shares so far, and ask the policy for new ones."""
    share, owed, received, priority = map(np.asarray, (s.share, s.deficit, s.received, s.priority))
    ranking, left, submit, speed = map(np.asarray, (s.ranking, s.left, s.submit, s.speed))
    active, half = np.sort(ranking[0, : s.active]), s.length / 2
    owed[active] += share[active] * (s.now - s.reset) - (received[active] - half)
    received[active] = half
    share[active] = decide.shares(active, left[active], s.now - submit[active])
    np.asarray(s.known)[active] = True
    s.reset, s.stale = s.now, False
    priority[active] = np.where(speed[active] > 0, share[active], 0.0) / half
    for row, key in zip(ranking, zip(share.T, owed.T, priority.T, strict=True), strict=True):
        row[: len(active)] = active[np.lexsort([-x[active] for x in key])]
