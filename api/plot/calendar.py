"""The calendar on pictures of schedules: days and hours below the axis of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

HOUR, DAY = 3600.0, 86400.0
NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MOST_TICKS = 14
"""Maximum number of ticks of an axis of time that is as wide as a page."""
_STEPS = (HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY)
"""Seconds between two ticks, of which the least that leaves few enough is taken."""
_EPOCH_DAY = 3
"""Day of the week of 1 January 1970, Monday being 0."""


def date(seconds: float) -> datetime:
    """Return what a clock shows so many seconds after 1970 began."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def calendar_ticks(first: float, last: float, epoch: float) -> list[tuple[float, str]]:
    """Return ticks at whole hours, days or weeks from `first` to `last`, seconds of a clock that shows `epoch` at 0.

    A tick at midnight says the day, and its month; weeks begin on Mondays.
    """
    long = last - first
    step = next((one for one in _STEPS if long / one <= MOST_TICKS), 7 * DAY * np.ceil(long / (7 * DAY * MOST_TICKS)))
    zero = -_EPOCH_DAY * DAY if step >= 7 * DAY else 0.0  # a Monday
    begin = np.ceil((first + epoch - zero) / step) * step + zero
    ticks = []
    for at in np.arange(begin, last + epoch + 1e-6, step).tolist():
        clock = date(at)
        words = f"{NAMES[clock.weekday()]} {clock.day} {clock:%b}" if at % DAY == 0 else f"{clock:%H:%M}"
        if step >= 7 * DAY:
            words = f"{clock.day} {clock:%b}\n{clock.year}"
        ticks.append((at - epoch, words))
    return ticks
