"""The documentation tells the truth: its code runs, its commands work, its schemas are the code's."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from gangplan.cli import main
from gangplan.instances import (
    Cluster,
    DeviceType,
    LatencyPlan,
    LatencyProblem,
    OpGraph,
    PartitionPlan,
    PartitionProblem,
    StagesPlan,
    StagesProblem,
    StepPlan,
    StepProblem,
    dump,
    json_schema,
)
from gangplan.instances.kinds import DOCUMENTS
from gangplan.instances.placement import Fleet, GangJob, PlacementPlan, PlacementProblem, SpeedModel
from gangplan.instances.schedule import MoldableJob, NodePool, SchedulePlan, ScheduleProblem

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def snippets(text: str) -> list[tuple[str, str]]:
    """Return the (language, code) of the blocks that can run: python, and the gangplan lines of console and bash."""
    found = []
    for block in BLOCK.finditer(text):
        language, code = block.groups()
        if language == "python":
            # blank lines above it, so that a traceback gives the line of the page
            found.append((language, "\n" * text.count("\n", 0, block.start(2)) + code))
        elif language == "console":
            found += [("console", line[2:]) for line in code.splitlines() if line.startswith("$ gangplan ")]
        elif language == "bash":
            found += [("console", line) for line in code.splitlines() if line.startswith("gangplan ")]
    return found


def names(page: Path) -> str:
    """Return the page's path as the test's id."""
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [p for p in PAGES if snippets(p.read_text())], ids=names)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's Python and its gangplan commands, in order and in one empty folder, do not fail."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    space: dict[str, Any] = {"__name__": "snippet"}
    for language, code in snippets(page.read_text()):
        if language == "python":
            exec(compile(code, page, "exec"), space)
        else:
            done = subprocess.run(code, shell=True, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"$ {code}\n{done.stdout}{done.stderr}"


def test_snippets_are_found() -> None:
    """The README shows both code and commands, and a command's output is not taken for one."""
    assert {language for language, _ in snippets((ROOT / "README.md").read_text())} == {"python", "console"}
    text = "```console\n$ gangplan versions\ngangplan 1\n$ ls\n```\n```text\n$ gangplan x\n```\n"
    text += "```bash\ngangplan methods\nls\n```\n```sh\ngangplan x\n```\n"
    assert snippets(text) == [("console", "gangplan versions"), ("console", "gangplan methods")]


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_links_between_files(page: Path) -> None:
    """Every relative link and image of the page leads to a file."""
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", BLOCK.sub("", page.read_text()))
    assert [t for t in targets if not (page.parent / t).exists()] == []


def resolves(name: str) -> bool:
    """Return whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError as error:
            if error.name and not name.startswith(error.name):
                raise
            continue
        for part in parts[cut:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def test_names_of_modules() -> None:
    """Every dotted name of the package that a page mentions is there to be imported."""
    named = {(names(page), x) for page in PAGES for x in re.findall(r"\bgangplan(?:\.[a-z_]\w*)+", page.read_text())}
    assert len(named) > 30
    assert sorted(x for x in named if not resolves(x[1])) == []
    assert not resolves("gangplan.systems.pacml.learned.nowhere")


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_published_schema(kind: str) -> None:
    """The schema in docs/schema is the one the code writes; `./run schemas` renews it."""
    published = json.loads((ROOT / "docs" / "schema" / f"{kind}.json").read_text())
    assert published == json_schema(kind)
    jsonschema.Draft202012Validator.check_schema(published)


def test_schema_accepts_documents() -> None:
    """What `dump` writes is valid by the published schema, and a document without a field is not."""
    zero, none = np.zeros(2), np.full(2, -1)
    times = [[1.0, 2.0], [3.0, np.inf]]
    graph = OpGraph(("a", "b"), ("gpu", "cpu"), times, zero, zero, zero, [0], [1], [8.0], none, none, [False, False])
    cluster = Cluster.flat((DeviceType("gpu"), 1), (DeviceType("cpu", host=True), 1), bandwidth=1e9)
    fleet = Fleet.regular(racks=1, nodes=2)
    speeds = SpeedModel(("m",), ("A100",), [[1.0]], [1e9], [0.5], [[0.1]], [[0.5]])
    values = {
        "partition": PartitionProblem(graph, cluster),
        "partition_plan": PartitionPlan(("a", "b"), [0, 0], [0, 0]),
        "latency": LatencyProblem(graph, cluster),
        "latency_plan": LatencyPlan(("a", "b"), [0, 0]),
        "step": StepProblem(graph, cluster, contention=True),
        "step_plan": StepPlan(("a", "b"), [0, 0], [0.0, 1.0]),
        "stages": StagesProblem(graph, Cluster.flat((DeviceType("gpu"), 2), bandwidth=1e9)),
        "stages_plan": StagesPlan(("a", "b"), [0, 0], [0, -1], [1]),
        "placement": PlacementProblem(fleet, (GangJob("x", "m", (1, 2), value=1.0),), speeds),
        "placement_plan": PlacementPlan(("x",), [0], [0], [1], [0], [0], [3]),
        "schedule": ScheduleProblem((MoldableJob("x", (1, 2), (3.0, 2.0), deadline=9.0),), NodePool(1)),
        "schedule_plan": SchedulePlan(("x",), [1], [0.5], [0], [0], [2]),
    }
    assert set(values) == set(DOCUMENTS)
    for kind, value in values.items():
        check = jsonschema.Draft202012Validator(json.loads((ROOT / "docs" / "schema" / f"{kind}.json").read_text()))
        document = json.loads(dump(value))
        check.validate(document)
        for field in check.schema["required"]:
            assert not check.is_valid({k: v for k, v in document.items() if k != field}), field


def test_the_page_on_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every gangplan command of the page succeeds, in a folder that has the documentation, and then its Python."""
    pytest.importorskip("torch")
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    space: dict[str, Any] = {"__name__": "snippet"}
    commands = 0
    for language, code in re.findall(r"^```(sh|py)\n(.*?)^```$", (ROOT / "docs" / "torch.md").read_text(), re.M | re.S):
        if language == "py":
            exec(compile(code, "docs/torch.md", "exec"), space)
            continue
        for line in code.splitlines():
            if line.startswith("gangplan "):
                commands += 1
                assert main(line.split()[1:]) == 0, f"{line}\n{capsys.readouterr()}"
    assert commands == 4 and "stages" in capsys.readouterr().out


def test_run_lists_gpt2() -> None:
    """`./run gpt2` is there, and `./run` says what it does."""
    said = subprocess.run(["sh", ROOT / "run"], capture_output=True, text=True, check=True).stdout
    assert "./run gpt2" in said and "GPT-2" in said


GUIDE = {
    *("index", "getting-started", "torch", "scheduler", "doors", "simulate"),
    *("partition", "latency", "step", "stages", "placement", "schedule", "pacml", "topdrl", "harmony", "marl"),
}
"""Pages that begin with a picture and a snippet."""


def opening(text: str) -> list[str]:
    """Return the blocks of a page below its title: paragraphs, and each piece of code as one."""
    _, _, body = text.partition("\n\n")
    return [x.strip() for x in re.findall(r"```.*?\n```|(?:(?!```).+\n?)+", body, re.DOTALL if False else 0) if x.strip()]
