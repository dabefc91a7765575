"""Plans of sampled futures count what the simulator's search counts, and know what a job costs those to come."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.systems.pacml.arrivals import Case
from gangplan.systems.pacml.learned.features import MOST, find, scratch_of
from gangplan.systems.pacml.learned.hindsight import FUTURES, HORIZON, Future, hindsight, plans
from gangplan.systems.pacml.learned.scenarios import Scenario
from gangplan.systems.pacml.plans import search


@pytest.mark.parametrize("seed", [0, 1])
def test_counts_what_the_search_counts(scenario: Scenario, seed: int) -> None:
    """Of one known future the best candidate is worth what a wide beam of the simulator accepts, within one job."""
    tables, times = scenario.tables, scenario.times
    kind, gap, end = seed, times.sequential[seed] / 24, np.full(32, -1.0)
    place, out = scratch_of(tables), np.zeros(MOST)
    limit = 0.7 * times.sequential[kind]
    k = find(end, 0.0, gap, tables, times, kind, limit, place)
    # all futures are the same where there is but one job to draw
    future = Future(np.full(1, kind), np.full(1, 0.7))
    hindsight(k, end, 0.0, gap, kind, future, tables, times, place, plans(tables), FUTURES, out)
    submit = gap * np.arange(HORIZON + 1)
    case = Case(scenario.types, submit, np.full(HORIZON + 1, kind), np.full(HORIZON + 1, 0.7), float(submit[-1]))
    known = search(case, width=200).accepted
    assert k > 1 and known - 1 <= out[:k].max() <= HORIZON + 1
    assert abs(out[:k].max() - known) <= 1


def test_knows_what_a_job_costs(scenario: Scenario) -> None:
    """One server is free: a job that holds it for good costs all short jobs to come."""
    tables = scenario.tables
    alone = tables.degree[np.unique(tables.shape, return_index=True)[1]] == 0
    jct = np.full((2, len(tables.fast)), np.inf)
    jct[:, alone] = [[1000.0], [0.5]]
    times = scenario.times._replace(jct=jct, sequential=np.array([1000.0, 0.5]))
    end = np.full(32, 1e6)
    end[7] = -1.0
    place, out = scratch_of(tables), np.zeros(MOST)
    for accept, after in ((1.0, HORIZON), (0.01, 0)):  # whether those to come can be done in time at all
        k = find(end, 0.0, 1.0, tables, times, 0, 1000.0, place)
        future = Future(np.ones(9, np.int64), np.full(9, accept))
        hindsight(k, end, 0.0, 1.0, 0, future, tables, times, place, plans(tables), FUTURES, out)
        assert k == 2 and out[:2] == pytest.approx([after, 1.0]) and FUTURES > 1
