"""Compilation takes longer than many a deadline: it waits for time, and the plan comes without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from gangplan.hybrid.registry import named
from gangplan.solvers.compiled.cache import in_memory, on_disk
from gangplan.solvers.method import OBJECTIVES

COLD = """
import json, time
from gangplan.learned.labels import make
from gangplan import solve
problem = make("schedule", "moldable", 1, 12)
import numba, ortools.sat.python.cp_model
started = time.process_time()
result = solve(problem, time_limit=3.0, workers=1)
by = [found.by for found in result.trace]
print(json.dumps([time.process_time() - started, result.plan is not None, by, result.notes]))
"""


def test_without_compiled_code_there_is_a_plan_in_time(tmp_path: Path) -> None:
    """With nothing compiled, as after an installation, lists run as Python, and the deadline holds."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", COLD], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    seconds, planned, by, notes = json.loads(done.stdout)
    assert planned and by[0].startswith("list: ")
    assert any(note.startswith("no time to compile solvers.schedule.decode:serial") for note in notes)
    assert seconds < 6
    assert not list(tmp_path.rglob("decode.serial*"))


@pytest.mark.parametrize(
    "name", sorted({name for objective in OBJECTIVES for m in named(objective).values() for name in m.compiled})
)
def test_names_are_those_of_compiled_functions(name: str) -> None:
    """What a method says it compiles is a function that numba compiles."""
    module, _, function = name.partition(":")
    assert hasattr(getattr(import_module(f"gangplan.{module}"), function), "signatures")


def test_what_has_run_is_in_memory_and_on_disk() -> None:
    """A function is in memory once it has run here, and on disk from then on."""
    import numpy as np

    from gangplan.solvers.schedule.prices import busy

    name = "solvers.schedule.prices:busy"
    busy(0.5, 2.0, 0.0, 1.0, 4)
    assert in_memory([name]) and on_disk([name])
    assert not in_memory(["solvers.schedule.no_such_module:busy"])
    assert np.isfinite(busy.py_func(0.5, 2.0, 0.0, 1.0, 4)[0])
