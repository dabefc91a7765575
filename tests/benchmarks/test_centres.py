"""The tables of many schedulers count as they claim."""

from __future__ import annotations

from benchmarks.centres import PARTS, compared, policies_of
from benchmarks.found import Found
from benchmarks.harmony import STUDY
from benchmarks.rows import Row, Task
from gangplan.systems.interference.cases import OF_AGENTS


def test_every_case_is_a_data_centre() -> None:
    """Tables name cases that there are; whoever is compared on one case is so on all of its table."""
    assert {case for cases, _ in PARTS.values() for case in cases} <= set(OF_AGENTS)
    assert policies_of("flat") == policies_of("fat-tree") != policies_of("flat-wide")
    assert policies_of("poisson") == ()


def test_compared() -> None:
    """A mean is in minutes, and the first policy's is less by a share of it, paired by seed."""
    means = {"market": (3000.0, 3060.0), "lif": (6000.0, 6120.0)}
    rows = [Row(Task("flat", p, seed), {"mean_jct": x}) for p, of in means.items() for seed, x in enumerate(of)]
    lines = compared(Found(rows, STUDY.alike), ["flat"], ["market", "lif", "lb"]).splitlines()[2:]
    assert lines[0] == "| `market` | 50.5 |  |"
    assert lines[1].startswith("| `lif` | 101 | **-50.0% ±") and len(lines) == 2
