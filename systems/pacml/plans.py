"""What can be had with all arrivals known: a plan by beam search, and a bound by linear programming.

The search is over the times at which servers are free. A partial schedule is worth the jobs it has accepted less a
price for every server it still holds at every arrival to come. Arrival by arrival each of the best is extended by every
acceptable block and by rejection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray, require_number

from .arrivals import ArrivalCase
from .jobs import Long
from .simulate import Acceptance, RampOutcome, RampState, simulate

PRICE = 0.005
"""Of a held server at an arrival, in jobs: 8 servers over five arrivals weigh a fifth of a job."""

_SPARE = 8
"""Of so many times the width duplicates are dropped."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockPlan:
    """A block for each job.

    Attributes:
        block: int32 (n,), -1 where a job is rejected.
        accepted: how many are not, or with `by_horizon` how many of them end by the horizon.
    """

    block: IntArray
    accepted: int

    def decide(self, state: RampState) -> Acceptance | None:
        """Give the job its block, as a policy of the case that was planned."""
        block = int(self.block[state.index])
        return None if block < 0 else Acceptance(int(state.blocks.degree[block]), block)


def search(case: ArrivalCase, *, width: int = 200, by_horizon: bool = False, seed: int = 0) -> BlockPlan:
    """Plan a case.

    Args:
        width: partial schedules kept. Time and memory grow with width times b.
        by_horizon: count only jobs that end by the horizon.
    """
    require_number(width, "width", positive=True, whole=True)
    blocks, n = case.blocks, case.n_jobs
    submit, limit = case.submit, case.limit
    jct = np.array([kind.jct for kind in case.types])[:, blocks.shape]
    inside = np.zeros((blocks.n_blocks, blocks.n_servers), dtype=np.float32)  # which servers each block holds
    inside[np.repeat(np.arange(blocks.n_blocks), blocks.size), blocks.servers[blocks.servers >= 0]] = 1
    rng = np.random.default_rng(seed)
    mark = rng.integers(1, 2**40, blocks.n_servers)
    # the arrival at which each server is free
    held, done = np.zeros((1, blocks.n_servers), dtype=np.int64), np.zeros(1, dtype=np.int64)
    trail = []
    for i in range(n):
        time = jct[case.model[i]]
        ways = np.flatnonzero(time <= limit[i])
        end = submit[i] + time[ways]
        until = np.maximum(np.searchsorted(submit, end), i + 1)
        gain = (end <= case.horizon) if by_horizon else np.ones(len(ways))
        base = done - PRICE * np.maximum(0, held - (i + 1)).sum(axis=1)
        score = base[:, None] + (gain - PRICE * (until - i - 1) * blocks.size[ways])
        score[(held > i).astype(np.float32) @ inside[ways].T > 0] = -np.inf
        every = np.concatenate([base[:, None], score], axis=1)
        # ties are broken at random: of one parent's children the first blocks would crowd out all others
        row, way = _best(every + 1e-6 * rng.random(every.shape), _SPARE * width)
        block = np.concatenate([[-1], ways])[way]
        runs = way > 0
        held, done = np.maximum(held[row], i + 1), done[row]
        done[runs] += np.concatenate([[0], gain])[way[runs]].astype(np.int64)
        held[runs] = np.where(inside[block[runs]] > 0, until[way[runs] - 1][:, None], held[runs])
        # of those that hold the same servers equally long the best
        _, kept = np.unique(held @ mark, return_index=True)
        kept = np.sort(kept)[:width]
        held, done = held[kept], done[kept]
        trail.append((row[kept], block[kept]))
    best = int(np.argmax(done))
    found, at = np.full(n, -1, dtype=np.int32), best
    for i in range(n - 1, -1, -1):
        found[i], at = trail[i][1][at], trail[i][0][at]
    return BlockPlan(found, int(done[best]))


