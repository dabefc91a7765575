"""The picture: its family of problems, teachers that play and compare, tables and drawing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.found import Found
from benchmarks.picture import (
    CUT,
    EXACT,
    FIRST,
    NETWORK,
    PATIENT,
    PLAYED,
    PROBES,
    SEARCH,
    STUDY,
    Teacher,
    measure,
    tasks,
    world,
)
from benchmarks.picture_figure import SHOWN, SIZES, draw, ratios, sizes
from benchmarks.rows import Row, Task, digest
from benchmarks.study import Options
from gangplan.learned.online.policy import GnnPolicy
from gangplan.learned.policy.weights import find
from gangplan.simulator.gangs.arrays import begin
from gangplan.simulator.gangs.mixes import VALIDATION


def test_a_family_of_one_load() -> None:
    """Of every size: as many GPUs as it says, gangs of up to a quarter, others to draw futures from."""
    for case in SIZES:
        jobs, cluster, pool = world(case, 0)
        gpus = int(case.replace(",", ""))
        assert cluster.first[-1] == gpus and jobs.gpus.max() <= min(gpus // 4, 64)
        assert len(pool.submit) > 1000 and not np.array_equal(jobs.work[:9], pool.work[:9])


@pytest.mark.parametrize("policy", [SEARCH, CUT])
def test_a_teacher_plays_to_the_end(policy: str) -> None:
    """All jobs start, and its time is that of its decisions; with probes only a few decisions are made."""
    given, net = world("8", 0), GnnPolicy.load(find("gnn"))
    state, teacher = begin(given.jobs, given.cluster), Teacher(given, policy, 0, net)
    teacher.play(state)
    assert np.isfinite(state.finish).all() and teacher.decisions > 3 and teacher.seconds > 0
    some = Teacher(given, policy, 0, net)
    some.play(begin(given.jobs, given.cluster), probes=PROBES)
    assert some.decisions == PROBES


def test_what_is_run() -> None:
    """Each size has the rules and the network; teachers have validation seeds; tuned weights only where they are."""
    every = list(tasks(Options()))
    assert {x.policy for x in every if x.case == "10,240"} == {FIRST, PATIENT, NETWORK}
    assert all((x.seed >= VALIDATION) == x.case.startswith("teachers") for x in every)
    assert not any(x.policy == "gnn-imitation" for x in every)
    assert max(PLAYED.values()) < 10_240


def test_a_row() -> None:
    """A rule's row has a mean JCT and a time."""
    figures = measure(Task("8", PATIENT, 1), Options())
    assert figures["mean_jct"] is not None and figures["mean_jct"] > 0 and figures["seconds"] is not None


def test_the_best_is_of_each_seed(tmp_path: Path) -> None:
    """Ratios are to the least mean of any policy on a seed; who was only timed has none, and is drawn all the same."""
    rows = [Row(Task("8", p, s), {"mean_jct": x, "seconds": 1e-3}) for p, s, x in
            ((PATIENT, 0, 10.0), (PATIENT, 1, 4.0), (NETWORK, 0, 5.0), (NETWORK, 1, 5.0))]  # fmt: skip
    found = Found([*rows, Row(Task("8", EXACT, 0), {"seconds": 2.0})], STUDY.alike)
    assert ratios(found, "8", PATIENT).tolist() == [2.0, 1.0] and ratios(found, "8", NETWORK).tolist() == [1.0, 1.25]
    line = next(x for x in sizes(found).splitlines() if SHOWN[EXACT][0] in x)
    assert line.split(" | ")[1] == "2 s"
    draw(found, tmp_path / "picture.svg")
    assert "<svg" in (tmp_path / "picture.svg").read_text()


def test_rows_are_of_the_weights_that_ship() -> None:
    """The network in the picture is the one that ships."""
    found = STUDY.found()
    for case in SIZES:
        assert {row.task.weights for row in found.runs[case, NETWORK].values()} == {digest(find("gnn"))}
