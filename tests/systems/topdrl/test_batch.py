"""Episodes side by side: what rules play through them is what they make alone, and what is paid is what it costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.simulator.gangs.allocate import ALLOCATORS
from gangplan.simulator.gangs.mixes import Mix
from gangplan.simulator.outcome import Outcome
from gangplan.systems.topdrl.batch import Batch
from gangplan.systems.topdrl.rules import Rule, rule
from gangplan.systems.topdrl.simulate import outcome_of, simulate

FLEET = Fleet.regular(2, 4, 4)
MIX = Mix(jobs=40)


def choices(batch: Batch, score: str, discipline: str) -> np.ndarray:
    """Return what a rule does in each episode; head waits for the first, overtake starts the first that fits."""
    found = np.zeros(len(batch), dtype=np.int64)
    for b in range(len(batch)):
        jobs, state = batch.episodes[b]
        queue = state.queue[: state.count[1]]
        key = {"fcfs": jobs.submit, "sjf": jobs.expected}[score][queue]
        if discipline == "overtake":
            key = np.where(jobs.gpus[queue] <= state.free.sum(), key, np.inf)
        if len(queue):
            best = int(np.argmin(key))
            found[b] = best if batch.mask[b, best] else batch.slots
    return found


def rows(outcome: Outcome) -> list[Any]:
    """Return the rows of a schedule."""
    return [getattr(outcome, f"row_{name}").tolist() for name in ("job", "node", "gpu", "start", "end", "rate")]


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize("discipline", ["head", "overtake"])
@pytest.mark.parametrize("score", ["fcfs", "sjf"])
def test_rules_make_their_schedules(score: str, discipline: str, allocator: str) -> None:
    """A rule played through a batch makes, row by row, the schedule that it makes alone; rewards add up to JCT."""
    works = [MIX.draw(seed) for seed in range(3)]
    batch, paid = Batch(works, FLEET, count=3, slots=40, allocator=allocator), np.zeros(3)
    while batch.mask.any():
        paid += batch.act(choices(batch, score, discipline))[0]
    for b, work in enumerate(works):
        alone = simulate(work, FLEET, rule(score, discipline, allocator))
        made = outcome_of(work, FLEET, Proximity(), *batch.episodes[b][:1], batch.cluster, batch.episodes[b][1])
        assert rows(made) == rows(alone)
        assert paid[b] == pytest.approx(-(alone.finish - work.submit).sum())
        assert (b, pytest.approx((alone.finish - work.submit).mean())) in batch.finished


def test_episodes_begin_anew() -> None:
    """Episodes of other lengths follow one another by seeds, and a rollout from the midst of one leaves it as it is."""
    batch = Batch(lambda seed: Mix(jobs=5 + seed % 7).draw(seed), FLEET, count=4, seed=100, slots=4)
    ended, last = 0, -1
    while ended < 30:
        assert batch.mask.any(axis=1).all()
        ended += int(batch.act(np.argmax(batch.mask, axis=1))[1].sum())
        last = max(last, int(batch.seeds.max()))
    assert sorted({f.seed for f in batch.finished} | set(batch.seeds.tolist())) == list(range(100, last + 1))
    assert {len(batch.episodes[b][0].submit) for b in range(4)} == {5 + int(seed) % 7 for seed in batch.seeds}


def test_given_gpus_and_rewards_by_hand() -> None:
    """Four GPUs on four nodes run slower than on one; throughput is the rates less what waits, over the seconds."""
    work = Workload(("a", "b"), np.zeros(2), np.array([4, 29]), np.array([10.0, 10.0]))
    batch = Batch([work], FLEET, count=1, slots=2, reward="throughput", hold=0.5)
    earned, ended = batch.act(np.array([0]), take=np.array([[1, 1, 1, 1, 0, 0, 0, 0]]))
    seconds = 10 * (1 + 3 / 4)
    assert not ended[0] and earned[0] == pytest.approx(10 - 0.5 * seconds)
    assert batch.mask.tolist() == [[True, False, False]]
    earned, ended = batch.act(np.array([0]), np.array([ALLOCATORS.index("centre")]))
    assert ended[0] and earned[0] == pytest.approx(10) and not batch.mask.any()
    assert batch.act(np.array([0]))[0].tolist() == [0]


def test_left_as_it_is() -> None:
    """At -1 an episode stays where it is, unpaid, whatever the others do."""
    batch = Batch(MIX.draw, FLEET, count=2, seed=5, slots=10)
    before = batch.episodes[1][1].copy()
    for _ in range(5):
        earned, ended = batch.act(np.array([int(batch.mask[0].argmax()), -1]), take=_take(batch))
        assert earned[1] == 0 and not ended[1]
    after = batch.episodes[1][1].arrays()
    assert all(np.array_equal(x, after[name]) for name, x in before.arrays().items())
    assert batch.episodes[0][1].start.min() < np.inf and batch.mask[1].any()


def _take(batch: Batch) -> np.ndarray:
    """Return the first idle GPUs for the job that is first to fit in the first episode."""
    jobs, state = batch.episodes[0]
    need = jobs.gpus[state.queue[int(batch.mask[0].argmax())]]
    before = np.cumsum(state.free) - state.free
    return np.stack([np.clip(need - before, 0, state.free), np.zeros(len(before), dtype=np.int64)])


def test_bad_input() -> None:
    """Forbidden actions, GPUs that are not idle or not enough, and unknown names are refused."""
    batch = Batch([MIX.draw(0)], FLEET, count=1, slots=3)
    with pytest.raises(InstanceError, match="not possible"):
        batch.act(np.array([2]))
    with pytest.raises(InstanceError, match="idle GPUs"):
        batch.act(np.array([0]), take=np.array([[5, 0, 0, 0, 0, 0, 0, 0]]))
    with pytest.raises(InstanceError, match="allocator"):
        batch.act(np.array([0]), np.array([4]))
    for name in ("allocator", "reward"):
        with pytest.raises(InstanceError, match=name):
            Batch([MIX.draw(0)], FLEET, **{name: "none"})


def test_what_is_told_and_what_is() -> None:
    """Rollouts from a copy go by what policies are told, and jobs run by what is."""
    work = Workload(("a", "b"), np.zeros(2), np.array([32, 32]), np.array([10.0, 1.0]))
    batch = Batch([(work, np.array([1.0, 5.0]))], FLEET, Proximity(0, 0, 0), count=1, slots=2)
    jobs, state = batch.episodes[0]
    copy = state.copy()
    Rule((("length", 1.0),)).finish(jobs, batch.cluster, copy)
    assert copy.finish.tolist() == [10, 11] and np.isinf(state.finish).all()
