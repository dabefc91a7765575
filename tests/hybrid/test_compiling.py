"""With nothing compiled a solve keeps its deadline, has it compiled beside, uses it, and leaves it to the next ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gangplan.hybrid import compiling, table
from gangplan.hybrid.portfolio import rest
from gangplan.hybrid.table import Entry, named
from gangplan.instances.generators.jobs import moldable
from gangplan.solvers import Run
from gangplan.solvers.method import Method, suite_of

SOLVE = """
import json, sys
from gangplan import solve
from gangplan.instances.generators.jobs import moldable
result = solve(moldable(jobs=20, load=2.0, seed=0), time_limit=float(sys.argv[1]), workers=1)
print(json.dumps([str(result.status), [found.by for found in result.trace], result.notes, result.phases]))
"""


def cold(folder: Path, seconds: float) -> Any:
    """Solve in a new process whose compiled code is in `folder`; return status, who found plans, notes and phases."""
    environment = {**os.environ, "GANGPLAN_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", SOLVE, str(seconds)], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_the_first_solve_the_same_solve_and_the_next(tmp_path: Path) -> None:
    """A short cold solve has a plan and leaves a process at work; a longer one uses what that made."""
    status, by, notes, _ = cold(tmp_path, 2.0)
    assert by[0] == "first_come"  # in Python
    assert status == "OPTIMAL" or any("that goes on, for the solves to come" in note for note in notes)
    status, by, notes, phases = cold(tmp_path, 300.0)
    assert status == "OPTIMAL" and not [note for note in notes if "compile" in note]
    assert "starts" in phases  # whose kernels were not there when the first solve began
    for _ in range(3000):  # the process may be at the kernels of the last methods
        if (tmp_path / "schedule.json").exists():
            break
        time.sleep(0.1)
    *_, phases = cold(tmp_path, 300.0)
    assert "compile" not in phases


def test_files_of_the_users_folder_are_no_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiling process takes no file of the folder that the user is in for a module of Python's own."""
    (tmp_path / "json.py").write_text("import pathlib; pathlib.Path('taken').touch()")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compiling, "_begun", {})
    monkeypatch.setattr(compiling, "_CODE", compiling._CODE.partition("from gangplan")[0])
    process = compiling.begin("schedule")
    assert process is not None and process.wait() == 0 and not Path("taken").exists()


class Process:
    """A compiling process that ends with `code` after so many looks."""

    def __init__(self, looks: int, code: int) -> None:
        self.looks, self.code = looks, code

    def poll(self) -> int | None:
        """Return the exit code, once it has ended."""
        self.looks -= 1
        return self.code if self.looks < 0 else None


def compiler(monkeypatch: pytest.MonkeyPatch, process: Process | None, seconds: float) -> compiling.Compiler:
    """Return what compiles beside a solve of so many seconds, with `process` at work on kernels that never come."""
    monkeypatch.setattr(compiling, "_mark", lambda objective: None)
    monkeypatch.setattr(compiling, "begin", lambda objective: process)
    monkeypatch.setattr(compiling, "in_memory", lambda names: False)
    monkeypatch.setattr(compiling, "on_disk", lambda names: False)
    return compiling.Compiler(Run(moldable(jobs=3, seed=0), time_limit=seconds))


def test_who_found_another_at_work_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solve starts a process anew where the last one left the work to another, which may not have finished it."""
    monkeypatch.setattr(compiling.subprocess, "Popen", lambda *_, **__: "new")
    for process, found in ((Process(0, compiling._ELSEWHERE), "new"), (Process(0, 1), None), (Process(9, 0), None)):
        monkeypatch.setattr(compiling, "_begun", {"schedule": process})
        assert compiling.begin("schedule") == (found or process)


@pytest.mark.parametrize(("code", "word"), [(1, "cannot be compiled here"), (0, "that goes on")])
def test_a_process_that_ends_is_waited_for_no_longer(monkeypatch: pytest.MonkeyPatch, code: int, word: str) -> None:
    """A method whose kernels do not come is given up when the compiling process ends, and a note says why."""
    found = compiler(monkeypatch, Process(3, code), 3600.0)
    assert not found.wait(named("schedule")["starts"], "starts")
    assert any(word in note for note in found.run.notes)


def test_a_policy_without_pytorch_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyTorch is not installed, the policy is left out with a note, and what it compiles is nowhere missed."""

    def never() -> tuple[Any, ...]:
        raise AssertionError("asked what it compiles")

    monkeypatch.setitem(sys.modules, "torch", None)
    policy = Method(lambda run, p: None, library="torch", kernels=never)
    monkeypatch.setattr(table, "ENTRIES", (*table.ENTRIES, Entry("schedule", "learned", policy, learned=True)))
    monkeypatch.setattr(compiling, "ENTRIES", table.ENTRIES)
    run = Run(moldable(jobs=20, load=2.0, seed=0), time_limit=3600.0)
    entries = rest(run, suite_of(run.problem).prepare(run))
    assert entries and not any(entry.learned for entry in entries) and not run.hurried
    assert run.notes == ["learned left out: torch is not installed"]
    assert compiling.kernels("schedule")


def test_where_no_process_can_be_started_there_must_be_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a process of its own a kernel is compiled within the solve if there is plenty of time, else left out."""
    method, made = named("schedule")["starts"], list[Any]()
    monkeypatch.setattr(compiling, "compile_kernel", made.append)
    assert not compiler(monkeypatch, None, 5.0).has(method) and not made
    assert compiler(monkeypatch, None, 3600.0).has(method)
    assert method.kernels is not None and tuple(made) == method.kernels()
    assert compiler(monkeypatch, None, 5.0).has(Method(lambda run, p: None))
