"""Policies of the engine: each on a case small enough to argue, and all by the contract."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, SpeedModel
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import POLICIES, EngineScheduler, EngineView, check_policy, simulate, simulate_named
from gangplan.simulator.engine.policies import DRF, Fixed, Gandiva, Optimus, Tetris, Tiresias
from gangplan.simulator.metrics import summary
from gangplan.simulator.trace import DegreeOptions
from gangplan.simulator.trace import simulate as simulate_fast


def work(*jobs: tuple[float, int, float], **more: Any) -> Workload:
    """Build a workload of (submit, GPUs, duration)."""
    submit, gpus, duration = zip(*jobs, strict=True)
    names = tuple(map(str, range(len(jobs))))
    return Workload(names, np.array(submit, float), np.array(gpus), np.array(duration, float), **more)


ONE, TWO, FOUR = (Fleet.regular(1, 1, gpus) for gpus in (1, 2, 4))


def speeds(beside: float) -> SpeedModel:
    """Return a model whose jobs add `beside` of their compute to one another's on a GPU."""
    return SpeedModel(("m",), ("A100",), [[1.0]], [0.0], [0.0], [[0.0]], [[beside]])


@pytest.mark.parametrize("name", POLICIES)
def test_contract(name: str) -> None:
    """Every policy keeps the contract."""
    check_policy(POLICIES[name], traces=3)


def test_the_contract_finds_faults() -> None:
    """A policy that breaks its promise, gives numbers at random or never starts anybody is found out."""

    class Unsteady:
        """Order by the time of asking."""

        steady = True

        def select(self, view: EngineView, jobs: Any) -> Any:
            """Return now."""
            return view.now + 0.0 * jobs

    class Random:
        """Order at random."""

        rng = np.random.default_rng(0)

        def select(self, view: EngineView, jobs: Any) -> Any:
            """Return random numbers."""
            return self.rng.random(len(jobs))

    class Never:
        """Place nobody."""

        def place(self, job: int, degree: int, view: EngineView) -> None:
            """Return None."""

    with pytest.raises(AssertionError, match="steady, but"):
        check_policy(Unsteady)
    with pytest.raises(AssertionError, match="two runs differ"):
        check_policy(Random)
    with pytest.raises(InstanceError, match="waiting for good"):
        check_policy(Never)


def test_srtf_is_best_on_one_machine() -> None:
    """On one GPU no other policy has a lower mean completion time (Schrage 1968)."""
    rng = np.random.default_rng(0)
    jobs = work(
        *((float(s), 1, float(d)) for s, d in zip(rng.integers(0, 99, 30), rng.integers(1, 9, 30), strict=True))
    )
    mean = {name: summary(simulate_named(jobs, 1, 1, name)).mean_jct for name in POLICIES}
    assert min(mean, key=lambda name: mean[name]) == "srtf"
    assert mean["srtf"] < mean["sjf"] < mean["fifo"] < mean["ljf"]


def test_tiresias_moves_down_at_the_threshold() -> None:
    """Past 4 GPU seconds a job gives way to a new one; both past, the one submitted first goes on."""
    done = simulate(work((0, 1, 10), (1, 1, 6)), ONE, EngineScheduler((Tiresias((4.0,)),)))
    first = sorted(zip(done.row_job.tolist(), done.row_start.tolist(), done.row_end.tolist(), strict=True))
    assert first == [(0, 0, 4), (0, 8, 14), (1, 4, 8), (1, 14, 16)]


def test_tiresias_counts_gpus() -> None:
    """Two GPUs for 2 s are 4 GPU seconds: the wide job gives way when the narrow one would not yet."""
    done = simulate(work((0, 2, 10), (1, 2, 1)), TWO, EngineScheduler((Tiresias((4.0,)),)))
    assert done.start.tolist() == [0, 2]


def test_drf_serves_who_has_least() -> None:
    """Of the paper's tenants, one has jobs of <1 CPU, 4 GB> and the other <3 CPUs, 1 GB> of 9 and 18: 3 and 2 run."""
    jobs = work(
        *[(0.0, 1, 9.0)] * 10,
        queue=("a",) * 5 + ("b",) * 5,
        cpu=np.repeat([1.0, 3.0], 5),
        memory=np.repeat([4.0, 1.0], 5),
    )
    fleet = Fleet.regular(1, 1, 100, cpu=9.0, memory=18.0)
    done = simulate(jobs, fleet, EngineScheduler((DRF(),)))
    now = np.flatnonzero(done.start == 0)
    assert now.tolist() == [0, 1, 2, 5, 6]


