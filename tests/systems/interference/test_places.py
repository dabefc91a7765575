"""Where tasks fit: what looking at every way finds, and to the bit what numba's kernels said."""

from __future__ import annotations

import hashlib
import json
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gangplan.solvers import native
from gangplan.systems.interference import places
from gangplan.systems.interference.places import every, fills, moves, servers_for, task_mask
from gangplan.systems.interference.truths import SERVER, WORKER

from ...solvers.uncompiled import uncompiled

GOLDEN = Path(__file__).with_suffix(".json")
"""What numba's kernels of commit feefd4b9 made of random rooms."""


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


def holds(place: np.ndarray, room: np.ndarray) -> bool:
    """Return whether a place keeps to what each server takes."""
    return all(w < room.shape[1] and p <= room[s, w] for s, (w, p) in enumerate(place.tolist()))


def drawn(seed: int) -> tuple[np.ndarray, int, int]:
    """Return what three servers take, and the tasks of a job."""
    rng = np.random.default_rng(seed)
    w, p = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    room = np.sort(rng.integers(-1, p + 1, (3, w + 1)), axis=1)[:, ::-1].copy()
    room[:, 0] = np.maximum(room[:, 0], 0)
    return room, w, p


@pytest.mark.parametrize("seed", range(12))
def test_every(seed: int) -> None:
    """All places are found, each once; more than asked for end the search."""
    room, w, p = drawn(seed)
    able = np.flatnonzero((room[:, 0] > 0) | (room[:, 1:] >= 0).any(axis=1))
    found = every(room, able, w, p, 300)
    ways = [np.array(x).reshape(3, 2) for x in product(range(w + 1), range(p + 1), repeat=3)]
    wanted = {x.tobytes() for x in ways if (x.sum(axis=0) == (w, p)).all() and holds(x, room)}
    assert len(found) == len(wanted) and {x.tobytes() for x in found} == wanted
    assert len(every(room, able, w, p, 1)) == min(len(wanted), 2)


@pytest.mark.parametrize("seed", range(12))
def test_some_and_near(seed: int) -> None:
    """Places by filling hold the whole job; places nearby are all that differ by where one task is."""
    room, w, p = drawn(seed)
    found = fills(room, np.array([[0, 1, 2], [2, 0, 1]]), w, p)
    assert all((x.sum(axis=0) == (w, p)).all() and holds(x, room) for x in found)
    if not len(found):
        return
    place = found[0]
    wanted = set()
    for here, there, kind in product(range(3), range(3), range(2)):
        other = place.copy()
        other[here, kind] -= 1
        other[there, kind] += 1
        if here != there and place[here, kind] and holds(other, room):
            wanted.add(other.tobytes())
    assert {x.tobytes() for x in moves(place, room)} == wanted


def test_tight_or_spread() -> None:
    """A job is filled as tight as possible and one worker a server, parameter servers beside its workers or apart."""
    room = np.array([[1, 1, 1], [1, 1, 1], [1, 1, 1]])
    found = fills(room, np.array([[1, 0, 2]]), 2, 1).tolist()
    assert found == [
        [[0, 0], [2, 1], [0, 0]],
        [[0, 1], [2, 0], [0, 0]],
        [[1, 0], [1, 1], [0, 0]],
        [[1, 0], [1, 0], [0, 1]],
    ]


def outcomes(seed: int, module: ModuleType = places) -> str:
    """Return a digest of which tasks fit where in what is free, and of where whole jobs may go."""
    rng, found = np.random.default_rng(seed), list[Any]()
    for _ in range(20):
        m, w, p = (int(x) for x in rng.integers([1, 0, 0], [9, 5, 4]))
        free = rng.integers(-1, 5, (m, 3)) * rng.choice([1.0, 0.1, 1e9], 3)
        worker, server = rng.integers(0, 3, (2, 3)) * rng.choice([1.0, 0.1, 1e8], (2, 3))
        found += [module.servers_for(free, worker, server, w, p), module.task_mask(free, worker, server, w, p).tolist()]
        room = np.sort(rng.integers(-1, p + 1, (m, w + 1 + seed % 2)), axis=1)[:, ::-1].copy()
        able = np.flatnonzero(room[:, 0] >= 0)
        found.append(module.every(room, able, w, p, int(rng.choice([1, 10, 300]))).tolist())
        orders = able[np.argsort(rng.random((len(able), len(able))), axis=1)]
        found.append(module.fills(room, orders, w, p).tolist())
        found += [module.moves(np.array(x), room).tolist() for x in found[-1][:2]]
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


@pytest.mark.parametrize("seed", range(40))
def test_outcomes_are_those_recorded(seed: int) -> None:
    """What fits where is what numba's kernels said."""
    assert outcomes(seed) == json.loads(GOLDEN.read_text())[seed]


@pytest.mark.parametrize("seed", range(6))
def test_the_source_does_what_is_compiled(seed: int) -> None:
    """Run from the source as plain Python the kernels say the same."""
    assert outcomes(seed, uncompiled(native, places)) == outcomes(seed)


def test_what_does_not_fit_is_refused() -> None:
    """Other sizes, tasks fewer than none, servers that are none or full and places that are none are refused."""
    free, need, room, able = np.ones((3, 3)), np.ones(3), np.ones((3, 3), np.int64), np.arange(3)
    for call in (
        lambda: servers_for(free, need[:2].copy(), need, 1, 1),
        lambda: task_mask(free, need, need[:2].copy(), 1, 1),
        lambda: servers_for(free, need, need, -1, 1),
        lambda: every(room, able, 3, 1, 9),
        lambda: every(room, able, 1, -1, 9),
        lambda: every(room, able, 1, 1, -1),
        lambda: every(room, able + 1, 1, 1, 9),
        lambda: every(room - 2, able, 1, 1, 9),
        lambda: fills(room, able[None] - 1, 1, 1),
        lambda: fills(room[:, :0].copy(), able[None], 1, 1),
        lambda: moves(np.ones((2, 2), np.int64), room),
        lambda: moves(np.array([[1, 0], [-1, 0], [0, 0]]), room),
    ):
        with pytest.raises(ValueError, match=r"tasks|full|orders|place"):
            call()
