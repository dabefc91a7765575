"""The schedule policy online: rankings of queues, and the simulator's contract."""

from __future__ import annotations

import numpy as np
import torch

from gangplan.instances.generators.jobs import arrivals
from gangplan.instances.placement import Fleet
from gangplan.learned.schedule.online import MOST, Learned, Queue, ranked
from gangplan.learned.schedule.policy import SchedulePolicy, network_of
from gangplan.learned.schedule.settings import Settings
from gangplan.simulator.engine import Scheduler, check_policy, simulate
from gangplan.simulator.metrics import summary
from gangplan.simulator.options import DegreeOptions


def quiet() -> SchedulePolicy:
    """Return a policy that leaves the base as it is."""
    torch.manual_seed(0)
    return SchedulePolicy(network_of(Settings()))


def queue(k: int, total: int, seed: int = 0) -> Queue:
    """Return a queue of jobs with up to four degrees, half of the GPUs held."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 5, k)
    first = np.concatenate([[0], np.cumsum(size)])
    gpus = np.concatenate([2 ** np.arange(s) for s in size])
    seconds = np.repeat(rng.lognormal(7, 1, k), size) * (1 + 0.1 * (gpus - 1)) / gpus
    return Queue(first, gpus, seconds, np.ones(k), total, np.full(total // 2, 1), rng.uniform(1, 5000, total // 2))


def test_ranking_is_whole() -> None:
    """Every job has a place of its own and an option of its own, whose score is the best of the job's."""
    one = queue(100, 16)
    found = ranked([one], quiet())[0]
    assert sorted(found.place.tolist()) == list(range(100))
    assert ((found.option >= one.first[:-1]) & (found.option < one.first[1:])).all()
    assert np.isfinite(found.start).sum() == MOST
    for j in range(100):
        mine = slice(one.first[j], one.first[j + 1])
        assert one.first[j] + int(np.argmax(found.score[mine])) == found.option[j]


def test_what_starts_now_fits_beside_what_runs() -> None:
    """The jobs that the plan starts now hold no more GPUs than are free, and some start if any fit."""
    for seed in range(5):
        one = queue(30, 16, seed)
        found = ranked([one], quiet())[0]
        now = found.start <= 0
        assert 0 < one.gpus[found.option[now]].sum() <= one.total - one.held.sum()


def test_a_batch_is_ranked_as_its_queues_are() -> None:
    """Several queues at once have the rankings that they have alone; one may be empty, or ask for too much."""
    empty = Queue(np.zeros(1, int), np.zeros(0, int), np.zeros(0), np.zeros(0), 8, np.zeros(0, int), np.zeros(0))
    large = Queue(np.array([0, 1]), np.array([9]), np.ones(1), np.ones(1), 8, np.zeros(0, int), np.zeros(0))
    queues = [queue(12, 8, 1), empty, queue(7, 4, 2), large]
    together = ranked(queues, quiet())
    for one, found in zip(queues, together, strict=True):
        alone = ranked([one], quiet())[0]
        assert (alone.place == found.place).all() and (alone.option == found.option).all()
    assert together[3].option.tolist() == [-1] and together[3].score.tolist() == [-np.inf]


def test_the_simulator_accepts_it() -> None:
    """The policy keeps the contract of the simulator: all jobs are done, two runs decide alike."""
    check_policy(lambda: Learned(quiet()), traces=1)


def test_it_beats_fifo_on_moldable_jobs() -> None:
    """On a crowded cluster the shipped policy's mean completion time is well below first come first served."""
    work = arrivals(jobs=60, rate=0.02, gpus="1:4,2:2,4:1", duration="lognormal", seed=5)
    fleet = Fleet.regular(1, 1, 8)
    options = DegreeOptions.scaling(work, (1, 2, 4, 8))
    mine = simulate(work, fleet, Scheduler((Learned(),), "overtake"), options=options)

    class First:
        """Submit times, by default."""

        def select(self, view, jobs):  # type: ignore[no-untyped-def]
            return view.workload.submit[jobs]

    theirs = simulate(work, fleet, Scheduler((First(),), "overtake"), options=options)
    assert summary(mine).mean_jct < 0.8 * summary(theirs).mean_jct
