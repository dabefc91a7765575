"""`Scheduler` keeps what its page promises, whatever happens: some thousand events of the simulation."""

from __future__ import annotations

import pytest

from tests.seeds import some

from .check import play_seed


@pytest.mark.parametrize("first", some(range(0, 60, 10), 3))
def test_scheduler_keeps_its_promises(first: int) -> None:
    """No seed shows a fault; if one does, `python -m tests.simulation --first SEED --seeds 1 --events 60` cuts it."""
    assert sum(play_seed(seed, 60).done for seed in range(first, first + 10)) > 600


def test_what_is_known_of_room_changes_no_decision() -> None:
    """A scheduler that has seen that a job does not fit decides as one that was restored and has not: seed 1470372."""
    assert play_seed(1470372, None).done > 200
