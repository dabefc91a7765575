"""With nothing compiled a solve keeps its deadline, has it compiled beside, uses it, and leaves it to the next ones."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
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
    methods = {x: m if m.library else replace(m, kernels=lambda: ()) for x, m in named("step").items()}
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
