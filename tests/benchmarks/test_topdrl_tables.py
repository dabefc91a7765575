"""The pages about TopDRL say what benchmarks/topdrl.csv holds, and their tables count as they claim."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import topdrl, topdrl_tables
from benchmarks.found import Found
from benchmarks.topdrl import GRID, WINDOWS, TopdrlRow, read, run
from benchmarks.topdrl_tables import full

ROW = TopdrlRow("sjf+overtake+closest", "small", 0, 10.0, 20.0, 50.0, 8.0, 0.3, 0.01, "", "2026", "abc")


def rows(policy: str, *means: float, suite: str = "small", weights: str = "") -> list[TopdrlRow]:
    """Return a row of each of the seeds from 0 on."""
    made = replace(ROW, policy=policy, workload=suite, weights=weights)
    return [replace(made, seed=seed, mean_jct=x, throughput=100 / x) for seed, x in enumerate(means)]


def test_the_pages_agree_with_the_rows() -> None:
    """Nobody changed a figure by hand, or rows without the pages."""
    assert read()
    assert topdrl_tables.write_page(check=True) == 0


def test_the_room_lies_between_the_best_rule_and_the_oracle() -> None:
    """A mean of 7 takes three quarters of the way from 10 to 6; a rule outside of the grid is not the best one."""
    some = [
        *rows(ROW.policy, 9, 11),
        *rows("fcfs+head+nearest", 12, 13),
        *rows("linear", 7, 7),
        *rows("oracle", 6, 6, 1),
    ]
    found = Found([*some, *rows("topdrl", 6, 8)])
    assert found.best("small", GRID) == ROW.policy
    assert (
        found.room("small", "topdrl", GRID, "oracle") == "75%"
        and found.room("small", "oracle", GRID, "oracle") == "100%"
    )
    assert Found(some[:2]).room("small", ROW.policy, GRID, "oracle") == ""
    line = topdrl_tables.summary(found).splitlines()[2]
    assert line.startswith("| small | `sjf+overtake+closest` 10 | -30.0% ± 127.1 |  |") and "| 75% |  |" in line


def test_differences_are_of_equal_seeds_and_newest_weights() -> None:
    """Shares of the rival's mean, bold beyond the interval; rows of replaced weights do not count."""
    old = rows("topdrl", 99, 99, 99, weights="old")
    found = Found([*old, *rows("topdrl", 8, 9, 10, 77, weights="new"), *rows(full("fcfs"), 10, 11, 12)])
    assert found.of("small", "topdrl") == {0: 8, 1: 9, 2: 10, 3: 77}
    assert "| `fcfs+overtake+closest` | **-18.2% ± 0.0** |" in topdrl_tables.rivals(found)
    assert found.apart("small", "topdrl", "srtf") is None


def test_gaps_are_of_proved_windows() -> None:
    """A window counts where the bound meets the oracle, and a policy there is optimal or has a gap."""
    some = [*rows("oracle", 10, 10, 10, suite=WINDOWS), *rows("bound", 10, 9, 10, suite=WINDOWS)]
    line = topdrl_tables.windows(Found([*some, *rows("linear", 10, 10, 12, suite=WINDOWS)])).splitlines()[2]
    assert line == "| `linear` | 10.00% | 19.00% | 50% | 6.67% |"


def test_a_window_is_proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a window the plan and its bound are rows, no policy is ahead of the plan, and bounds are of suites, too."""
    monkeypatch.setattr(topdrl, "JOBS", 4)
    path = tmp_path / "rows.csv"
    for suite in (WINDOWS, "small"):
        run([suite], ("linear", "oracle", "bound")[:: 1 if suite == WINDOWS else 2], [0], path, say=lambda words: None)
    found = Found(read(path))
    best, least, mine = (found.of(WINDOWS, name)[0] for name in ("oracle", "bound", "linear"))
    assert least == pytest.approx(best) and best <= mine
    assert found.of("small", "bound")[0] < found.of("small", "linear")[0]
    assert "1 of 1 windows proved" in topdrl_tables.windows(found)


def test_runs_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run makes no row again, and a policy or suite that is not there is left out, in words."""
    path, said = tmp_path / "rows.csv", list[str]()
    names = (GRID[0], "linear", "gone")
    run(["small", "philly"], names, [0, 1], path, tmp_path, say=said.append)
    made = read(path)
    assert [(r.policy, r.seed) for r in made] == [(p, s) for s in (0, 1) for p in names[:2]]
    assert all(r.mean_jct > 0 and r.commit for r in made)
    assert any("gone: left out" in x for x in said) and any("philly: left out" in x for x in said)
    monkeypatch.setattr(topdrl, "evaluate", lambda *given: pytest.fail("ran again"))
    run(["small"], names, [0, 1], path, tmp_path, say=said.append)
    assert read(path) == made
