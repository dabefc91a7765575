"""The front door: what importing costs, what is at the top level, what printing shows, what the first mistakes say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gangplan
from gangplan.instances.kinds import PROBLEMS

MADE: dict[str, dict[str, Any]] = {
    "throughput": {"kind": "layered", "ops": 8, "layers": 4, "devices": 2},
    "latency": {"kind": "layered", "ops": 8, "layers": 4, "devices": 2, "objective": "latency"},
    "step": {"kind": "layered", "ops": 8, "layers": 4, "devices": 2, "objective": "step"},
    "stages": {"kind": "layered", "ops": 8, "layers": 4, "devices": 2, "objective": "stages"},
    "placement": {"kind": "gangs", "jobs": 3, "racks": 1, "nodes": 2},
    "schedule": {"kind": "moldable", "jobs": 3},
    "pipeline": {"kind": "micro_batches", "devices": 2, "micro_batches": 3},
}


LAYOUT = gangplan.LayoutProblem(
    gangplan.Transformer("small", 4, 512, 8, 8, 64, 1000, 2048), (gangplan.gpu_pool("H100", 1, 2),), 4, 512
)


def ours(program: str, folder: Path) -> list[str]:
    """Return the modules of gangplan that are loaded once `program` has run in a fresh interpreter."""
    code = f"import sys, json\n{program}\nprint(json.dumps([m for m in sys.modules if m.startswith('gangplan')]))"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_command_line_loads_what_a_command_needs(tmp_path: Path) -> None:
    """The help and the version load no problem, and no command but its own."""
    for call in ("--help", "--version"):
        loaded = ours(f"from gangplan.cli import main; main(['{call}'])", tmp_path)
        assert not [
            m for m in loaded if m.startswith(("gangplan.solvers", "gangplan.hybrid", "gangplan.instances.part"))
        ]


def test_public_names_are_those_listed() -> None:
    """What is API is said in one place, and nothing comes or goes unnoticed."""
    page = (Path(__file__).parents[1] / "docs" / "api-policy.md").read_text()
    listed = re.search(r"```text\n(.*?)```", page, re.DOTALL)
    assert listed is not None and listed[1].split() == gangplan.__all__


def test_every_name_is_there() -> None:
    """Each name of the top level can be had, and an unknown one is an ordinary error."""
    assert set(gangplan.__all__) <= set(dir(gangplan))
    assert all(getattr(gangplan, name) is not None for name in gangplan.__all__)
    with pytest.raises(AttributeError, match="no attribute 'solv'"):
        _ = gangplan.solv  # type: ignore[attr-defined]


@pytest.mark.parametrize("objective", PROBLEMS)
def test_every_problem_by_the_same_names(objective: str, tmp_path: Path) -> None:
    """All are made, saved, read, loaded, solved, verified and printed in a few lines."""
    options = dict(MADE.get(objective, {}))
    problem: Any = gangplan.generate(options.pop("kind"), **options) if options else LAYOUT
    assert problem.objective == objective
    file = tmp_path / "problem.json"
    gangplan.save(problem, file)
    assert gangplan.dump(gangplan.read(file)) == gangplan.dump(gangplan.load(file)) == gangplan.dump(problem)
    result = gangplan.solve(problem, 10, workers=1)
    verdict = gangplan.verify(problem, result.plan)
    gangplan.save(result.plan, tmp_path / "plan.json")
    assert gangplan.dump(gangplan.load(str(tmp_path / "plan.json"))) == gangplan.dump(result.plan)
    for value in (problem, result, result.plan, verdict):
        text = str(value)
        assert "array" not in text and text.count("\n") < 7
        assert max(map(len, text.splitlines())) <= 100
    assert result.plan is not None and verdict.ok and f"{result.status}" in str(result)


def test_draw(tmp_path: Path) -> None:
    """A plan is drawn into a file, and so is the result of a solve."""
    problem = gangplan.generate("layered", ops=8, layers=4, devices=2)
    result = gangplan.solve(problem, 10)
    for i, plan in enumerate((result, result.plan)):
        gangplan.plot(problem, plan, tmp_path / f"{i}.png")
        assert (tmp_path / f"{i}.png").read_bytes().startswith(b"\x89PNG")


def mistakes(folder: Path) -> dict[str, tuple[Any, str]]:
    """Return calls that newcomers make, each with what the error must say."""
    problem = gangplan.generate("layered", ops=4, layers=2, devices=2)
    plan = gangplan.PartitionPlan(("a",), [0], [0])  # type: ignore[arg-type]
    gangplan.save(plan, folder / "plan.json")
    (folder / "graph.txt").write_text("node1 -- Input -- forward_compute_time=0.0\n")
    return {
        "kind": (lambda: gangplan.generate("gpt2"), "did you mean gpt?"),
        "device": (lambda: gangplan.generate("gpt", device=4), "did you mean devices?"),
        "objective": (lambda: gangplan.solve(problem, 5, objective="troughput"), "did you mean throughput?"),
        "method": (lambda: gangplan.solve(problem, 5, method="cp-sat"), "did you mean cpsat?"),
        "workers": (lambda: gangplan.solve(problem, 5, workers="4"), "workers: '4' is not a whole number"),  # type: ignore[arg-type]
        "an option of generate": (
            lambda: gangplan.solve(problem, 5, device=4),  # type: ignore[arg-type]
            "device: 4 is said where the problem is made: gangplan.generate(kind, devices=...)",
        ),
        "a mistyped option": (
            lambda: gangplan.solve(problem, 5, sed=4),
            "sed: 4 does not apply to solve; did you mean seed?",
        ),  # type: ignore[arg-type]
        "an option without a name": (lambda: gangplan.solve(problem, 5, 4), "4 has no name: write workers=4"),  # type: ignore[arg-type]
        "a path": (lambda: gangplan.solve("problem.json", 5), "gangplan.read('problem.json')"),
        "a result": (lambda: gangplan.verify(problem, gangplan.solve(problem, 5)), "write result.plan"),
        "a word": (lambda: gangplan.load("problem"), "'problem' is neither a document nor the name of a file"),
        "no file": (lambda: gangplan.load("nowhere.json"), "nowhere.json: file: no such file"),
        "a profile": (lambda: gangplan.load(folder / "graph.txt"), "gangplan.read"),
        "a plan": (lambda: gangplan.read(folder / "plan.json"), "gangplan.load"),
        "no limit": (lambda: gangplan.solve(problem), "time_limit"),  # type: ignore[call-arg]
    }


@pytest.mark.parametrize(
    "name",
    [
        *("kind", "device", "objective", "method", "workers", "a path", "a result", "a word"),
        *("an option of generate", "a mistyped option", "an option without a name"),
        *("no file", "a profile", "a plan", "no limit"),
    ],
)
def test_first_mistakes(name: str, tmp_path: Path) -> None:
    """The error of a first mistake says what to write."""
    call, words = mistakes(tmp_path)[name]
    with pytest.raises(TypeError if name == "no limit" else gangplan.InstanceError, match=re.escape(words)):
        call()
