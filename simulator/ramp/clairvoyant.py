"""What no policy passes that keeps each job in one block: all arrivals known, servers only counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gangplan.instances.arrays import require_number

from .arrivals import Case
from .beam import search
from .blocks import Long
from .simulate import Outcome, simulate


@dataclass(frozen=True, slots=True, eq=False)
class Clairvoyant:
    """What is known of the least blocking rate of a case.

    Attributes:
        bound: no schedule blocks less.
        lp: the bound of the linear program, at most `bound`.
        outcome: a schedule on real blocks, by beam search.
    """

    bound: float
    lp: float
    outcome: Outcome


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Ways to run a job, one a row: which job, at what degree, on how many servers, held until which arrival."""

    job: Long
    degree: Long
    size: Long
    until: Long


def clairvoyant(
    case: Case, *, time_limit: float = 60.0, width: int = 200, by_horizon: bool = False, seed: int = 0
) -> Clairvoyant:
    """Bound the blocking of a case from below, and look for a schedule.

    Jobs start as they arrive. Choose for each at most one degree with an acceptable completion time, that of the
    fastest shape, so that at each arrival no more servers are held than there are; accept the most. The LP first, then
    by branch and bound. Jobs that published first fit lets spill out of their block, for a completion time that no
    block gives, are not covered.

    Args:
        case: n jobs.
        time_limit: seconds of branch and bound; 0 for the LP alone.
        width: of the beam search.
        by_horizon: count only jobs that end by the horizon, as the published rate does.
        seed: of the solver.
    """
    require_number(time_limit, "time_limit")
    outcome = simulate(case, search(case, width=width, by_horizon=by_horizon))
    runs, n = _runs(case, by_horizon), case.n_jobs
    if not len(runs.job):
        return Clairvoyant(1.0, 1.0, outcome)
    lp = bound = 1 - np.floor(_most(case, runs, None, seed) + 1e-6) / n
    if time_limit:
        bound = max(lp, 1 - np.floor(_most(case, runs, time_limit, seed) + 1e-6) / n)
    return Clairvoyant(float(bound), float(lp), outcome)


def _runs(case: Case, by_horizon: bool) -> _Runs:
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
    return _Runs(job, degree, np.array(blocks.degrees)[degree], np.maximum(until, job + 1))


def _most(case: Case, runs: _Runs, time_limit: float | None, seed: int) -> float:
    """Return how many can be accepted at most; by the LP if there is no limit."""
    import highspy

    n, m = case.n_jobs, len(runs.job)
    length = runs.until - runs.job
    column = np.repeat(np.arange(m), length)
    offset = np.arange(len(column)) - np.repeat(np.cumsum(length) - length, length)
    rows = np.concatenate([np.arange(m) * 0 + runs.job, n + runs.job[column] + offset])
    columns = np.concatenate([np.arange(m), column])
    values = np.concatenate([np.ones(m), runs.size[column].astype(np.float64)])
    order = np.lexsort((rows, columns))
    model: Any = highspy.HighsLp()
    model.num_col_, model.num_row_ = m, 2 * n
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_, model.col_lower_, model.col_upper_ = np.ones(m), np.zeros(m), np.ones(m)
    model.row_lower_ = np.full(2 * n, -highspy.kHighsInf)
    model.row_upper_ = np.repeat([1.0, float(case.blocks.n_servers)], n)
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.searchsorted(columns[order], np.arange(m + 1)).astype(np.int32)
    model.a_matrix_.index_ = rows[order].astype(np.int32)
    model.a_matrix_.value_ = values[order]
    if time_limit is not None:
        model.integrality_ = [highspy.HighsVarType.kInteger] * m
    solver: Any = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("random_seed", seed), ("mip_rel_gap", 0.0)):
        solver.setOptionValue(option, value)
    if time_limit is not None:
        solver.setOptionValue("time_limit", float(time_limit))
    solver.passModel(model)
    solver.run()
    info = solver.getInfo()
    return float(info.objective_function_value if time_limit is None else info.mip_dual_bound)
