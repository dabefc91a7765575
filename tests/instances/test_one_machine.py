"""One machine that may interrupt jobs, by hand."""

from __future__ import annotations

from gangplan.instances.one_machine import one_machine


def test_one_machine_by_hand() -> None:
    """Jackson's schedule interrupts a job for one with a longer tail."""
    # A (0, 4, 0); B comes at 1, takes 2, has 5 behind: B runs 1-3 and ends at 8, A is done at 6
    assert one_machine([(0.0, 4.0, 0.0), (1.0, 2.0, 5.0)]) == 8.0
    # together they take 6 from 0 on, and the shorter tail is 3
    assert one_machine([(0.0, 4.0, 3.0), (1.0, 2.0, 3.0)]) == 9.0
    assert one_machine([]) == 0.0
