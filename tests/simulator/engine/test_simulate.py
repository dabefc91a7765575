"""The engine: the fast simulator where both apply, and by hand and by properties where only it does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.instances import InstanceError
from gangplan.instances.placement import Demand, Fleet, GangJob, PlacementPlan, PlacementProblem, SpeedModel
from gangplan.instances.placement.rate import rates
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import POLICIES, EngineScheduler, EngineView, Outages, Rows, simulate, simulate_named
from gangplan.simulator.trace import DegreeOptions, Outcome, by_queue, check
from gangplan.simulator.trace import simulate as simulate_fast

from ...seeds import examples


def work(*jobs: tuple[float, int, float], **more: Any) -> Workload:
    """Build a workload of (submit, GPUs, duration)."""
    submit, gpus, duration = zip(*jobs, strict=True)
    names = tuple(map(str, range(len(jobs))))
    return Workload(names, np.array(submit, float), np.array(gpus), np.array(duration, float), **more)


def random_work(seed: int, jobs: int = 40, most: int = 12) -> Workload:
    """Make jobs that often tie, queue and block one another, some of no duration."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most + 1, jobs)
    return work(*zip(rng.integers(0, 60, jobs), sizes.tolist(), rng.integers(0, 20, jobs), strict=True))


def spans(done: Outcome, job: int) -> list[tuple[float, float, float]]:
    """Return (start, end, rate) of a job's rows, by time."""
    rows = np.flatnonzero(done.row_job == job)
    columns = (done.row_start[rows], done.row_end[rows], done.row_rate[rows])
    return sorted(set(zip(*(x.tolist() for x in columns), strict=True)))


class Shortest:
    """Shortest first, asked anew at every decision."""

    def select(self, view: EngineView, jobs: Any) -> Any:
        """Order by duration."""
        return view.workload.duration[jobs]


FLEET = Fleet.regular(1, 3, 4)
TWO = Fleet.regular(1, 1, 2)


@given(
    seed=st.integers(0, 10**6),
    policy=st.sampled_from(["fifo", "sjf", "ljf", "smallest", "least_work", "anew"]),
    discipline=st.sampled_from(["head", "overtake", "easy"]),
    consolidate=st.booleans(),
)
@settings(max_examples=examples(200))
def test_same_as_the_fast_one(seed: int, policy: str, discipline: str, consolidate: bool) -> None:
    """Where both simulators apply they make the same schedule: times, and nodes if those are named."""
    jobs, part = random_work(seed), Shortest() if policy == "anew" else POLICIES[policy]()
    named = "sjf" if policy == "anew" else policy
    fast = simulate_fast(jobs, 3, 4, policy=named, discipline=discipline, consolidate=consolidate)
    found = simulate(jobs, FLEET, EngineScheduler((part,), discipline, consolidate))
    assert found.start.tolist() == fast.start.tolist()
    assert found.finish.tolist() == fast.finish.tolist()
    if consolidate:
        one, two = (sorted(zip(x.row_job, x.row_node, x.row_gpus, strict=True)) for x in (fast, found))
        assert one == two


def test_srtf_stops_the_longest() -> None:
    """On 2 GPUs the long job is stopped at 2 for a shorter one, and pays 3 s before it goes on."""
    done = simulate(work((0, 2, 10), (2, 1, 4)), TWO, EngineScheduler((POLICIES["srtf"](),)), preempt_cost=3)
    assert spans(done, 1) == [(2, 6, 1)]
    assert spans(done, 0) == [(0, 2, 1), (6, 9, 0), (9, 17, 1)]


def test_who_is_in_nobodys_way_is_spared() -> None:
    """To make room for 4 GPUs the last job in order does not help; the next does, alone, and the last one stays."""
    jobs = work((0, 4, 40), (0, 3, 30), (0, 1, 60), (1, 4, 5))
    done = simulate(jobs, Fleet.regular(1, 2, 4), EngineScheduler((POLICIES["srtf"](),), consolidate=True))
    assert done.start.tolist() == [0, 0, 0, 1]
    assert done.finish.tolist() == [45, 30, 60, 6]


