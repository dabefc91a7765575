"""The tables of docs/harmony.md count as they claim, and its study runs policies on cases."""

from __future__ import annotations

from pathlib import Path

from benchmarks import harmony_tables
from benchmarks.found import Found
from benchmarks.harmony import STUDY
from benchmarks.rows import Row, Task
from benchmarks.study import Options


def rows(policy: str, *means: float) -> list[Row]:
    """Return a row of each of the seeds from 0 on, of means in minutes."""
    return [Row(Task("shared", policy, seed), {"mean_jct": 60 * x}) for seed, x in enumerate(means)]


def test_rules_are_the_tuned_ones() -> None:
    """The best rule is none of the published ones; ours goes three quarters of the way to the better oracle."""
    some = [*rows("lif", 9, 11), *rows("lb-published", 1, 1), *rows("oracle-patient", 7, 7)]
    some += [*rows("oracle-consolidated", 6, 6), *rows("colocate", 7, 7), *rows("harmony", 12, 12)]
    line = harmony_tables.summary(Found(some, STUDY.alike)).splitlines()[2]
    assert line.startswith("| `shared` | `lif` 10 |") and line.endswith("| **-41.7% ± 0.0** | 75% |")


def test_a_policy_is_simulated(tmp_path: Path) -> None:
    """A rule has its figures; a policy that is not there is left out, in words."""
    said = list[str]()
    options = Options(("ps",), ("lif", "gone"), seeds=1, rows=tmp_path / "rows.csv", weights=tmp_path)
    (row,) = STUDY.run(options, said.append)
    assert row.task == Task("ps", "lif", 0) and set(row.figures) == set(STUDY.figures)
    assert any(x.startswith("ps gone: left out") for x in said)
