"""The study of durations tests on windows on which nothing was tuned, and counts as it claims."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.durations import STUDY, tasks
from benchmarks.durations_tables import KNOWLEDGE, OURS, RULES, STOPPING, hindsight, percent, ratios, rivals
from benchmarks.durations_traces import CASES, LAST, TEST, TUNING, _window
from benchmarks.found import Found
from benchmarks.rows import Row, Task
from benchmarks.study import Options
from gangplan.instances.workload import Workload


def test_windows_are_apart() -> None:
    """No job is in two windows, and those for tuning come before those for testing."""
    n = 120
    work = Workload(tuple(map(str, range(n))), np.arange(n)[::-1] * 1.0, np.ones(n, dtype=int), np.ones(n))
    submits = {w: _window(work, np.arange(n), w).submit.tolist() for w in (*TUNING, *TEST, LAST)}
    every = [time for times in submits.values() for time in times]
    assert len(every) == len({*every})
    assert max(submits[TUNING[-1]]) < 60 <= min(submits[TEST[0]]) and max(every) == 119
    assert [len(submits[w]) for w in (*TUNING, *TEST, LAST)] == [10] * 9  # every other of 20, and all of 10


def test_nothing_of_ours_is_run_on_windows_for_tuning() -> None:
    """All that is run there are rivals, and `Scheduler` is run on every other window."""
    every = [*tasks(Options())]
    assert len(every) == len({*every})
    ours = {task for task in every if task.policy not in (*RULES, *STOPPING)}
    assert {task.seed for task in ours} == {*TEST, LAST}
    assert len([task for task in ours if task.policy in OURS]) == 2 * len(CASES) * len(KNOWLEDGE) * (len(TEST) + 1)


def found(ours: float) -> Found:
    """Return rows: rivals have 100 s, but SJF with EASY 90 s on windows for tuning, and FIFO 80 s on the others."""
    rows = []
    for task in tasks(Options()):
        jct = 100.0
        if task.policy == "sjf easy" and task.seed in TUNING:
            jct = 90.0
        if task.policy == "fifo overtake" and task.seed in TEST:
            jct = 80.0
        if task.policy in OURS:
            jct = ours if task.case.endswith("known") else 110.0
        rows.append(Row(task, dict.fromkeys(STUDY.figures, jct)))
    return Found(rows, STUDY.alike)


def test_rivals_are_chosen_on_windows_for_tuning() -> None:
    """SJF with EASY is best there, and stays the rival though FIFO is best on the windows for testing."""
    assert rivals(found(70.0), CASES[0].name, "limits") == ("sjf easy", "sjf easy")


@pytest.mark.parametrize(("ours", "best"), [(70.0, 70.0), (90.0, 80.0)])
def test_the_room_is_what_anybody_reached(ours: float, best: float) -> None:
    """Hindsight takes FIFO, or ours with durations known where that is less; ours has 110 s of 100 s."""
    assert hindsight(found(ours), CASES[0].name, False, "mean_jct").tolist() == [best] * len(TEST)
    logs = ratios(found(ours), "nothing", 1)
    assert logs is not None and np.allclose(np.exp(logs[:, 0, 0]), [1.1, ours / 100, best / 100])


def test_interval_of_two_windows() -> None:
    """Of ratios 0.8 and 0.9 the mean is that of their logarithms; with one degree of freedom t is 12.71."""
    logs = np.log([0.8, 0.9])
    margin = 12.706 * logs.std(ddof=1) / np.sqrt(2)
    assert percent(logs) == f"{np.sqrt(0.72) - 1:+.1%} ± {np.sqrt(0.72) * margin:.1%}"


def test_rows_are_of_the_study() -> None:
    """Every row that is shipped is of a task of the study."""
    every = {*tasks(Options())}
    assert {Task(case, policy, seed) for (case, policy), seeds in STUDY.found().runs.items() for seed in seeds} <= every
