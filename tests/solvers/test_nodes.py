"""Room of nodes in whole numbers."""

from __future__ import annotations

import numpy as np

from gangplan.solvers.nodes import held, most_workers


def test_the_scarcest_resource_says_how_many_workers_fit() -> None:
    """Of 8 GPUs two are asked for, of 9 cores three, and of the third resource nothing."""
    free = np.array([[8, 8, 1], [9, 30, 9], [0, -5, 0]])
    most = np.array([5, 3, 5])
    assert most_workers(free, (2, 3, 0), most).tolist() == [3, 3, 0]
    assert most_workers(free, (2, 3, 0), most[[2, 0]], np.array([2, 0])).tolist() == [0, 3]


def test_who_asks_for_nothing_gets_room_of_its_own_to_change() -> None:
    """The limits are returned as a copy."""
    most = np.array([4, 2])
    found = most_workers(np.zeros((1, 2), dtype=np.int64), (0,), most)
    found[:] = 9
    assert most.tolist() == [4, 2]


def test_what_is_held_is_added_up_to_the_last_digit() -> None:
    """Amounts beyond the whole numbers of a double do not lose their ends."""
    large = 2**53
    total = held(np.array([1, 1, 0]), np.array([[large, 1, 7]]), 3)
    assert total.tolist() == [[7, large + 1, 0]]
