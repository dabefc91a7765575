"""The calendar on pictures of schedules: days and hours below the axis of time, and means by the hour of the week."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

from gangplan.simulator.metrics import held_gpus, waiting_jobs
from gangplan.simulator.trace import Outcome

from .colours import GREY
from .scene import Axis, FloatArray, Heat, Panel, Words

HOUR, DAY = 3600.0, 86400.0
HOURS, DAYS = 24, 7
NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MOST_TICKS = 14
"""Maximum number of ticks of an axis of time that is as wide as a page."""
_STEPS = (HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY)
"""Seconds between two ticks, of which the least that leaves few enough is taken."""
_EPOCH_DAY = 3
"""Day of the week of 1 January 1970, Monday being 0."""
SHADES = ("#f4f1ea", "#f3d9a4", "#eda94f", "#c8661b", "#7a2e0c")
"""Shades of an hour of the week, from the least to the most."""


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


def by_hour(values: FloatArray, first: float, epoch: float) -> FloatArray:
    """Return the mean of hourly values by day of the week and hour, float64 (7, 24), NaN where there is none.

    Args:
        values: of one hour after the other.
        first: when the first of them began, seconds of a clock that shows `epoch` at 0; a whole hour of the calendar.
    """
    hour = (np.arange(len(values)) + round((first + epoch) / HOUR) + _EPOCH_DAY * HOURS) % (HOURS * DAYS)
    total = np.bincount(hour, weights=values, minlength=HOURS * DAYS)
    count = np.bincount(hour, minlength=HOURS * DAYS)
    mean = np.divide(total, count, out=np.full(HOURS * DAYS, np.nan), where=count > 0)
    return np.asarray(mean.reshape(DAYS, HOURS))


def week_panels(outcome: Outcome, first: float, last: float, epoch: float) -> list[Panel]:
    """Return heat maps by hour of the week, side by side: submissions an hour, GPUs in use, and jobs that wait."""
    begin = np.floor((first + epoch) / HOUR) * HOUR - epoch
    edges = begin + np.arange(int(np.ceil((last - begin) / HOUR)) + 1) * HOUR
    arrivals, _ = np.histogram(outcome.workload.submit, edges)
    shown = (
        ("submissions an hour", arrivals.astype(np.float64)),
        ("GPUs in use", held_gpus(outcome).means(edges)),
        ("jobs that wait", waiting_jobs(outcome).means(edges)),
    )
    wide, left, panels = 3.35, 0.95, []
    days = [(i + 0.5, name) for i, name in enumerate(NAMES)]
    for i, (words, values) in enumerate(shown):
        mean = by_hour(values, begin, epoch)
        most = float(np.nanmax(mean))
        x = Axis(0, HOURS, f"hour of the day, at most {most:.4g}", [(h, f"{h}:00") for h in range(0, HOURS, 6)])
        told = [f"{name}: share of the most" for name in NAMES]
        heat = Heat(mean / most if most > 0 else mean, (0, 0, HOURS, DAYS), SHADES, rows=told)
        head = Words(np.array([[0.0, -0.45]]), [words], 10.0, GREY, "left", outside=True)
        y = Axis(DAYS, 0, "", () if i else days)
        panels.append(Panel("week", x, y, [heat, head], left=left + i * (wide + 0.55), width=wide, height=1.4))
    return panels
