"""The study `ablation`: its instances are fresh, and how much worse a solve is."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import ablation
from benchmarks.ablation_tables import worse
from benchmarks.found import Found
from benchmarks.rows import Row, Task
from benchmarks.study import Options
from gangplan.hybrid.bench.suite import suite
from gangplan.instances import InstanceError
from gangplan.instances.documents import content_hash


def test_instances_are_fresh() -> None:
    """Each family has problems of its objective, of its variant, and none of them is in a suite."""
    known = {x.hash for x in suite("all")}
    for family in ablation.families():
        if not family.endswith("published"):
            small = ablation.problem_of(family, 2, Path())
            assert small.objective == family.split(", ")[0] and content_hash(small) not in known, family
            assert small.variant in (family.split(", ")[1].split()[0], "contiguous", ""), family
    with pytest.raises(InstanceError, match="0 files of step are there"):
        ablation.problem_of("step, published", 0, Path())


def test_a_block_is_whole_and_without_each_in_turn() -> None:
    """The first solve of a block says who had a turn; a method that had none is not left out."""
    block = [x for x in ablation.tasks(Options(seeds=1)) if x.case == "stages, ramp, 0.1 s"]
    assert block[0].policy == ablation.PROBE
    assert {x.policy for x in block[1:]} == {"auto", "without ideals", "without chain"}
    figures = ablation.measure(Task("stages, ramp, 0.1 s", "without lns", 2), Options())
    assert figures == {"idle": 1.0}


def test_worse() -> None:
    """Plans and bounds count in shares of the best value above zero, claims in shares of the limit; no plan is all."""
    whole = {"value": 3.0, "bound": 2.0, "zero": 1.0, "claimed": 0.5}
    others = ({"value": 4.0, "bound": 1.5, "zero": 1.0}, {"zero": 1.0, "claimed": 0.25}, {"idle": 1.0})
    rows = [Row(Task("step, ramp, 1 s", policy, i), x) for i, y in enumerate(others)
            for policy, x in (("auto", whole), ("without lns", y))]  # fmt: skip
    found = worse(Found(rows, lambda row: row.task[:2]), "step", "without lns", "auto")
    assert found == {
        ("ramp", 0): [(0.5, 0.25, 0.5)], ("ramp", 1): [(1.0, 0.5, -0.25)], ("ramp", 2): [(0.0, 0.0, 0.0)],
    }  # fmt: skip