@pytest.mark.parametrize("shared", [False, True])
def test_cores_that_no_node_has(shared: bool) -> None:
    """Consolidated, 4 GPUs with 3 cores each go on two nodes of 4 GPUs and 8 cores, that hold 2 as if empty."""
    jobs = work((0, 1, 10), (1, 4, 5), cpu=np.array([1.0, 12.0]))
    fleet = Fleet.regular(1, 2, 4, cpu=8.0, memory=1e12)
    done = simulate(jobs, fleet, EngineScheduler((POLICIES["fifo"](),), consolidate=True, shared=shared))
    assert done.start.tolist() == [0, 1 if shared else 10]  # a GPU of a whole node may not be busy, beside it may
    assert sorted(set(done.row_node[done.row_job == 1].tolist())) == [0, 1]


def test_moving_costs_and_staying_does_not() -> None:
    """A job stopped and started at one instant where it was has not stopped."""

    class Restless:
        """Stop everybody, always."""

        preemptive = True

        def preempt(self, view: EngineView) -> Any:
            """Stop all that run."""
            return view.running.copy()

    done = simulate(work((0, 1, 5), (1, 1, 5), (2, 2, 1)), TWO, EngineScheduler((Restless(),)), preempt_cost=9)
    assert [spans(done, job) for job in range(3)] == [[(0, 5, 1)], [(1, 6, 1)], [(6, 7, 1)]]


def test_a_failure_takes_what_was_done_since_the_checkpoint() -> None:
    """Down at 7 with checkpoints every 3 s: 1 s is lost, and after repair at 10 and 2 s of restoring 4 s are left."""
    outages = Outages(((0, 7, 10),))
    done = simulate(
        work((0, 1, 10)),
        TWO,
        EngineScheduler((POLICIES["fifo"](),)),
        outages=outages,
        checkpoint_interval=3,
        preempt_cost=2,
    )
    assert spans(done, 0) == [(0, 7, 1), (10, 12, 0), (12, 16, 1)]
    assert done.down_end.tolist() == [10]
    lost = simulate(work((0, 1, 10)), TWO, EngineScheduler((POLICIES["fifo"](),)), outages=outages)
    assert lost.finish.tolist() == [20]
    kept = simulate(
        work((0, 1, 10)), TWO, EngineScheduler((POLICIES["fifo"](),)), outages=outages, checkpoint_interval=0
    )
    assert kept.finish.tolist() == [13]


def test_a_job_done_when_its_node_fails_is_done() -> None:
    """Ends come before failures of the same instant."""
    done = simulate(work((0, 1, 5)), TWO, EngineScheduler((POLICIES["fifo"](),)), outages=Outages(((0, 5, 6),)))
    assert done.finish.tolist() == [5]


def test_conservative_delays_nobody_where_easy_may() -> None:
    """What delays the first in the queue may not pass under either; what delays the second may, under EASY.

    On 4 GPUs: a (3) runs to 10, b (4) is due at 10 and c (3) at 15; d (1) would run from 1 to 13, over b, so it goes
    beside c; e (1) is done when b is due.
    """
    jobs = work((0, 3, 10), (1, 4, 5), (1, 3, 5), (1, 1, 12), (1, 1, 9))
    for discipline in ("easy", "conservative"):
        done = simulate(jobs, Fleet.regular(1, 1, 4), EngineScheduler((POLICIES["fifo"](),), discipline))
        assert done.start.tolist() == [0, 10, 15, 15, 1]
    # 2 of 3 GPUs run to 4; b (2) is due at 4, c (3) at 6; d (1) at 2 is beside b until 7, which holds up c
    jobs = work((0, 2, 4), (1, 2, 2), (1, 3, 2), (2, 1, 5))
    starts = {
        d: simulate(jobs, Fleet.regular(1, 1, 3), EngineScheduler((POLICIES["fifo"](),), d)).start.tolist()
        for d in ("easy", "conservative")
    }
    assert starts["easy"] == [0, 4, 7, 2]
    assert starts["conservative"] == [0, 4, 6, 8]


