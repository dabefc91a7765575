"""Episodes: GPUs are picked one by one until the job starts, and what was saved goes on as it would have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gangplan.systems.topdrl.published.episodes import Picking, Placing
from gangplan.systems.topdrl.published.recipe import Settings

PICKS = Settings(slots=6, lanes=4)
PLACES = Settings(decides="gpus", slots=1, lanes=4)


def play(episodes: Any, decisions: int) -> list[list[float]]:
    """Return what random actions earn."""
    found = []
    for _ in range(decisions):
        mask = episodes.look().mask
        found.append(episodes.take(np.where(mask, episodes.rng.random(mask.shape), -1.0).argmax(axis=1)).tolist())
    return found


def test_gpus_one_by_one() -> None:
    """The GPUs picked are marked and not picked again, the job shrinks by them, and it starts with its last one."""
    episodes = Placing(PLACES, 0)
    batch, cells = episodes.batch, PLACES.rows * PLACES.gpus
    need = batch.jobs.gpus[0, batch.state.queue[0, 0]]
    for done in range(need):
        seen, mask = episodes.see()[0], episodes.mask[0]
        picked = (seen[:cells].reshape(PLACES.rows, -1) < 0).all(axis=0)
        assert picked.sum() == done and not (picked & mask).any()
        assert seen[cells : cells + PLACES.widest].sum() == need - done
        assert batch.state.start[0, 0] == np.inf
        action = np.array([np.flatnonzero(row)[-1] for row in episodes.mask])  # from the last node on
        nodes = np.flatnonzero(mask)[-1] // 4
        episodes.take(action)
    assert np.isfinite(batch.state.start[0, 0])
    assert nodes == (32 - need) // 4 and batch.state.free[0, nodes] == (32 - need) % 4


@pytest.mark.parametrize(("of", "settings"), [(Picking, PICKS), (Placing, PLACES)])
def test_go_on(of: Any, settings: Settings) -> None:
    """Episodes that were saved and loaded, beyond the end of some, pay what they would have paid."""
    first, second = of(settings, 0), of(settings, 1)
    play(first, 150)
    kept = {name: x.copy() for name, x in first.state().items()}
    state = first.rng.bit_generator.state
    paid = play(first, 600)
    assert len(first.batch.finished) > 0
    second.load(kept)
    second.rng.bit_generator.state = state
    assert play(second, 600) == paid
