"""Where tasks may go is what trying every way to place the rest says."""

from __future__ import annotations

from itertools import product

import numpy as np

from gangplan.systems.interference.job_types import SERVER, WORKER
from gangplan.systems.interference.room import servers_for, task_mask


def by_hand(free: np.ndarray, w: int, p: int) -> bool:
    """Return whether some way to spread the tasks fits."""
    worker, server = np.array(WORKER), np.array(SERVER)
    for counts in product(product(range(w + 1), range(p + 1)), repeat=len(free)):
        used = np.array([a * worker + b * server for a, b in counts])
        if np.sum(counts, axis=0).tolist() == [w, p] and (used <= free).all():
            return True
    return False


def test_against_every_way() -> None:
    """On random leftovers of three servers, for a job and for each task of it that is placed first."""
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        free = np.stack([rng.integers(0, 3, 3), rng.integers(0, 13, 3), 8e9 * rng.integers(0, 5, 3)], axis=1).astype(
            float
        )
        w, p = int(rng.integers(1, 4)), int(rng.integers(0, 3))
        whole = by_hand(free, w, p)
        assert (servers_for(free, np.array(WORKER), np.array(SERVER), w, p) <= 3) == whole
        mask = task_mask(free, np.array(WORKER), np.array(SERVER), w, p)
        for kind, s in product((0, 1), range(3)):
            rest = free.copy()
            rest[s] -= (WORKER, SERVER)[kind]
            left = (w - (kind == 0), p - (kind == 1))
            could = min(left) >= 0 and bool((rest[s] >= 0).all()) and by_hand(rest, *left)
            assert mask[kind, s] == could
            seen.add((whole, could))
        assert mask.any() == whole
    assert seen == {(True, True), (True, False), (False, False)}