def _best(score: FloatArray, count: int) -> tuple[IntArray, IntArray]:
    """Return row and column of the highest scores, best first."""
    flat = score.ravel()
    top = np.argpartition(-flat, count - 1)[:count] if len(flat) > count else np.arange(len(flat))
    top = top[np.argsort(-flat[top])]
    row, column = np.divmod(top[np.isfinite(flat[top])], score.shape[1])
    return row, column


@dataclass(frozen=True, slots=True, eq=False)
class ClairvoyantPlan:
    """What is known of the least blocking rate of a case.

    Attributes:
        bound: no schedule blocks less.
        lp: the bound of the linear program, at most `bound`.
        outcome: a schedule on real blocks, by beam search.
    """

    bound: float
    lp: float
    outcome: RampOutcome


class _JobRuns(NamedTuple):
    """Ways to run a job, one a row: which job, at what degree, on how many servers, held until which arrival."""

    job: Long
    degree: Long
    size: Long
    until: Long


def clairvoyant(
    case: ArrivalCase, *, time_limit: float = 60.0, width: int = 200, by_horizon: bool = False
) -> ClairvoyantPlan:
    """Bound the blocking of a case from below, and look for a schedule.

    Jobs start as they arrive. Choose for each at most one degree with an acceptable completion time, that of the
    fastest shape, so that at each arrival no more servers are held than there are; accept the most. The LP first, then
    by branch and bound. Jobs that published first fit lets spill out of their block, for a completion time that no
    block gives, are not covered.

    Args:
        time_limit: seconds of branch and bound; 0 for the LP alone.
        width: of the beam search.
        by_horizon: count only jobs that end by the horizon, as the published rate does.
    """
    require_number(time_limit, "time_limit")
    outcome = simulate(case, search(case, width=width, by_horizon=by_horizon))
    runs, n = _runs(case, by_horizon), case.n_jobs
    if not len(runs.job):
        return ClairvoyantPlan(1.0, 1.0, outcome)
    lp = bound = 1 - np.floor(_most(case, runs, None) + 1e-6) / n
    if time_limit:
        bound = max(lp, 1 - np.floor(_most(case, runs, time_limit) + 1e-6) / n)
    return ClairvoyantPlan(float(bound), float(lp), outcome)


def _runs(case: ArrivalCase, by_horizon: bool) -> _JobRuns:
    blocks, limit = case.blocks, case.limit
    of_degree = np.array([degree for degree, _ in blocks.shapes])
    fastest = np.full((len(case.types), len(blocks.degrees)), np.inf)
    for k, kind in enumerate(case.types):
        np.minimum.at(fastest[k], of_degree, kind.jct)
    jct = fastest[case.model]
    end = case.submit[:, None] + jct
    good = jct <= limit[:, None]
    if by_horizon:
        good &= end <= case.horizon
    job, degree = np.nonzero(good)
    until = np.searchsorted(case.submit, end[job, degree])
    return _JobRuns(job, degree, np.array(blocks.degrees)[degree], np.maximum(until, job + 1))


def _most(case: ArrivalCase, runs: _JobRuns, time_limit: float | None) -> float:
    """Return how many can be accepted at most; by the LP if there is no limit."""
    from gangplan.solvers.highs import loaded

    n, m, servers = case.n_jobs, len(runs.job), float(case.blocks.n_servers)
    whole = [time_limit is not None] * m
    once: list[dict[int, float]] = [{} for _ in range(n)]
    held: list[dict[int, float]] = [{} for _ in range(n)]
    for i, (job, size, until) in enumerate(zip(*(x.tolist() for x in (runs.job, runs.size, runs.until)), strict=True)):
        once[job][i] = 1.0
        for later in range(job, until):
            held[later][i] = float(size)
    rows = [(None, most, terms) for most, part in ((1.0, once), (servers, held)) for terms in part]
    options = {"mip_rel_gap": 0.0} | ({} if time_limit is None else {"time_limit": time_limit})
    solver = loaded([-1.0] * m, [0.0] * m, [1.0] * m, rows, whole, **options)
    solver.run()
    info = solver.getInfo()
    return -float(info.objective_function_value if time_limit is None else info.mip_dual_bound)
