"""Who had how much where."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.learned_speeds import slower_link
from gangplan.instances import InstanceError
from gangplan.learned.training.interference.samples import KnownSetting, Samples, rows_of
from gangplan.simulator.snapshots import Snapshots
from gangplan.systems.interference.case import InterferenceCase
from gangplan.systems.interference.truths import HiddenTruth


def made() -> Samples:
    """Return two snapshots of two servers in a rack each: jobs of types 0 and 1 together, then 0 alone."""
    numbers = ([0, 2, 3], [0, 1, 0], [0, 2, 3, 4], [0, 1, 0, 0], [2, 1, 1, 1], [0, 2, 0, 0])
    setting = KnownSetting(np.eye(2), np.array([2.0, 4.0]), np.array([[0, 1], [2, 3]]))
    return Samples(setting, Snapshots(*(np.array(x, dtype=np.int64) for x in numbers)), np.array([0.5, 0.8, 1.0]))


def test_rows() -> None:
    """Job 0 crosses NICs and uplinks with as many passes of its bytes as its workers and servers are apart."""
    samples = made()
    rows = rows_of(samples.now, samples.setting)
    # two workers on server 0, one worker and two servers on server 1: behind server 0 each worker sends to both servers
    # its halves, (2 * 2 + 0 * 1) / 2 = 2 passes; behind server 1 they are (1 * 0 + 2 * 2) / 2 = 2 as well
    assert rows.job.tolist() == [0, 0, 1, 2, 0, 0, 0, 0]
    assert rows.site.tolist() == [0, 1, 0, 0, 2, 3, 4, 5]
    assert rows.amount[:4].tolist() == [[2, 0, 0, 0], [1, 2, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]
    assert (rows.amount[4:] == [0, 0, 1, 1]).all() and rows.link.tolist() == [False] * 4 + [True] * 4
    assert rows.others(rows.amount[:, 0]).tolist() == [1, 0, 2, 0, 0, 0, 0, 0]


def test_ring() -> None:
    """Without parameter servers, bytes pass each link as often as a ring has it."""
    now = Snapshots(*(np.array(x, dtype=np.int64) for x in ([0, 1], [0], [0, 2], [0, 1], [3, 1], [0, 0])))
    rows = rows_of(now, made().setting)
    assert np.allclose(rows.amount[2:], [0, 0, 1, 0.5])  # 2 * 3 / 4


def test_combinations() -> None:
    """A job alone has none; the same types on another server, or more tasks of them, are the same one."""
    samples = made()
    each = samples.combination()
    assert each[0] == each[2] >= 0 and each[1] == each[3] == -1
    assert samples.touching(each[:1]).tolist() == [True, True, False]
    assert samples.only(samples.touching(each[:1])).known.tolist() == [True, True, False]


def test_parts(samples: Samples) -> None:
    """The first so many are whole snapshots with no more known speeds than were asked for."""
    some = samples.only(np.arange(len(samples.speed)) % 3 > 0).first(100)
    assert some.known.sum() == 100 and len(some.now) < len(samples.now)
    assert samples.first(10**9).known.sum() == len(samples.speed)


def test_links_are_those_of_the_truth(samples: Samples, case: InterferenceCase) -> None:
    """When a NIC gets slower, so do jobs that have a row on it, and no others."""
    assert isinstance(case.truth, HiddenTruth)
    rows = rows_of(samples.now, samples.setting)
    for server in range(6):
        speeds = slower_link(case.truth, server, 0.1).speeds(samples.now)
        slow = Samples.measured(samples.setting, samples.now, speeds)
        suffers = np.flatnonzero(slow.speed < 0.999 * samples.speed)
        assert len(suffers) and np.isin(suffers, rows.job[rows.site == 6 + server]).all()


@pytest.mark.parametrize(
    ("speed", "words"),
    [([1.0, 1.0], "speed: has 2 entries where 3"), ([1.0, 0.0, 1.0], r"speed\[1\]: 0.0 is not a positive number")],
)
def test_wrong_speeds(speed: list[float], words: str) -> None:
    """Speeds that cannot be are refused."""
    good = made()
    with pytest.raises(InstanceError, match=words):
        Samples(good.setting, good.now, np.array(speed))
