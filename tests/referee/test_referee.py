"""What gangplan answers, against the evaluators beside this: ``python -m tests.referee`` does it on many more."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan import solve
from gangplan.instances import RampTopology
from tests.seeds import some

from . import schedule
from .__main__ import resumed
from .brute import Brute, brute
from .compare import WRONG, Tally, compare
from .problems import PROBLEMS

OLD = {
    "throughput": (111, 378), "latency": (536,), "step": (27, 60, 314), "stages": (438,),
    "schedule": (326, 382, 577, 747),
}  # fmt: skip
"""Those on which something was once wrong."""
FIRST = dict.fromkeys(PROBLEMS, tuple(range(25))) | {"placement": (*range(11), *range(12, 20))}
"""The first few, of which each run plays a third; 11 of placement takes its whole limit of 60 s."""


@pytest.mark.parametrize("objective", PROBLEMS)
def test_agrees(objective: str) -> None:
    """Values, feasibility, bounds and statuses are those of the pages."""
    tally = Tally()
    for seed in (*some(FIRST[objective], 3), *OLD.get(objective, ())):
        compare(objective, seed, tally)
    assert not any(tally.counts[x] for x in WRONG), "\n".join(tally.wrong)
    assert tally.counts["optima"] > tally.counts["open"] and tally.counts["drawn"] > 0


NASTY = {
    "throughput": (3327,),
    "latency": (101, 272, 1724),
    "step": (39, 237),
    "stages": (6535, 8113),
    "placement": (24, 733, 878, 1004, 1373, 2473),
    "schedule": (436, 4137),
}
"""Those on which a method was once wrong, ended with an error or filled the memory."""


@pytest.mark.parametrize("objective", PROBLEMS)
def test_methods_at_nasty_scales(objective: str) -> None:
    """Every method by its name keeps to what the referee says, and exact ones that end prove their answers."""
    tally = Brute()
    for seed in (*range(6), *NASTY.get(objective, ())):
        brute(objective, seed, tally)
    assert not any(tally.counts[x] for x in (*WRONG, "unproved")), "\n".join(tally.wrong)
    assert tally.counts["optima"] > 0 and tally.counts["answers"] >= 18


def test_counts_go_on(tmp_path: Path) -> None:
    """Counts that are kept in a file are those of one go."""
    state = tmp_path / "step.json"
    for instances in (2, 4):
        tally, _ = resumed(state, "step", 0, instances)
    whole, _ = resumed(tmp_path / "whole.json", "step", 0, 4)
    assert all(tally.counts[x] == whole.counts[x] for x in ("instances", "infeasible", "answers"))
    assert tally.counts["instances"] == 4


@pytest.mark.long
@pytest.mark.parametrize("objective", PROBLEMS)
def test_twenty_thousand_at_nasty_scales(objective: str) -> None:
    """Of 20,000 problems no method that proves has a wrong value or a wrong word; it goes on where it was."""
    tally, _ = resumed(Path(f"build/nasty/{objective}.json"), objective, 0, 20_000)
    assert not any(tally.counts[x] for x in WRONG), "\n".join(tally.wrong)


@pytest.mark.parametrize("seed", [111, 378])
def test_local_search_keeps_the_memory(seed: int) -> None:
    """Annealing offers no plan that breaks a limit of some nanobytes which a gigabyte has passed through."""
    problem = PROBLEMS["throughput"].draw(seed)
    result = solve(problem, time_limit=60, method="local_search", workers=1)
    assert not any("failed" in note for note in result.notes)


def test_exact_beside_large_weights() -> None:
    """The recurrence of stages sees weights of nanobytes beside a gigabyte, and so is exact."""
    problem = PROBLEMS["stages"].draw(438)
    result = solve(problem, time_limit=60, method="ideals", workers=1)
    assert result.status == "OPTIMAL" and result.objective == pytest.approx(7.5e-9, rel=1e-9)


def test_blocks_of_ramp() -> None:
    """A mesh of 4 x 4 x 2 has the 195 blocks of one server or an even number up to 16 that the page of PAC-ML has."""
    mesh = RampTopology(4, 4, 2)
    assert sum(len(schedule.blocks(mesh, k)) for k in (1, 2, 4, 6, 8, 10, 12, 14, 16)) == 195
