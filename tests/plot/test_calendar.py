"""The calendar on pictures."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from gangplan.plot.calendar import DAY, HOUR, MOST_TICKS, calendar_ticks

MONDAY = datetime(2026, 1, 5, tzinfo=UTC).timestamp()


def test_ticks_by_hand() -> None:
    """Ten hours from 20:30 on a Monday have a tick every hour, midnight the day."""
    ticks = calendar_ticks(0.0, 10 * HOUR, MONDAY + 20.5 * HOUR)
    assert [at for at, _ in ticks] == [(k + 0.5) * HOUR for k in range(10)]
    assert [words for _, words in ticks][:5] == ["21:00", "22:00", "23:00", "Tue 6 Jan", "01:00"]


@pytest.mark.parametrize("days", [0.1, 0.7, 2, 5, 9, 30, 100, 400, 4000])
def test_ticks_are_few_and_even(days: float) -> None:
    """Ticks of any length of time lie within it, evenly, at whole hours; weeks begin on Mondays."""
    first, epoch = 1234.5, MONDAY + 7777.0
    ticks = calendar_ticks(first, first + days * DAY, epoch)
    at = np.array([place for place, _ in ticks])
    assert 1 <= len(at) <= MOST_TICKS + 1
    assert at.min() >= first and at.max() <= first + days * DAY + 1e-5
    assert np.allclose((at + epoch) % HOUR % HOUR, 0, atol=1e-5) and len(np.unique(np.diff(at).round(3))) <= 1
    if days >= 100:
        assert {datetime.fromtimestamp(place + epoch, UTC).weekday() for place in at.round().tolist()} == {0}
