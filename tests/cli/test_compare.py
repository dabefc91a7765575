"""`gangplan compare`: plans side by side, each verified under its own objective."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.cli.compare import Candidate, measure
from gangplan.instances import (
    Cluster,
    DeviceType,
    GraphProblem,
    OpGraph,
    PartitionPlan,
    PartitionProblem,
    Plan,
    StagesPlan,
    StagesProblem,
    StepPlan,
    StepProblem,
    content_hash,
    dump,
    with_objective,
)

GPU = DeviceType("gpu", memory=100.0)


def diamond(contention: bool = False) -> StepProblem:
    """Return a -> b, c -> d of 2, 3, 4 and 1 s, outputs of 1 byte over links of 1 byte/s, on three devices."""
    none, size = np.full(4, -1), np.array([10.0, 20.0, 30.0, 40.0])
    graph = OpGraph(
        ("a", "b", "c", "d"),
        ("gpu",),
        [[2.0, 3.0, 4.0, 1.0]],
        size,
        size,
        np.ones(4),
        [0, 0, 1, 2],
        [1, 2, 3, 3],
        np.ones(4),
        none,
        none,
        np.zeros(4, dtype=bool),
    )
    return StepProblem(graph, Cluster.flat((GPU, 3), bandwidth=1.0), contention)


OPS = ("a", "b", "c", "d")
ALONE = StepPlan(OPS, [0, 0, 0, 0], [0.0, 2.0, 5.0, 9.0])
"""All on one device: 10 s."""
SPLIT = StepPlan(OPS, [0, 1, 0, 0], [0.0, 3.0, 2.0, 7.0])
"""b elsewhere: it runs from 3 to 6, is back at 7, and d is done at 8 s."""
QUEUED = StepPlan(OPS, [0, 1, 0, 0], [0.0, 3.0, 2.0, 7.0], [0, 1], [1, 0], [2.0, 6.0])
"""The same with contention."""
MIRRORED = StepPlan(OPS, [2, 1, 2, 2], [0.0, 3.0, 2.0, 7.0])
EARLY = StepPlan(OPS, [0, 1, 0, 0], [0.0, 2.0, 2.0, 7.0])
"""b starts before its input is there."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the problem and its plans, each in a file of its name."""
    (tmp_path / "diamond.json").write_text(dump(diamond()))
    plans = {"alone": ALONE, "split": SPLIT, "queued": QUEUED, "mirrored": MIRRORED, "early": EARLY}
    for name, plan in plans.items():
        (tmp_path / f"{name}.json").write_text(dump(plan))
    return tmp_path


def run(cli: Any, folder: Path, *names: str, options: tuple[str, ...] = ()) -> Any:
    """Compare the named plans of the diamond."""
    return cli("compare", *(folder / f"{name}.json" for name in names), "--problem", folder / "diamond.json", *options)