@given(seed=st.integers(0, 10**6), consolidate=st.booleans(), fails=st.booleans())
@settings(max_examples=examples(300))
def test_conservative_first_in_is_never_later_for_more_jobs(seed: int, consolidate: bool, fails: bool) -> None:
    """With exact durations a reservation in order of submission stands: jobs that come later change nothing before."""
    jobs = random_work(seed, jobs=30)
    order = np.lexsort((np.arange(30), jobs.submit))
    outages = Outages(((1, 20.0, 31.0),)) if fails else None
    scheduler = EngineScheduler((POLICIES["fifo"](),), "conservative", consolidate)
    done = simulate(jobs, FLEET, scheduler, outages=outages)
    if not fails:
        some = simulate(jobs.take(order[:20]), FLEET, scheduler)
        assert some.start.tolist() == done.start[order[:20]].tolist()


@pytest.mark.parametrize("shared", [False, True])
def test_rates_are_those_of_placement(shared: bool) -> None:
    """At every instant each job gets on at one over the slowdown that the cost model gives the whole placement."""
    rng = np.random.default_rng(3)
    fleet = Fleet.regular(2, 2, 4, nic=2e9, uplink=3e9)
    model = SpeedModel(
        ("m", "n"), ("A100",), [[1.0, 2.0]], [1e9, 3e9], [0.5, 0.2],
        rng.uniform(0, 0.3, (2, 2)), rng.uniform(0.2, 2, (2, 2)),
    )  # fmt: skip
    models = tuple(rng.choice(["m", "n"], 40).tolist())
    jobs = replace(random_work(5), model=models)
    if shared:
        jobs = replace(jobs, share=np.where(jobs.gpus < 4, 0.5, 1.0))
    done = simulate(jobs, fleet, EngineScheduler((POLICIES["fifo"](),), "overtake", shared=shared), speeds=model)
    seen = 0
    for time in np.unique(done.row_start)[::3].tolist():
        rows = np.flatnonzero((done.row_start <= time) & (done.row_end > time))
        there = np.unique(done.row_job[rows])
        if not len(there):
            continue
        gangs = tuple(
            GangJob(str(j), models[j], (int(jobs.gpus[j]),), Demand(float(np.asarray(jobs.share)[j])))
            for j in there.tolist()
        )
        place, grants = {}, []
        for r in rows.tolist():
            key = int(np.searchsorted(there, done.row_job[r])), int(done.row_node[r])
            place[key] = place.get(key, 0) + int(done.row_gpus[r])
            grants += [(list(place).index(key), int(done.row_gpu[r]))] if shared else []
        job, node = zip(*place, strict=True)
        count = list(place.values())
        plan = PlacementPlan(
            tuple(g.name for g in gangs), job, node, count, [0] * len(count), *zip(*grants, strict=True) or ((), ())
        )
        slowdown = rates(PlacementProblem(fleet, gangs, model), plan).slowdown
        for j, slow in zip(there.tolist(), slowdown.tolist(), strict=True):
            (rate,) = set(done.row_rate[rows[done.row_job[rows] == j]].tolist())
            assert rate == pytest.approx(1 / slow, rel=1e-12)
            seen += slow > 1
    assert seen > 20


def test_shares_add_up() -> None:
    """Two jobs of 0.5 and two of 0.6 on two GPUs: the halves share one, and a 0.6 takes the other alone."""
    jobs = work((0, 1, 10), (1, 1, 10), (2, 1, 10), (3, 1, 10), share=np.array([0.5, 0.5, 0.6, 0.6]))
    done = simulate(jobs, TWO, EngineScheduler((POLICIES["fifo"](),), shared=True, consolidate=True))
    assert done.start.tolist() == [0, 1, 2, 11]
    assert done.row_gpu.tolist()[:3] == [0, 0, 1]
    with pytest.raises(InstanceError, match=r"share\[0\]: job 0 asks for a share, and GPUs are not shared"):
        simulate(jobs, TWO, EngineScheduler((POLICIES["fifo"](),)))