def test_drf_counts_what_runs() -> None:
    """A tenant that holds half the cluster waits until the other has as much."""
    jobs = work((0, 2, 9), (1, 1, 9), (1, 1, 9), (1, 1, 9), queue=("a", "a", "b", "b"))
    done = simulate(jobs, FOUR, EngineScheduler((DRF(),)))
    assert done.start.tolist() == [0, 9, 1, 1]


def test_tetris_aligns() -> None:
    """With cores taken on one node and memory on the other, each job goes where there is more of what it needs."""
    jobs = work(
        *[(float(i), 1, 99.0) for i in range(4)],
        cpu=np.array([80.0, 5.0, 10.0, 1.0]),
        memory=np.array([1e10, 8e10, 1e9, 1e10]),
    )
    done = simulate(jobs, Fleet.regular(1, 2, 4, cpu=96.0, memory=1e11), EngineScheduler((Tetris(),)))
    assert done.row_node[np.argsort(done.row_job)].tolist() == [0, 1, 1, 0]


def test_tetris_mixes_in_the_work_left() -> None:
    """Of two jobs alike in need the short one goes first; packing alone goes by submission."""
    jobs = work((0, 1, 1), (0, 1, 9), (0, 1, 2))
    assert simulate(jobs, ONE, EngineScheduler((Tetris(),))).start.tolist() == [0, 3, 1]
    assert simulate(jobs, ONE, EngineScheduler((Tetris(mix=0.0),))).start.tolist() == [0, 1, 10]


def test_tetris_where_gpus_are_shared() -> None:
    """Halves share a GPU; of what waits, that with least left, which is half as much for half a GPU, is first."""
    jobs = work((0, 1, 4), (0, 1, 9), (0, 1, 6), (0, 1, 5), share=np.array([0.5, 0.5, 0.5, 1.0]))
    done = simulate_named(jobs, 1, 1, "tetris", discipline="overtake")
    assert done.start.tolist() == [0, 4, 0, 13]  # work of 2 and 3 first; 4.5 before 5; the whole GPU when all are done


def test_gandiva_packs_if_it_pays() -> None:
    """Two jobs that slow each other to 2/3 share a GPU and are done at 15; at 2/5 they go one after the other."""
    jobs = work((0, 1, 10), (0, 1, 10), model=("m", "m"))
    done = simulate(jobs, ONE, EngineScheduler((Gandiva(),)), speeds=speeds(0.5))
    assert done.start.tolist() == [0, 0]
    assert done.finish.tolist() == pytest.approx([15, 15])
    assert set(done.row_share.tolist()) == {0.5}
    apart = simulate(jobs, ONE, EngineScheduler((Gandiva(),)), speeds=speeds(1.5))
    assert apart.finish.tolist() == [10, 20]


def test_gandiva_takes_turns_without_a_cost_model() -> None:
    """Half a GPU is half the rate; a third job waits, since only pairs are made."""
    done = simulate(work((0, 1, 4), (0, 1, 6), (0, 1, 1)), ONE, EngineScheduler((Gandiva(),)))
    # both at half until 8; then the second has 2 left and the third 1: at half until 10, 11 for the rest
    assert done.start.tolist() == [0, 0, 8]
    assert done.finish.tolist() == [8, 11, 10]


def test_gandiva_parts_pairs_when_there_is_room() -> None:
    """When a GPU comes free and nobody waits, one of a pair moves there."""
    done = simulate(work((0, 1, 3), (0, 1, 9), (1, 1, 9)), TWO, EngineScheduler((Gandiva(),)))
    # from 1 on the third shares with the first, which has 2 left and is done at 5; so the third has 7 left, alone
    assert done.finish.tolist() == [5, 9, 12]
    moves = simulate(work((0, 1, 2), (0, 1, 9), (0, 1, 9), (0, 1, 9)), TWO, EngineScheduler((Gandiva(),)))
    assert moves.finish.max() < 18


