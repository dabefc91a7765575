"""docs/interference.md says what benchmarks/harmony.csv holds of many schedulers."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.centres import PARTS, compared, policies_of, write_page
from benchmarks.found import Found
from benchmarks.harmony import HarmonyRow
from gangplan.simulator.interference.cases import OF_AGENTS

ROW = HarmonyRow("market", "flat", 0, 3000.0, 9000.0, 20000.0, 100.0, "", "d", "c")


def test_page_is_of_the_rows() -> None:
    """`python -m benchmarks harmony page` would change nothing."""
    assert write_page(check=True) == 0


def test_every_case_is_a_data_centre() -> None:
    """Tables name cases that there are; whoever is compared on one case is so on all of its table."""
    assert {case for cases, _ in PARTS.values() for case in cases} <= set(OF_AGENTS)
    assert policies_of("flat") == policies_of("fat-tree") != policies_of("flat-wide")
    assert policies_of("poisson") == ()


def test_compared() -> None:
    """A mean is in minutes, and the first policy's is less by a share of it, paired by seed."""
    rows = [ROW, replace(ROW, seed=1, mean_jct=3060.0)]
    rows += [replace(row, policy="lif", mean_jct=2 * row.mean_jct) for row in rows]
    lines = compared(Found(rows), ["flat"], ["market", "lif", "lb"]).splitlines()[2:]
    assert lines[0] == "| `market` | 50.5 |  |"
    assert lines[1].startswith("| `lif` | 101 | **-50.0% ±") and len(lines) == 2
