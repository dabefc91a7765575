"""GPUs picked one by one: whose turn it is, and what picks of an allocator's GPUs make."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.simulator.proximity import Batch, Mix, OneByOne, rule, simulate
from gangplan.simulator.proximity.allocate import CLOSEST, allocate

FLEET = Fleet.regular(2, 4, 4)
MIX = Mix(jobs=40)


@pytest.mark.parametrize("order", ["fcfs", "sjf"])
def test_picks_of_an_allocator(order: str) -> None:
    """Who picks the GPUs of the closest nodes makes the schedule of the rule with that allocator."""
    works = [MIX.draw(seed) for seed in range(3)]
    batch = Batch(works, FLEET, count=3, slots=40)
    game, paid = OneByOne(batch, order), np.zeros(3)
    take = np.zeros(8, dtype=np.int64)
    while game.left.any():
        gpus = np.zeros(3, dtype=np.int64)
        for b in np.flatnonzero(game.left).tolist():
            jobs, state = batch.of(b)
            has = game.picked[b].reshape(8, 4).sum(axis=1)
            allocate(CLOSEST, int(jobs.gpus[state.queue[game.slot[b]]]), batch.cluster, state.free, take)
            gpus[b] = np.flatnonzero(game.mask[b] & np.repeat(take > has, 4))[0]
        paid += game.act(gpus)[0]
    for b, work in enumerate(works):
        alone = simulate(work, FLEET, rule(order, "overtake", "closest"))
        assert batch.of(b)[1].finish.tolist() == alone.finish.tolist()
        assert paid[b] == pytest.approx(-(alone.finish - work.submit).sum())


def test_any_picks() -> None:
    """Any idle GPUs make a gang; episodes begin anew, and busy GPUs and those picked are refused."""
    game, rng, ended = OneByOne(Batch(MIX.draw, FLEET, count=4, slots=10)), np.random.default_rng(0), 0
    while ended < 8:
        assert (game.mask.sum(axis=1) >= game.left).all() and (game.left > 0).all()
        ended += int(game.act(np.array([rng.choice(np.flatnonzero(mask)) for mask in game.mask]))[1].sum())
    with pytest.raises(InstanceError, match=r"gpu\[0\]"):
        game.act(np.full(4, -1))
    with pytest.raises(InstanceError, match="order"):
        OneByOne(game.batch, "ljf")