def data(cli: Any, folder: Path, *names: str, options: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Return what `compare --json` says of the named plans."""
    done = run(cli, folder, *names, options=(*options, "--json"))
    assert done.code in {0, 1}, done.err
    found: list[dict[str, Any]] = json.loads(done.out)["plans"]
    assert (done.code == 0) == all(x["feasible"] for x in found)
    return found


def claim(folder: Path, name: str, plan: Plan, **claims: Any) -> None:
    """Write what `solve --json` would print."""
    (folder / f"{name}.json").write_text(json.dumps({**claims, "plan": json.loads(dump(plan))}))


def test_numbers(cli: Any, folder: Path) -> None:
    """Each number is the one that can be worked out by hand."""
    alone, split = data(cli, folder, "alone", "split")
    assert (alone["objective"], alone["best"], alone["over_best"]) == (10.0, False, 0.25)
    assert (split["objective"], split["best"], split["over_best"]) == (8.0, True, 0.0)
    assert (alone["devices"], alone["max_load"], alone["mean_load"], alone["transfer"]) == (1, 10.0, 10.0, 0.0)
    # device 0: 7 s of ops, a out and b in; device 1: 3 s, and the same two transfers
    assert (split["devices"], split["max_load"], split["mean_load"], split["transfer"]) == (2, 9.0, 7.0, 4.0)
    assert (alone["peak_memory"], split["peak_memory"]) == (100.0, 80.0)
    assert (alone["cuts"], split["cuts"], alone["moved_bytes"], split["moved_bytes"]) == (0, 2, None, None)
    assert (alone["placed_differently"], split["placed_differently"]) == (0, 1)
    assert alone["bound"] is None and alone["gap"] is None and alone["status"] is None


def test_renamed_devices(cli: Any, folder: Path) -> None:
    """Devices under other names move every op, and none if names may be swapped."""
    _, mirrored, alone = data(cli, folder, "split", "mirrored", "alone")
    assert (mirrored["placed_differently"], mirrored["placed_differently_renamed"]) == (3, 0)
    assert (alone["placed_differently"], alone["placed_differently_renamed"]) == (1, 1)


def test_devices_of_other_types_are_not_renamed() -> None:
    """Swapping names does not turn one type of device into another."""
    graph = diamond().graph
    both = replace(graph, device_types=("gpu", "tpu"), time=np.vstack([graph.time, graph.time]))
    cluster = Cluster.flat((GPU, 1), (DeviceType("tpu"), 1), bandwidth=1.0)
    problem = StepProblem(both, cluster)
    other = StepPlan(OPS, [1, 1, 1, 1], ALONE.start)
    candidates = [Candidate(p, p, problem, "same", plan, {}) for p, plan in (("x", ALONE), ("y", other))]
    assert [(m["placed_differently"], m["placed_differently_renamed"]) for m in measure(candidates)] == [(0, 0), (4, 4)]


def test_infeasible_plan(cli: Any, folder: Path) -> None:
    """A plan that breaks a constraint is told apart, with the constraint, and exit code 1."""
    split, early = data(cli, folder, "split", "early")
    assert (split["feasible"], split["best"]) == (True, True)
    assert (early["feasible"], early["best"], early["objective"], early["max_load"]) == (False, False, None, None)
    assert "op b starts at 2" in early["violations"][0]
    done = run(cli, folder, "split", "early")
    assert done.code == 1
    assert "2: infeasible: precedence: op b starts at 2" in done.out


def test_table(cli: Any, folder: Path) -> None:
    """People see a column for each plan, with the best marked; rows without a number are left out."""
    done = run(cli, folder, "alone", "split")
    lines = {line[:22].strip(): line[22:].split() for line in done.out.splitlines()}
    assert done.code == 0 and done.err == ""
    assert lines["objective"] == ["10", "best", "8"]
    assert lines["above the best"] == ["25%", "0%"]
    assert lines["devices used"] == ["1", "of", "3", "2", "of", "3"]
    assert lines["ops placed differently"] == ["0", "1"]
    assert "bound" not in lines and "status" not in lines
    assert "times are in the unit of the file" in done.out


def test_many_plans(cli: Any, folder: Path) -> None:
    """Seven plans take several tables, and files of one name are told by their paths."""
    names = ["alone", "split", "mirrored", "alone", "split", "mirrored", "alone"]
    done = run(cli, folder, *names)
    assert done.code == 0
    assert done.out.count("feasible") >= 2 and "7:" in done.out
    assert {x["label"] for x in data(cli, folder, "alone", "alone", "split")} == {str(folder / "alone.json"), "split"}


def test_bounds_are_shared_and_doubted(cli: Any, folder: Path) -> None:
    """The best bound of any file counts for all plans of its problem, unless a plan is below it."""
    claim(folder, "first", ALONE, status="FEASIBLE", objective=10.0, bound=6.0, wall_seconds=1.5, method="auto")
    claim(folder, "second", SPLIT, bound=9.0, objective=8.0)
    first, second, split = data(cli, folder, "first", "second", "split")
    assert [x["bound"] for x in (first, second, split)] == [6.0, 6.0, 6.0]
    assert [x["gap"] for x in (first, second, split)] == pytest.approx([0.4, 0.25, 0.25])
    assert (first["status"], first["wall_seconds"], first["method"], split["status"]) == ("FEASIBLE", 1.5, "auto", None)
    assert second["notes"] == ["its bound 9 is above the objective 8 of a feasible plan: not used"]
    assert first["notes"] == split["notes"] == []


def test_claimed_objective(cli: Any, folder: Path) -> None:
    """A file that says another objective than the verifier is told."""
    claim(folder, "wrong", ALONE, objective=7.0)
    (wrong,) = data(cli, folder, "wrong")
    assert wrong["notes"] == ["the file says objective 7, the verifier 10"]


def test_useless_claims(cli: Any, folder: Path) -> None:
    """Claims that are no numbers or no words are as if they were not there."""
    claim(folder, "odd", ALONE, bound=10**400, objective=True, status=7, method=["auto"], wall_seconds="long")
    (odd,) = data(cli, folder, "odd")
    assert [odd[x] for x in ("bound", "gap", "status", "method", "wall_seconds")] == [None] * 5
    assert odd["notes"] == []
    assert run(cli, folder, "odd").code == 0


def test_contention_is_told_by_the_plan(cli: Any, folder: Path) -> None:
    """A plan with transfers is verified with contention, and its bound says nothing of one without."""
    own = replace(ALONE, instance=content_hash(diamond(True)))
    (folder / "own.json").write_text(dump(own))
    claim(folder, "bounded", SPLIT, bound=8.0)
    bounded, queued, own_data = data(cli, folder, "bounded", "queued", "own")
    assert [x["problem"] for x in (bounded, queued, own_data)] == ["step", *["step, with contention"] * 2]
    assert [x["bound"] for x in (bounded, queued, own_data)] == [8.0, None, None]
    assert [x["best"] for x in (bounded, queued, own_data)] == [True, True, False]
    (forced,) = data(cli, folder, "queued", options=("--no-contention",))
    assert not forced["feasible"]


def test_other_objectives(cli: Any, folder: Path) -> None:
    """A throughput plan of the variant it names and a plan of stages stand beside a step plan of the same file."""
    graph, cluster = diamond().graph, diamond().cluster
    loose: GraphProblem = PartitionProblem(graph, cluster, "free")
    plans = {
        "pipe": PartitionPlan(OPS, [0, 1, 0, 0], [0, 1, 0, 0], content_hash(loose)),
        "stages": StagesPlan(OPS, [0, 0, 0, 1], [0, 0, 1], [1, 1]),
    }
    for name, plan in plans.items():
        (folder / f"{name}.json").write_text(dump(plan))
    split, pipe, stages = data(cli, folder, "split", "pipe", "stages")
    assert [x["problem"] for x in (split, pipe)] == ["step", "throughput, free"]
    assert stages["problem"].startswith("stages") and stages["devices"] == 3
    assert pipe["feasible"] and pipe["objective"] == 9.0  # 7 s of ops, a out and b in
    assert pipe["placed_differently"] == 0
    assert all(x["best"] and x["feasible"] for x in (split, pipe, stages))
    assert isinstance(with_objective(diamond(), "stages"), StagesProblem)


def test_foreign_plans(cli: Any, folder: Path) -> None:
    """A plan of another problem is noted, one of other ops is infeasible."""
    (folder / "foreign.json").write_text(dump(replace(ALONE, instance="sha256:" + "0" * 64)))
    (folder / "shorter.json").write_text(dump(StepPlan(("a",), [0], [0.0])))
    foreign, shorter = data(cli, folder, "foreign", "shorter")
    assert foreign["feasible"] and "was made for another problem: sha256:000" in foreign["notes"][0]
    assert not shorter["feasible"] and shorter["placed_differently"] is None and shorter["cuts"] is None


def test_what_was_proved_of_another_instance_is_not_used(cli: Any, folder: Path) -> None:
    """A bound and a status that were proved of another problem are those of no plan here."""
    proved: dict[str, Any] = {"bound": 8.0, "status": "OPTIMAL", "objective": 8.0, "gap": 0.0, "wall_seconds": 1.5}
    claim(folder, "foreign", replace(SPLIT, instance="sha256:" + "0" * 64), **proved)
    claim(folder, "own", replace(SPLIT, instance=content_hash(diamond())), **proved | {"bound": 7.0})
    alone, foreign = data(cli, folder, "alone", "foreign")
    assert [(x["bound"], x["gap"], x["status"]) for x in (alone, foreign)] == [(None, None, None)] * 2
    assert foreign["wall_seconds"] == 1.5 and len(foreign["notes"]) == 1
    foreign, own = data(cli, folder, "foreign", "own")
    assert (foreign["bound"], own["bound"], own["status"]) == (7.0, 7.0, "OPTIMAL")


@pytest.mark.parametrize(
    ("names", "options", "words"),
    [
        (("nothing",), (), "nothing.json"),
        (("diamond",), (), "kind: 'step' is no plan"),
        (("split",), ("--objective", "throughput"), "StepPlan is not a PartitionPlan"),
        (("split",), ("--variant", "free"), "variant: 'free' applies to no plan"),
        (("split",), ("--plot", "picture.gif"), "'.gif' is not one of"),
        (("split",), ("--devices", "x"), "'x' is not a whole number"),
    ],
)
def test_bad_input(cli: Any, folder: Path, names: tuple[str, ...], options: tuple[str, ...], words: str) -> None:
    """What cannot be used is exit code 2 and one line."""
    done = run(cli, folder, *names, options=options)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert words in done.err


def test_no_overwriting(cli: Any, folder: Path) -> None:
    """A picture does not take the place of a plan."""
    link = folder / "picture.png"
    link.symlink_to(folder / "split.json")
    done = run(cli, folder, "split", options=("--plot", str(link)))
    assert done.code == 2 and "would be overwritten" in done.err


@pytest.mark.parametrize("ending", ["png", "html"])
def test_plot(cli: Any, folder: Path, ending: str) -> None:
    """Feasible plans are drawn, the others noted; without any there is no file."""
    target = folder / f"out.{ending}"
    done = run(cli, folder, "early", options=("--plot", str(target)))
    assert done.code == 1 and not target.exists() and "no feasible plan" in done.err
    done = run(cli, folder, "alone", "early", "queued", options=("--plot", str(target)))
    assert done.code == 1 and "early is infeasible and not drawn" in done.err
    content = target.read_bytes()
    assert content[:4] == b"\x89PNG" if ending == "png" else b"3: queued" in content and b"2: early" not in content