def test_cores_count_where_jobs_name_them() -> None:
    """Two jobs of 60 cores do not go on one node of 96, though its GPUs would do."""
    jobs = work((0, 1, 5), (0, 1, 5), cpu=np.array([60.0, 60.0]))
    assert simulate(jobs, TWO, EngineScheduler((POLICIES["fifo"](),))).start.tolist() == [0, 5]


def test_nodes_of_several_sizes() -> None:
    """A job of 6 waits for the node of 8, and one of 10 takes both whole."""
    fleet = replace(Fleet.regular(1, 2, 8), gpus=np.array([4, 8]))
    done = simulate(
        work((0, 5, 3), (1, 6, 3), (2, 10, 3)), fleet, EngineScheduler((POLICIES["fifo"](),), consolidate=True)
    )
    assert done.start.tolist() == [0, 3, 6]
    assert done.row_node.tolist() == [1, 1, 0, 1]


def test_unusable_nodes_stay_empty() -> None:
    """A node that is not usable is not used, and does not come up by a repair."""
    fleet = replace(FLEET, usable=np.array([False, True, True]))
    done = simulate(
        random_work(1, most=8), fleet, EngineScheduler((POLICIES["fifo"](),)), outages=Outages(mtbf=20.0, mttr=2.0)
    )
    assert 0 not in done.row_node
    assert done.room.tolist() == [0, 4, 4]
    assert len(done.down_node) and 0 not in done.down_node


def test_degrees_are_chosen_at_the_start() -> None:
    """A policy of one line runs every job on two GPUs, as fast as the options says."""

    class Two:
        """Two GPUs for all."""

        def degree(self, job: int, view: EngineView) -> int:
            """Return 2."""
            return 2

    jobs = work((0, 1, 10), (0, 1, 6))
    options = DegreeOptions([0, 2, 4], [1, 2, 1, 2], [10, 5, 6, 4])
    done = simulate(jobs, TWO, EngineScheduler((Two(),)), options=options)
    assert done.finish.tolist() == [5, 9]
    assert done.row_rate.tolist() == [2, 1.5]


def test_rejected_jobs_never_run() -> None:
    """A job that is not admitted has no rows and no finish."""

    class Small:
        """Admit small jobs."""

        def admit(self, job: int, view: EngineView) -> bool:
            """Return whether it asks for one GPU."""
            return bool(view.workload.gpus[job] == 1)

    done = simulate(work((0, 1, 5), (0, 9, 5), (1, 1, 2)), TWO, EngineScheduler((Small(),)))
    assert done.admitted.tolist() == [True, False, True]
    assert sorted(set(done.row_job.tolist())) == [0, 2]


@given(seed=st.integers(0, 10**6), mtbf=st.sampled_from([30.0, 200.0]), consolidate=st.booleans())
@settings(max_examples=examples(40))
def test_random_failures(seed: int, mtbf: float, consolidate: bool) -> None:
    """Whatever fails, every job is done in the end, and the same seed fails the same nodes at the same times."""
    outages = Outages(mtbf=mtbf, mttr=4.0, seed=seed)
    part = EngineScheduler((POLICIES["srtf"](),), "overtake", consolidate)
    one, two = (
        simulate(random_work(seed), FLEET, part, outages=outages, preempt_cost=1.5, checkpoint_interval=4.0)
        for _ in range(2)
    )
    assert one.admitted.all()
    assert one.row_start.tolist() == two.row_start.tolist()
    assert one.down_start.tolist() == two.down_start.tolist()


