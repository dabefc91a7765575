"""What a fresh installation answers: with nothing compiled, the second time, and warm, as whole processes.

One problem of every objective is solved with each limit, by the command line, in a folder of compiled code that is
empty, then in the same folder once more when the compiling process is done, then in a full one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from gangplan.hybrid.compiling import kernels
from gangplan.solvers.method import OBJECTIVES

from .found import Found, table
from .rows import Task
from .study import Options, Study

LIMITS = (2.0, 10.0, 30.0)
STATES = ("cold", "second", "warm")
_LAYERED = ("layered", "--ops", "200", "--layers", "20", "--devices", "8")
PROBLEMS: dict[str, tuple[str, ...]] = {
    "throughput": _LAYERED,
    "latency": (*_LAYERED, "--no-training"),
    "step": ("layered", "--ops", "96", "--layers", "12", "--devices", "8"),
    "stages": ("gpt", "--devices", "16"),
    "placement": ("gangs", "--jobs", "16", "--racks", "2", "--nodes", "8", "--load", "0.8"),
    "schedule": ("moldable", "--jobs", "200", "--load", "2"),
}
"""What `gangplan generate` makes for each objective."""
_TOTAL = 120.0
"""Seconds to wait for a compiling process at most."""


def tasks(options: Options) -> Iterator[Task]:
    """Yield every objective, seed and limit, in each state."""
    for objective in options.chosen(OBJECTIVES):
        for seed in range(options.seeds or 1):
            for limit in LIMITS:
                yield from (Task(f"{objective}, {limit:g} s", state, seed) for state in STATES)


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Solve in all three states at once, and return one."""
    objective, limit = task.case.removesuffix(" s").split(", ")
    return _solved(objective, float(limit), task.seed)[task.policy]


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="gangplan-cold-"))


@cache
def _solved(objective: str, limit: float, seed: int) -> dict[str, Mapping[str, float | None]]:
    warm, file = _folder() / "warm", _folder() / f"{objective}-{seed}.json"
    if not file.exists():
        _gangplan(["warm-up", objective], warm)
        _gangplan(["generate", *PROBLEMS[objective], "--seed", str(seed), "--out", str(file)], warm)
    folder = Path(tempfile.mkdtemp(dir=_folder()))
    first = _solve(objective, file, limit, folder)
    if kernels(objective):
        _wait(folder / f"{objective}.json")
    found = first, _solve(objective, file, limit, folder), _solve(objective, file, limit, warm)
    return dict(zip(STATES, found, strict=True))


def _solve(objective: str, file: Path, limit: float, folder: Path) -> Mapping[str, float | None]:
    given = ["--objective", objective] if objective in ("throughput", "latency", "step", "stages") else []
    found = json.loads(_gangplan(["solve", str(file), *given, "--time-limit", f"{limit:g}", "--json"], folder))
    proved = found["wall_seconds"] if found["status"] == "OPTIMAL" else None
    return {"objective": found["objective"], "gap": found["gap"], "proved": proved}


def compared(found: Found) -> str:
    """Return a line a case: objective and gap in each state, and the seconds to the proof if there is one."""
    lines = []
    for case in found.cases:
        for seed in found.runs[case, STATES[0]]:
            cells = (found.runs[case, state][seed].figures for state in STATES if seed in found.runs[case, state])
            lines.append((f"{case}, seed {seed}", *map(_told, cells)))
    return table(("problem", *STATES), lines)


def _told(figures: Mapping[str, float]) -> str:
    if "objective" not in figures:
        return "no plan"
    gap = f"{figures['gap']:.2%}" if "gap" in figures else "no bound"
    return f"{figures['objective']:.6g}, {gap}" + (f", {figures['proved']:.1f} s" if "proved" in figures else "")


def _gangplan(arguments: list[str], folder: Path) -> str:
    environment = {**os.environ, "GANGPLAN_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-m", "gangplan", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode > 1:
        raise RuntimeError(done.stderr)
    return done.stdout


def _wait(mark: Path) -> None:
    """Wait for the process that compiles to be done with an objective."""
    for _ in range(int(_TOTAL / 0.2)):
        if mark.exists():
            return
        time.sleep(0.2)


STUDY = Study(
    "cold",
    ("objective", "gap", "proved"),
    tasks,
    measure,
    more={"table": lambda options: print(compared(STUDY.found(options.rows)))},
)
"""Verified objective, gap, and seconds to the proof."""