def test_gandiva_parts_pairs_that_do_badly() -> None:
    """Where the network slows a pair more than expected, it is stopped, and its GPUs go to one of the two."""
    model = SpeedModel(("m",), ("A100",), [[1.0]], [4e9], [0.0], [[0.0]], [[0.1]])
    fleet = Fleet.regular(1, 2, 1, nic=1e9)
    jobs = work((0, 2, 10), (0, 2, 10), model=("m", "m"))
    done = simulate(jobs, fleet, EngineScheduler((Gandiva(gain=1.5, interval=1.0),)), speeds=model)
    # on GPUs alone 1 / 1.1 each were 1.8, but the links are halved too: 5 / (1.1 + 8) each, and parted after 1 s
    rate = 5 / 9.1
    assert done.finish.tolist() == pytest.approx([11 - rate, 21 - 2 * rate])


def test_optimus_gives_to_whom_it_helps() -> None:
    """Of four GPUs each job gets one; then a second one saves 4 s here and 1.5 s there, and a third 1 s here."""
    options = DegreeOptions([0, 3, 6], [1, 2, 3, 1, 2, 3], [10.0, 6.0, 5.0, 10.0, 8.5, 8.0])
    done = simulate(work((0, 1, 10), (0, 1, 10)), FOUR, EngineScheduler(Optimus(1000.0)), options=options)
    held = np.bincount(done.row_job[done.row_start == 0], weights=done.row_gpus[done.row_start == 0])
    assert held.tolist() == [2, 2]
    three = simulate(
        work((0, 1, 10), (0, 1, 10)), Fleet.regular(1, 1, 3), EngineScheduler((Optimus(1000.0),)), options=options
    )
    assert np.bincount(three.row_job, weights=three.row_gpus).tolist() == [2, 1]


def test_optimus_chooses_anew() -> None:
    """When the first job is done at 6, the next choice, at 8, gives its GPUs to the other."""
    options = DegreeOptions([0, 2, 4], [1, 2, 1, 2], [12.0, 6.0, 20.0, 10.0])
    done = simulate(work((0, 1, 12), (0, 1, 20)), TWO, EngineScheduler((Optimus(8.0),)), options=options)
    # one GPU each: 12 s and 20 s; at 16 the second has 4 s left on one GPU, 2 on two
    assert done.finish.tolist() == [12, 18]


def test_preemption_beats_patience_on_philly_like_work() -> None:
    """On a crowded cluster SRTF has a lower mean completion time than SJF, and that than FIFO."""
    rng = np.random.default_rng(2)
    jobs = work(
        *zip(
            np.cumsum(rng.exponential(30.0, 400)).tolist(),
            (2 ** rng.integers(0, 4, 400)).tolist(),
            rng.lognormal(6, 1.5, 400).tolist(),
            strict=True,
        )
    )
    options: dict[str, Any] = {"discipline": "overtake", "consolidate": True}
    fifo, sjf, srtf = (summary(simulate_named(jobs, 8, 8, name, **options)) for name in ("fifo", "sjf", "srtf"))
    assert srtf.mean_jct < sjf.mean_jct < fifo.mean_jct
    assert srtf.interruptions > 0 == sjf.interruptions


def test_named_goes_the_fast_way() -> None:
    """By name the fast simulator runs what it can, and the engine the rest, to the same figures."""
    jobs = work((0, 1, 5), (0, 2, 5), (1, 1, 2))
    fast = simulate_named(jobs, 1, 2, "sjf")
    assert (fast.row_node < 0).all()
    assert fast.finish.tolist() == simulate_fast(jobs, 1, 2, policy="sjf").finish.tolist()
    engine = simulate_named(jobs, 1, 2, "sjf", cpu=96.0)
    assert (engine.row_node == 0).all()
    assert engine.finish.tolist() == fast.finish.tolist()
    assert simulate_named(jobs, 1, 2, "optimus", degrees=(1, 2)).options is not None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Fixed("lifo"), "name: 'lifo' is not one of fifo, sjf"),
        (lambda: Tiresias((2.0, 1.0)), r"thresholds\[1\]: 1.0 does not ascend"),
        (lambda: Tetris(mix=-1.0), "mix: -1.0 is negative"),
        (lambda: Gandiva(gain=0.0), "gain: 0.0 is not positive"),
        (lambda: Optimus(interval=0.0), "interval: 0.0 is not positive"),
        (lambda: simulate_named(work((0, 1, 1)), 1, 1, "lifo"), "policy: 'lifo' is not one of fifo"),
        (lambda: simulate_named(work((0, 1, 1)), 1, 1, degrees=(1,), per_queue=True), "per_queue: does not go with"),
    ],
)
def test_bad_options(make: Any, words: str) -> None:
    """A wrong option is named with its value."""
    with pytest.raises(InstanceError, match=words):
        make()