def test_a_trace_that_begins_late_fails_as_one_from_zero() -> None:
    """Moved by 100,000 s a trace has the same failures, none before its first job, and the same ends."""
    jobs, outages = random_work(4, most=8), Outages(mtbf=30.0, mttr=4.0)
    jobs = replace(jobs, submit=jobs.submit - jobs.submit.min())
    here = simulate(jobs, FLEET, EngineScheduler((POLICIES["fifo"](),)), outages=outages, preempt_cost=0.5)
    moved = replace(jobs, submit=jobs.submit + 1e5)
    there = simulate(moved, FLEET, EngineScheduler((POLICIES["fifo"](),)), outages=outages, preempt_cost=0.5)
    assert len(here.down_node) > 3
    assert there.down_node.tolist() == here.down_node.tolist()
    assert there.finish - 1e5 == pytest.approx(here.finish, abs=1e-6)


@pytest.mark.parametrize("start", [0.0, 1.7e9])
def test_the_check_is_as_strict_in_unix_time(start: float) -> None:
    """A job that ends a hundredth of a second early, or is restored for as much too little, is told."""
    done = simulate(work((start, 1, 50)), TWO, EngineScheduler((POLICIES["fifo"](),)))
    early = replace(done, finish=done.finish - 0.01, row_end=done.row_end - 0.01)
    assert check(early) == ["job 0 does not run for its duration"]
    listed = ((0, start + 10, start + 20),)
    done = simulate(
        work((start, 1, 50)), TWO, EngineScheduler((POLICIES["fifo"](),)), outages=Outages(listed), preempt_cost=5
    )
    assert check(done) == []
    assert "job 0 is restored for 5 s, not 5.01" in check(replace(done, cost=5.01))


def test_nodes_are_up_and_down_as_long_as_asked() -> None:
    """The share of the time that nodes are down is mttr / (mtbf + mttr)."""
    jobs = work(*((10.0 * i, 1, 1.0) for i in range(20_000)))
    done = simulate(jobs, FLEET, EngineScheduler((POLICIES["fifo"](),)), outages=Outages(mtbf=90.0, mttr=10.0))
    end = done.finish.max()
    down = (np.minimum(done.down_end, end) - done.down_start).sum() / (3 * end)
    assert down == pytest.approx(0.1, rel=0.05)


def test_queues_on_clusters_of_their_own() -> None:
    """Two queues of two nodes each do not wait for one another, and the whole is one schedule."""
    jobs = work((0, 2, 5), (0, 2, 5), (1, 1, 2), queue=("a", "b", "a"))
    done = by_queue(jobs, lambda part: simulate_fast(part, 1, 2, consolidate=True))
    assert done.start.tolist() == [0, 0, 5]
    assert done.row_node[np.argsort(done.row_job)].tolist() == [0, 1, 0]
    assert check(done) == []
    counted = simulate_named(jobs, 1, 2, per_queue=True)
    assert counted.start.tolist() == [0, 0, 5]
    assert check(counted) == []
    assert check(simulate_named(jobs, 1, 2, "srtf", per_queue=True, outages=Outages(mtbf=3.0, mttr=1.0))) == []


class _Wrong:
    """Break the contract in one way."""

    def __init__(self, name: str, answer: Any) -> None:
        self.preemptive = name == "preempt"
        setattr(self, name, lambda *arguments: answer)


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("select", np.zeros(7), "select: .* did not give a number for each of 2 jobs"),
        ("select", np.array([np.nan]), "select: .* did not give a number"),
        ("degree", 3, "degree: 3 is not one of 1"),
        ("place", None, "policy: leaves 2 jobs waiting for good, the first is 0"),
        ("place", Rows.whole([(0, 2)]), r"place: job 0 on nodes \[0\]: not 1 GPUs"),
        ("place", Rows.whole([(4, 1)]), r"place: job 0 on nodes \[4\]: not 1 GPUs of the 1 nodes"),
        ("preempt", np.array([1]), "preempt: job 1 does not run"),
        ("wake", 0.0, "wake: 0.0 is not after 0.0"),
    ],
)
def test_wrong_policies(name: str, answer: Any, words: str) -> None:
    """What a policy must not do is named."""
    with pytest.raises(InstanceError, match=words):
        simulate(work((0, 1, 5), (0, 1, 5)), TWO, EngineScheduler((_Wrong(name, answer),)))


