"""Places of a job: compiled, they are those that plain loops find."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from gangplan.systems.interference.places import every, fills, moves


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
