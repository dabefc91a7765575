"""The study `proved`: which problems it has, and how it counts."""

from __future__ import annotations

from benchmarks import proved
from benchmarks.found import Found
from benchmarks.rows import Row, Task
from gangplan.hybrid.bench.suite import make, suite
from gangplan.instances.documents import content_hash
from gangplan.solvers.method import OBJECTIVES


def test_problems_are_fresh() -> None:
    """Each objective has 36 toy and small problems, and those that are drawn are in no suite."""
    known, drawn = {x.hash for x in suite("all")}, 0
    for name in (x for x in OBJECTIVES if x != "layout"):
        own = proved.problems()[name]
        assert len(own) == len({repr(x) for x in own}) == proved.SAMPLE
        for x in own[::12]:
            # networks as published, and pipelines of equal stages, are no random choice
            if x.family not in ("architecture", "even", "turns", "vee"):
                assert content_hash(make(x)) not in known, x.id
                drawn += 1
    assert drawn > 10
    assert len({x.goal for x in proved.gangs()}) == 4 and any(x.running for x in proved.gangs())


def test_shares() -> None:
    """A claim counts if it came within the limit, and is proved or not."""
    figures = (
        {"claimed": 1.0, "proved": 1.0, "certified": 1.0}, {"claimed": 5.0, "proved": 0.0, "certified": 0.0},
        {"claimed": 5.1, "proved": 1.0, "certified": 0.0}, {"proved": 0.0, "certified": 0.0},
    )  # fmt: skip
    rows = [Row(Task("step", "auto", i), x) for i, x in enumerate(figures)]
    *_, line = proved.shares(Found(rows, lambda row: row.task[:2])).splitlines()
    assert line == "| step | 4 | 2 | 1 | 50% | 1 |"
