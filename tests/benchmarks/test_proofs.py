"""The study `proofs`: what is sampled, how gaps are counted, and pages that tell what the library holds."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from benchmarks import proofs, proofs_library, proofs_tables
from benchmarks.found import Found
from benchmarks.rows import ROOT, Row, Task
from benchmarks.study import Options
from gangplan.hybrid.bench.best_known import closed
from gangplan.hybrid.bench.suite import SIZES

NOWHERE = Options(data=Path("nowhere"))


def test_the_sample() -> None:
    """Two instances of each objective, family and size that there is, the first and one from the middle."""
    groups = proofs.chosen()
    assert {len(own) for own in groups.values()} <= {1, 2}
    assert [x.id[-2:] for x in groups["step, random, medium"]] == ["00", "10"]
    sizes = [name.rpartition(", ")[2] for name in groups]
    assert sizes == sorted(sizes, key=SIZES.index) and len(groups) == len(set(groups)) > 100


def test_tasks() -> None:
    """Every deadline and label has its rows; certificates are of toy and small instances, at one deadline."""
    found = list(proofs.tasks(Options(policies=("before", "after"), data=Path("nowhere"))))
    assert len(set(found)) == len(found)
    plain = [x for x in found if not x.policy.endswith(proofs.CERTIFY)]
    assert {x.policy for x in plain} == {"before", "after"} and len(plain) % (2 * len(proofs.DEADLINES)) == 0
    rest = [x for x in found if x.policy.endswith(proofs.CERTIFY)]
    assert {x.case.split(", ")[2] for x in rest} == {"toy", "small"} and all(x.case.endswith(", 10 s") for x in rest)


def test_a_gap() -> None:
    """No plan or no bound is 100%; a proof that there is no plan is no gap; gaps count from zero."""
    assert proofs_tables.gap_of({"seconds": 1.0, "failed": 1.0}) == 1.0 == proofs_tables.gap_of({"value": 2.0})
    assert proofs_tables.gap_of({"infeasible": 1.0}) is None and not proofs_tables.proved({"infeasible": 1.0})
    assert proofs_tables.gap_of({"value": 14.0, "bound": 13.0, "zero": 10.0}) == 0.25
    assert proofs_tables.proved({"value": 2.0, "bound": 2.0}) and not proofs_tables.proved({"value": 2.0, "bound": 1.9})


def row(case: str, policy: str, seed: int, **figures: float) -> Row:
    """Return a row."""
    return Row(Task(case, policy, seed), {"seconds": 1.0, "zero": 0.0, **figures})


def test_tables() -> None:
    """Means are over instances, an infeasible one left out, of the newest label alone."""
    rows = [
        row("step, ramp, medium, 1 s", "before", 0, value=2.0, bound=1.0, load=3.0),
        row("step, ramp, medium, 1 s", "before", 1, infeasible=1.0),
        row("step, ramp, medium, 10 s", "before", 0, value=2.0, bound=2.0),
        row("step, ramp, medium, 1 s", "after", 0, value=2.0, bound=1.5),
        row("latency, ramp, huge, 1 s", "before", 0, value=2.0),
    ]  # fmt: skip
    found = Found(rows, lambda row: row.task[:2])
    head, _, *lines = proofs_tables.gaps(found).splitlines()
    assert head == "| 1 s, % | medium | large | huge |"
    assert lines == ["| step, ramp | 25.00 |  |  |"]
    *_, every, solves = proofs_tables.gaps_in_short(found).splitlines()
    assert every == "| all | 25.00% |" and solves == "| solves | 1 |"


@pytest.mark.parametrize("policy", ["now", "now, certify"])
def test_a_measure(policy: str) -> None:
    """A solve is proved, its certificate is checked, and proves no more than the plan costs."""
    found = proofs.measure(Task("throughput, random, toy, 10 s", policy, 0), NOWHERE)
    assert proofs_tables.proved({name: x for name, x in found.items() if x is not None})
    if policy.endswith(proofs.CERTIFY):
        assert found["certified"] == 1.0 and (found["bytes"] or 0) > 50
        assert math.isclose(found["proves"] or 0, found["value"] or 1, rel_tol=2e-6)
        assert (found["proves"] or 0) <= (found["value"] or 0)


def test_open_problems_are_open() -> None:
    """The page tells twelve instances, each once, that are open; who closes one takes another."""
    page = (ROOT / "docs" / "open-problems.md").read_text()
    told = re.findall(r"^- \*\*`([\w-]+)`\*\*", page, re.MULTILINE)
    assert sorted(told) == sorted(proofs_library.OPEN) and len(set(told)) == 12
    assert len(page.split()) <= 700
    records = proofs_library.RECORDS
    assert [name for name in told if closed(proofs_library.EVERY[name], records.get(name))] == []
