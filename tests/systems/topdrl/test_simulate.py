"""TopDRL's cluster: what a schedule costs, by hand, and what the check refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.simulator.gangs.allocate import ALLOCATORS
from gangplan.simulator.gangs.arrays import begin, cluster_of, jobs_of
from gangplan.simulator.gangs.mixes import SMALL
from gangplan.systems.topdrl.rules import DISCIPLINES, SCORES, rule
from gangplan.systems.topdrl.simulate import check_rates, outcome_of, simulate


def _jobs(gpus: list[int], duration: list[float], submit: list[float]) -> Workload:
    return Workload(tuple(map(str, range(len(gpus)))), np.array(submit), np.array(gpus), np.array(duration))


def test_rates_by_hand() -> None:
    """Eight GPUs on two nodes of a rack are joined by six links in nodes and one in the rack; one GPU pays nothing."""
    outcome = simulate(_jobs([8, 1], [10, 10], [0, 0]), Fleet.regular(2, 4, 4), rule("fcfs"))
    assert outcome.finish.tolist() == pytest.approx([10 * (1 + 6 / 40 + 1 / 4), 10])


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_every_rule_makes_a_right_schedule(discipline: str, allocator: str) -> None:
    """Schedules of all rules pass the check, which `simulate` makes, and run all jobs."""
    for name in SCORES:
        outcome = simulate(SMALL.draw(3), Fleet.regular(2, 4, 4), rule(name, discipline, allocator))
        assert np.isfinite(outcome.finish).all()


def test_head_blocks_and_easy_does_not_delay() -> None:
    """A job of all GPUs blocks those behind it; EASY lets one pass that is done before it can start."""
    jobs = _jobs([4, 8, 4, 4], [10, 10, 5, 50], [0, 1, 2, 2])
    fleet, free = Fleet.regular(1, 2, 4), Proximity(0, 0, 0)
    starts = {d: simulate(jobs, fleet, rule("fcfs", d), free).start.tolist() for d in DISCIPLINES}
    assert starts["head"] == [0, 10, 20, 20]
    assert starts["overtake"] == [0, 57, 2, 7]
    assert starts["easy"] == [0, 10, 2, 20]


def test_easy_goes_by_what_is_told() -> None:
    """A job passes the first one in the queue if it is told to end before those that run, whatever they take."""
    jobs = _jobs([4, 8, 4], [10, 10, 15], [0, 1, 2])
    fleet, free = Fleet.regular(1, 2, 4), Proximity(0, 0, 0)
    told = {"true": None, "long": np.array([20.0, 10, 15]), "short": np.array([10.0, 10, 5])}
    starts = {k: simulate(jobs, fleet, rule("fcfs", "easy"), free, expected=x).start.tolist() for k, x in told.items()}
    assert starts == {"true": [0, 10, 20], "long": [0, 17, 2], "short": [0, 17, 2]}


def test_check_refuses_a_wrong_rate() -> None:
    """A schedule of other links than those of the cluster is refused."""
    fleet = Fleet.regular(2, 4, 4)
    outcome = simulate(SMALL.draw(3), fleet, rule("sjf"))
    assert not check_rates(outcome, fleet, Proximity())
    assert check_rates(outcome, fleet, replace(Proximity(), rack=0.3))


def test_check_refuses_a_gpu_that_is_not_there() -> None:
    """A GPU beyond the last one is told as a fault of the schedule, before rates are worked out from it."""
    fleet, links, work = Fleet.regular(2, 4, 4), Proximity(), SMALL.draw(3)
    jobs, cluster = jobs_of(work, links), cluster_of(fleet, links)
    state = begin(jobs, cluster)
    rule("sjf").finish(jobs, cluster, state)
    state.held[0] = fleet.n_gpus
    with pytest.raises(AssertionError, match="beyond the 8"):
        outcome_of(work, fleet, links, jobs, cluster, state)


def test_bad_input() -> None:
    """A job larger than the cluster, and links that are cheaper farther away, are refused."""
    with pytest.raises(InstanceError, match="9 are more than the 8"):
        simulate(_jobs([9], [1], [0]), Fleet.regular(1, 2, 4), rule("fcfs"))
    with pytest.raises(InstanceError, match="rack"):
        Proximity(rack=0.01)
