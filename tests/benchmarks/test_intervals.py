"""The study of start intervals counts as it claims, its rivals learn, and its rows are all there."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.found import Found
from benchmarks.intervals import RIVALS, STUDY, Asked, Sizes, intervals, judged, measure, tasks
from benchmarks.intervals_traces import CASES, told
from benchmarks.rows import Row, Task, read
from benchmarks.study import Options


def test_rows_are_of_the_study() -> None:
    """There is one row at most of every trace and kind of durations, and none of another."""
    found = [x.task for x in read(STUDY.path)]
    assert len(set(found)) == len(found) > 0 and {*found} <= {*tasks(Options())}


def test_figures_by_hand() -> None:
    """Of two jobs of which all were told, one starts in [0, 10] and one 5 s after [0, 20]; a third was not told of.

    The loss of the first is 5% of the way from each end, (4 + 6) * 0.05; of the second 25 * 0.05 + 5 * 0.95 - but the
    lower end is 25 s before, the upper one 5 s: 1.25 + 4.75. The mean of both ends and jobs is (0.5 + 6) / 4.
    """
    ends = {0: (0.0, 10.0), 1: (0.0, 20.0), 2: None}
    asked = [Asked("ours", job, 0.0, told) for job, told in ends.items()]
    asked += [Asked("plain", job, 0.0, (0.0, 30.0)) for job in range(3)]
    figures = judged(asked, {0: 4.0, 1: 25.0, 2: 7.0}, 4)
    assert figures["asked"] == 2 and figures["ours_cover"] == 0.5 and figures["all"] == 0.75
    assert figures["ours_median"] == figures["ours_mean"] == 15.0 and figures["ours_loss"] == pytest.approx(6.5 / 4)
    assert figures["plain_cover"] == 1.0 and "later_cover" not in figures


@pytest.mark.parametrize("adapted", [False, True])
def test_a_rival_learns_the_waits_of_a_size(adapted: bool) -> None:
    """Jobs of one GPU wait about 10 s and those of two about 1000 s: so its intervals say."""
    rng, rival = np.random.default_rng(0), Sizes(adapted)
    for job in range(400):
        size = 1 + job % 2
        rival.ask(0.0, job, size)
        wait = float((10.0, 1000.0)[size - 1] * rng.uniform(0.9, 1.1))
        rival.learn(wait, job, size, wait)
    (low, high), (wide_low, wide_high) = (rival.ask(0.0, 400 + size, size) for size in (1, 2))
    assert 8.9 < low < high < 12.3 and 890 < wide_low < wide_high < 1230


def test_who_waits_too_long_is_missed_at_once() -> None:
    """A job that waits beyond its interval raises the rival's upper end before it starts, and only once."""
    rival = Sizes(True)
    for job in range(60):
        rival.learn(10.0 + job, job, 1, 10.0 + job)
    rival.ask(0.0, 99, 1)
    rival.pass_by(1e6)
    high = rival._levels.high
    assert high > 1.0
    rival.learn(2e6, 99, 1, 2e6)
    assert rival._levels.high == high


def test_limits_are_never_too_short() -> None:
    """They are three times too long in the median, and never shorter than the job."""
    work = next(case for case in CASES if case.name == "generated, diurnal, tuned on").make(Options().data)
    factor = told(work, "limits") / work.duration
    assert factor.min() == 1.0 and np.median(factor) == pytest.approx(3.0, rel=0.1) and factor.max() > 20
    assert told(work, "known") is True and told(work, "history") is False


def test_a_line_of_the_table() -> None:
    """It has shares, and widths and losses over the rival's."""
    figures = {"asked": 100.0, "ours_cover": 0.9, "later_cover": 0.88, "ours_median": 600.0, "ours_loss": 5.0}
    for who, times in zip(RIVALS, (2, 4), strict=True):
        figures |= {f"{who}_cover": 0.8, f"{who}_median": 600.0 * times, f"{who}_loss": 5.0 * times}
    line = intervals(Found([Row(Task("openb", "known", 0), figures)], STUDY.alike)).splitlines()[2]
    assert line == "| openb | 90.0% ± 5.9% | 88.0% | 80.0% | 80.0% | -50% | -50% |"


@pytest.mark.skipif(not (Options().data / "philly" / "philly.csv.gz").exists(), reason="no published data")
def test_a_trace_is_measured() -> None:
    """Of 422 jobs some wait and are asked of; the same run gives the same figures."""
    found = measure(Task("Philly, 2869ce", "known", 0), Options())
    assert 200 < found["asked"] <= found["waited"] < found["jobs"] == 422
    assert 0.7 < found["ours_cover"] < 1.0 and found["all"] > found["ours_cover"]
