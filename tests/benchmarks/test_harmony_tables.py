"""docs/harmony.md says what benchmarks/harmony.csv holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks import harmony_tables
from benchmarks.found import Found
from benchmarks.harmony import HarmonyRow, read, run

ROW = HarmonyRow("lif", "shared", 0, 600.0, 900.0, 7200.0, 1e4, "", "2026", "abc")


def rows(policy: str, *means: float) -> list[HarmonyRow]:
    """Return a row of each of the seeds from 0 on."""
    return [replace(ROW, policy=policy, seed=seed, mean_jct=60 * x) for seed, x in enumerate(means)]


def test_the_page_agrees_with_the_rows() -> None:
    """Nobody changed a figure by hand, or rows without the page."""
    assert harmony_tables.write_page(check=True) == 0


def test_rules_are_the_tuned_ones() -> None:
    """The best rule is none of the published ones; ours goes three quarters of the way to the better oracle."""
    some = [*rows("lif", 9, 11), *rows("lb-published", 1, 1), *rows("oracle-patient", 7, 7)]
    found = Found([*some, *rows("oracle-consolidated", 6, 6), *rows("colocate", 7, 7), *rows("harmony", 12, 12)])
    line = harmony_tables.summary(found).splitlines()[2]
    assert line.startswith("| `shared` | `lif` 10 |") and line.endswith("| **-41.7% ± 0.0** |  | 75% |")


def test_runs_what_is_missing(tmp_path: Path) -> None:
    """A second run makes no row again; a policy that is not there is left out, in words."""
    path, said = tmp_path / "rows.csv", list[str]()
    for _ in range(2):
        run(["ps"], ("lif", "gone"), [0], path, folder=tmp_path, say=said.append)
    assert [(x.policy, x.seed) for x in read(path)] == [("lif", 0)]
    assert sum("gone" in x for x in said) == 2
