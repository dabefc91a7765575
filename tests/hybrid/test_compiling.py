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

from gangplan.hybrid import compiling, table, worker
from gangplan.hybrid.portfolio import Crew
from gangplan.hybrid.table import Entry, named
from gangplan.hybrid.timetable import timetable
from gangplan.instances.generators import generate
from gangplan.solvers import Run
from gangplan.solvers.method import Method, suite

SOLVE = """
import json, sys
from gangplan import generate, solve
problem = generate("layered", ops=14, layers=4, devices=2, seed=0, objective="step")
result = solve(problem, time_limit=float(sys.argv[1]), workers=1)
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
    assert by[0] == "heft"  # in Python
    assert status == "OPTIMAL" or any("that goes on, for the solves to come" in note for note in notes)
    status, by, notes, phases = cold(tmp_path, 300.0)
    assert status == "OPTIMAL" and not [note for note in notes if "compile" in note]
    assert "list_schedule" in phases  # whose kernels were not there when the first solve began
    for _ in range(3000):  # the process may be at the kernels of the last methods
        if (tmp_path / "step.json").exists():
            break
        time.sleep(0.1)
    *_, phases = cold(tmp_path, 300.0)
    assert "compile" not in phases


def test_files_of_the_users_folder_are_no_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh process takes no file of the folder that the user is in for a module of Python's own."""
    (tmp_path / "json.py").write_text("import pathlib; pathlib.Path('taken').touch()")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compiling, "_MAIN", compiling._MAIN.partition("from gangplan")[0])
    assert subprocess.run(compiling.command("compiling"), check=False).returncode == 0 and not Path("taken").exists()


def test_one_process_compiles_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the lock is held somebody is busy and nobody begins; the process that begins holds it until it ends."""
    monkeypatch.setattr(compiling, "folder", lambda: tmp_path)
    monkeypatch.setattr(compiling, "command", lambda *_: [sys.executable, "-c", "input()"])
    monkeypatch.setattr(compiling, "_begun", {})
    lock = compiling.lock_on("schedule")
    assert lock is not None and compiling.busy("schedule")
    compiling.begin("schedule")
    assert not compiling._begun
    lock.close()
    assert not compiling.busy("schedule")
    compiling.begin("schedule")
    compiling._begun.pop("schedule").wait()
    assert not compiling.busy("schedule")
    monkeypatch.setattr(compiling, "command", lambda *_: [sys.executable, "-c", "import time; time.sleep(600)"])
    compiling.begin("schedule")
    process = compiling._begun.pop("schedule")
    assert compiling.busy("schedule")  # by its lock: it is no process of ours any more
    process.kill()
    process.wait()
    assert not compiling.busy("schedule")


def test_who_waits_for_kernels_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method whose kernels are being compiled gives way to those after it; when nobody compiles it has its turn."""
    ready, at_work = {"cpsat"}, [True]
    monkeypatch.setattr(worker, "at_hand", lambda method: names[id(method)] in ready)
    monkeypatch.setattr(worker, "busy", lambda _: at_work[0])
    methods = named("step")
    names = {id(methods[name]): name for name in ("list_schedule", "local_search", "cpsat")}
    left = [(i, Entry("step", name, methods[name])) for i, name in enumerate(names.values())]
    number, until = worker.next_turn("step", left)
    assert number == 2 and until is not None and not until()
    ready.add("local_search")
    time.sleep(0.06)
    assert until()
    assert worker.next_turn("step", left) == (1, None)
    ready.add("list_schedule")
    assert worker.next_turn("step", left) == (0, None)
    ready.clear()
    assert worker.next_turn("step", left)[0] is None
    at_work[0] = False
    assert worker.next_turn("step", left) == (0, None)


def test_what_cannot_be_compiled_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method whose kernels nobody compiles is left out with a note that says where the reason is."""
    monkeypatch.setattr(Run, "compiled", lambda *_: False)
    monkeypatch.setattr(worker, "busy", lambda _: False)
    run = Run(suite("step").random_problem(0, suite("step").variants[0]), time_limit=60.0)
    worker.execute(run, Entry("step", "local_search", named("step")["local_search"]), None)
    assert run.notes == ["local_search cannot be compiled here; gangplan warm-up says why"]


def test_a_policy_without_pytorch_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyTorch is not installed, the policy is left out with a note, and what it compiles is nowhere missed."""

    def never() -> tuple[Any, ...]:
        raise AssertionError("asked what it compiles")

    monkeypatch.setitem(sys.modules, "torch", None)
    policy = Method(lambda run, p: None, library="torch", kernels=never)
    monkeypatch.setattr(table, "ENTRIES", (*table.ENTRIES, Entry("step", "learned", policy, learned=True)))
    monkeypatch.setattr(compiling, "ENTRIES", table.ENTRIES)
    run = Run(generate("layered", ops=30, devices=3, seed=0, objective="step"), time_limit=3600.0)
    prepared = suite(run.problem.objective).prepare(run)
    slots = timetable(Crew(run, "auto").survey(prepared), 0.0, 3600.0).slots
    assert slots and not any(slot.entry.learned for slot in slots) and not run.hurried
    assert run.notes == ["learned left out: torch is not installed"]
    assert compiling.kernels("step")
