"""The tables about TopDRL count as they claim, and its study runs policies, oracles and bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import topdrl, topdrl_tables
from benchmarks.found import Found
from benchmarks.rows import Row, Task, read
from benchmarks.study import Options
from benchmarks.topdrl import STUDY
from benchmarks.topdrl_tables import GRID, WINDOWS, full
from gangplan.learned.online.guard import Guard

RULE = "sjf+overtake+closest"


def rows(policy: str, *means: float, suite: str = "small") -> list[Row]:
    """Return a row of each of the seeds from 0 on."""
    return [Row(Task(suite, policy, seed), {"mean_jct": x, "throughput": 100 / x}) for seed, x in enumerate(means)]


def test_a_rule_outside_of_the_grid_is_not_the_best_one() -> None:
    """The best rule of the grid stands first, then how far others are from it."""
    some = [*rows(RULE, 9, 11), *rows("fcfs+head+nearest", 12, 13), *rows("patient", 7, 7), *rows("oracle", 6, 6, 1)]
    found = Found([*some, *rows("gnn", 6, 8)], STUDY.alike)
    assert found.best("small", GRID) == RULE
    line = topdrl_tables.summary(found).splitlines()[2]
    assert line.startswith(f"| small | `{RULE}` 10 | -30.0% ± 127.1 |") and line.endswith("| 75% |")


def test_rivals() -> None:
    """A rival stands with the discipline that suits it, and what TopDRL is below it."""
    found = Found([*rows("topdrl", 8, 9, 10, 77), *rows(full("fcfs"), 10, 11, 12)], STUDY.alike)
    assert "| `fcfs+overtake+closest` | **-18.2% ± 0.0** |" in topdrl_tables.rivals(found)


def test_gaps_are_of_proved_windows() -> None:
    """A window counts where the bound meets the oracle, and a policy there is optimal or has a gap."""
    some = [*rows("oracle", 10, 10, 10, suite=WINDOWS), *rows("bound", 10, 9, 10, suite=WINDOWS)]
    line = topdrl_tables.windows(Found([*some, *rows("linear", 10, 10, 12, suite=WINDOWS)], STUDY.alike)).splitlines()[
        2
    ]
    assert line == "| `linear` | 10.00% | 19.00% | 50% | 6.67% |"


def test_scheduler_is_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows stand beside ours: where nobody is due and no guard compares, they have the same means."""
    monkeypatch.setattr("gangplan.learned.online.policy.Guard", lambda *of, guarded: Guard(*of, guarded=False))
    path = tmp_path / "rows.csv"
    STUDY.run(Options(("small",), ("scheduler-patient", "scheduler-gnn", "patient", "gnn"), seeds=1, rows=path))
    found = Found(read(path), STUDY.alike)
    cells = topdrl_tables.near(found).splitlines()[2].split("|")
    assert cells[1].strip() == "small" and "+0.0%" not in cells[4]
    assert "+0.0%" in cells[5] and found.of("small", "patient") == found.of("small", "scheduler-patient")


def test_a_window_is_proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a window the plan and its bound are rows, no policy is ahead of the plan, and bounds are of suites, too."""
    monkeypatch.setattr(topdrl, "JOBS", 4)
    path = tmp_path / "rows.csv"
    for suite in (WINDOWS, "small"):
        STUDY.run(Options((suite,), ("linear", "oracle", "bound")[:: 1 if suite == WINDOWS else 2], seeds=1, rows=path))
    found = Found(read(path), STUDY.alike)
    best, least, mine = (found.of(WINDOWS, name)[0] for name in ("oracle", "bound", "linear"))
    assert least == pytest.approx(best) and best <= mine
    assert found.of("small", "bound")[0] < found.of("small", "linear")[0]
    assert "1 of 1 windows proved" in topdrl_tables.windows(found)


def test_what_is_not_there_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A policy or suite that is not there is left out, in words; the others are run."""
    options = Options(("small", "philly"), (GRID[0], "gone"), seeds=2, data=tmp_path, rows=tmp_path / "rows.csv")
    made, said = STUDY.run(options), capsys.readouterr().out
    assert [(x.task.policy, x.task.seed) for x in made] == [(GRID[0], 0), (GRID[0], 1)]
    assert all(x.figures["mean_jct"] > 0 for x in made)
    assert "small gone: left out" in said and "philly: left out" in said