def test_a_full_node_takes_no_more() -> None:
    """A policy that puts all on one GPU of two is stopped when that is taken."""
    with pytest.raises(InstanceError, match=r"place: job 2 on nodes \[0\]: they have not as much free"):
        simulate(work((0, 1, 5), (0, 1, 5), (0, 1, 5)), TWO, EngineScheduler((_Wrong("place", Rows.whole([(0, 1)])),)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"discipline": "lifo"}, "discipline: 'lifo' is not one of head, overtake, easy, conservative"),
        ({"discipline": "easy", "preemptive": True}, "discipline: 'easy' holds reservations, which goes neither"),
        ({"discipline": "conservative", "parts": (_Wrong("place", None),)}, "so it chooses places and degrees itself"),
        ({"parts": (object(),)}, r"parts\[0\]: .* has none of select, admit"),
        ({"parts": (_Wrong("preempt", None),), "preemptive": False}, "preemptive: is false, but a policy stops jobs"),
    ],
)
def test_bad_schedulers(arguments: dict[str, Any], words: str) -> None:
    """What does not go together is refused with its value."""
    with pytest.raises(InstanceError, match=words):
        EngineScheduler(**{"parts": (POLICIES["fifo"](),)} | arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"preempt_cost": -1.0}, "preempt_cost: -1.0 is negative"),
        ({"checkpoint_interval": np.nan}, "checkpoint_interval: nan is not finite"),
        ({"options": DegreeOptions([0, 1], [1], [1.0])}, "options: is of 1 jobs where there are 2"),
        ({"outages": Outages(((3, 1, 2),))}, r"listed\[0\]: 3 is not one of the 1 nodes"),
        ({"speeds": SpeedModel(("m",), ("A100",), [[1.0]], [0.0], [0.0], [[0.0]], [[0.0]])}, r"model\[0\]: '' has no"),
        ({"workload": work((0, 3, 1))}, r"gpus\[0\]: job 0 needs 3, which the cluster never has"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], words: str) -> None:
    """A wrong argument is named with its value; a job that never fits too."""
    with pytest.raises(InstanceError, match=words):
        simulate(
            **{"workload": work((0, 1, 1), (0, 2, 1)), "fleet": TWO, "scheduler": EngineScheduler((Shortest(),))}
            | arguments
        )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"listed": ((0, 5, 5),)}, r"listed\[0\]: node 0 goes down at 5.0 and comes up at 5.0"),
        ({"listed": ((0, 1, 5), (0, 4, 6))}, r"listed\[1\]: node 0 goes down at 4.0, while it is down"),
        ({"mtbf": 0.0}, "mtbf: 0.0 is not positive"),
        ({"mtbf": 1.0, "listed": ((0, 1, 2),)}, "mtbf: 1.0 is given, and so is a list"),
    ],
)
def test_bad_outages(arguments: dict[str, Any], words: str) -> None:
    """Failures that cannot be are refused."""
    with pytest.raises(InstanceError, match=words):
        Outages(**arguments)


def test_nodes_that_fail_too_often() -> None:
    """A job that never gets to a checkpoint is given up at last, by name."""
    with pytest.raises(InstanceError, match="outages: nodes fail too often: job 0 was interrupted 10000 times"):
        simulate(work((0, 1, 500)), TWO, EngineScheduler((POLICIES["fifo"](),)), outages=Outages(mtbf=1.0, mttr=0.1))


def test_a_view_cannot_be_written_to() -> None:
    """A policy that tries to change the world fails."""

    class Vandal:
        """Make everybody small."""

        def select(self, view: EngineView, jobs: Any) -> Any:
            """Write."""
            view.degree[:] = 1

    with pytest.raises(ValueError, match="read-only"):
        simulate(work((0, 1, 5)), TWO, EngineScheduler((Vandal(),)))
