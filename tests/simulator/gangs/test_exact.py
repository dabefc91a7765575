"""The best end of a state: argued by hand, with nothing running that of a window, never worse than a given plan."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.topdrl_window import window
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.simulator.gangs.allocate import CLOSEST
from gangplan.simulator.gangs.arrays import RUNNING, GpuRacks, Jobs, State, begin, cluster_of, jobs_of
from gangplan.simulator.gangs.exact import best_end
from gangplan.simulator.gangs.listing import Listing, run_list
from gangplan.simulator.gangs.mixes import Mix
from gangplan.simulator.gangs.step import advance, start, total_jct


def in_order(jobs: Jobs, cluster: GpuRacks, state: State) -> State:
    """Return the end where jobs start in their order, whoever fits at once."""
    n, end = len(jobs.submit), state.copy()
    of = Listing(np.arange(float(n)), np.full(n, CLOSEST), np.full(n, np.inf), np.zeros(n, dtype=np.int64))
    run_list(jobs, cluster, end, of, np.inf)
    return end


def by_hand() -> tuple[Jobs, GpuRacks, State]:
    """Return two nodes of two GPUs; one GPU of the first is held until 3, one of the second until 10; G and H wait.

    G has two GPUs and takes 4 s on one node, 8 s on two; H has one GPU and takes 2 s.
    """
    near, fleet = Proximity(node=0, rack=1, cluster=1), Fleet.regular(1, 2, 2)
    work = Workload(("R", "S", "G", "H"), np.zeros(4), np.array([1, 1, 2, 1]), np.array([3.0, 10.0, 4.0, 2.0]))
    jobs, cluster = jobs_of(work, near), cluster_of(fleet, near)
    state = begin(jobs, cluster)
    advance(jobs, cluster, state)
    start(jobs, cluster, state, 0, np.array([1, 0]))
    start(jobs, cluster, state, 0, np.array([0, 1]))
    return jobs, cluster, state


@pytest.mark.parametrize("rough", [False, True])
def test_a_gang_waits_for_a_whole_node(rough: bool) -> None:
    """The optimum leaves running jobs where they are and has the gang wait."""
    jobs, cluster, state = by_hand()
    end, bound = best_end(jobs, cluster, state, in_order(jobs, cluster, state), 5.0, rough=rough)
    # before 3 no node has two idle GPUs, so that G ends at 3 + 4 or, apart, at 8; H takes 2 at least, and there is
    # room for it at once: 7 + 2, and 3 + 10 of those that run
    assert end.finish.tolist() == [3, 10, 7, 2]
    assert total_jct(jobs, end) == 22
    assert bound == pytest.approx(22, rel=0.02 if rough else 1e-9)
    # were G to start apart, H would wait for R: 8 + (3 + 2) and 13
    start(jobs, cluster, state, 0, np.array([1, 1]))
    after, _ = best_end(jobs, cluster, state, in_order(jobs, cluster, state), 5.0, rough=rough)
    assert total_jct(jobs, after) == 26


@pytest.mark.parametrize("seed", range(3))
def test_with_nothing_running_it_is_a_window(seed: int) -> None:
    """From an empty cluster the sum of JCTs is that of the window, and the bound is the same."""
    work, fleet, near = Mix(jobs=5, gpus=3, arrival=1.0).draw(seed), Fleet.regular(1, 2, 2), Proximity()
    jobs, cluster = jobs_of(work, near), cluster_of(fleet, near)
    state = begin(jobs, cluster)
    end, bound = best_end(jobs, cluster, state, in_order(jobs, cluster, state), 20.0)
    best = window(work, fleet, near)
    assert best.proved
    assert total_jct(jobs, end) == pytest.approx(5 * best.mean_jct, rel=1e-6)
    assert bound == pytest.approx(5 * best.mean_jct, rel=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_never_worse_than_what_it_begins_with(seed: int) -> None:
    """In the middle of a run: no job that runs is moved, the bound is below, and without time the plan is the given."""
    near, fleet = Proximity(intensity={"": 3.0}), Fleet.regular(2, 2, 2)
    jobs, cluster = jobs_of(Mix(jobs=12, gpus=4, arrival=1.0).draw(seed), near), cluster_of(fleet, near)
    of = Listing(np.arange(12.0), np.full(12, CLOSEST), np.full(12, np.inf), np.zeros(12, dtype=np.int64))
    state = begin(jobs, cluster)
    run_list(jobs, cluster, state, of, float(jobs.submit[6]))
    given, before = in_order(jobs, cluster, state), state.copy()
    end, bound = best_end(jobs, cluster, state, given, 1.0)
    running = state.running[: state.count[RUNNING]]
    assert (end.finish[running] == state.finish[running]).all()
    assert bound * (1 - 1e-9) <= total_jct(jobs, end) <= total_jct(jobs, given)
    assert all(np.array_equal(a, b) for a, b in zip(state.arrays().values(), before.arrays().values(), strict=True))
    hurried, _ = best_end(jobs, cluster, state, given, 1e-6)
    assert total_jct(jobs, hurried) == total_jct(jobs, given)
