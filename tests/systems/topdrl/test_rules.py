"""A list of jobs decodes to what its rule does, and waits where it says so."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.simulator.gangs.allocate import ALLOCATORS, allocate
from gangplan.simulator.gangs.arrays import begin, cluster_of, jobs_of
from gangplan.simulator.gangs.listing import Listing, run_list
from gangplan.simulator.gangs.mixes import SMALL
from gangplan.systems.topdrl.rules import SCORES, TopdrlPatient, rule
from gangplan.systems.topdrl.simulate import simulate


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize("discipline", ["head", "overtake"])
@pytest.mark.parametrize("name", sorted({*SCORES} - {"linear"}))
def test_a_list_does_what_its_rule_does(name: str, discipline: str, allocator: str) -> None:
    """Going through a sorted queue once starts the same jobs on the same GPUs as looking for the least score."""
    jobs, cluster = jobs_of(SMALL.draw(5), Proximity()), cluster_of(Fleet.regular(2, 4, 4), Proximity())
    by_rule, by_list, of = begin(jobs, cluster), begin(jobs, cluster), rule(name, discipline, allocator)
    of.finish(jobs, cluster, by_rule)
    plan = of.listing(jobs, cluster)
    assert plan is not None
    run_list(jobs, cluster, by_list, plan, np.inf)
    assert by_list.start.tolist() == by_rule.start.tolist()
    assert by_list.held.tolist() == by_rule.held.tolist()


@pytest.mark.parametrize("allocator", range(len(ALLOCATORS)))
def test_no_gpu_is_sought_where_none_is_idle(allocator: int) -> None:
    """A job of no GPU does not fit on a cluster without an idle one: there is no node to begin at."""
    take = np.zeros(8, np.int64)
    assert not allocate(allocator, 0, cluster_of(Fleet.regular(2, 4, 4), Proximity()), np.zeros(8, np.int64), take)
    assert not take.any()


def test_a_job_may_wait_for_a_close_place() -> None:
    """A gang of four that may not be split waits for the node of the first job, not for the two halves beside it."""
    jobs = Workload(("a", "b", "c"), np.zeros(3), np.array([2, 2, 4]), np.array([5.0, 9.0, 10.0]))
    of, cluster = jobs_of(jobs, Proximity()), cluster_of(Fleet.regular(1, 2, 4), Proximity())
    # a begins in the middle of the rack, so that no node is left whole
    by = np.array([ALLOCATORS.index(name) for name in ("centre", "nearest", "closest")])
    plan = Listing(np.arange(3.0), by, np.full(3, np.inf), np.zeros(3, np.int64))
    starts = {}
    for most in (np.inf, 0.08):
        plan.most[2] = most
        state = begin(of, cluster)
        run_list(of, cluster, state, plan, np.inf)
        starts[most] = state.start[2]
    assert starts[np.inf] == 0
    assert starts[0.08] == pytest.approx(5 * (1 + 1 / 40))


def test_what_is_no_list() -> None:
    """Backfilling and scores that depend on the place make no list."""
    jobs, cluster = jobs_of(SMALL.draw(5), Proximity()), cluster_of(Fleet.regular(2, 4, 4), Proximity())
    assert rule("sjf", "easy").listing(jobs, cluster) is rule("linear").listing(jobs, cluster) is None


def _jobs(gpus: list[int], duration: list[float], submit: list[float]) -> Workload:
    return Workload(tuple(map(str, range(len(gpus)))), np.array(submit), np.array(gpus), np.array(duration))


@pytest.mark.parametrize(("patience", "start"), [(0.091, 105.0), (1.0, 1.0)])
def test_waits_for_close_gpus_or_not(patience: float, start: float) -> None:
    """One GPU is idle on each of two nodes: 1.25 / 1.025 as slow as on one is more than e^.091, less than e."""
    outcome = simulate(
        _jobs([3, 3, 2], [100, 100, 10], [0, 0, 1]), Fleet.regular(1, 2, 4), TopdrlPatient(patience=patience)
    )
    assert outcome.start[2] == pytest.approx(start)


def test_refuses_negative_patience() -> None:
    """Nobody is faster than at best, so patience is not negative."""
    with pytest.raises(InstanceError, match="patience"):
        TopdrlPatient(patience=-0.1)
