"""What a fresh installation answers: with nothing compiled, the second time, and warm, as whole processes.

``python -m benchmarks cold`` solves one problem of every objective with each limit, by the command line, in a folder of
compiled code that is empty, then in the same folder once more when the compiling process is done, then in a full one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gangplan.hybrid.compiling import kernels
from gangplan.solvers.method import OBJECTIVES

LIMITS = (2.0, 10.0, 30.0)
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


def command(commands: Any) -> None:
    """Add the command to the command line."""
    cold = commands.add_parser("cold", help="cold against warm: gaps of whole processes with nothing compiled")
    cold.add_argument("--only", nargs="+", default=OBJECTIVES, choices=OBJECTIVES, metavar="OBJECTIVE")
    cold.add_argument("--limits", nargs="+", type=float, default=LIMITS, metavar="SECONDS")
    cold.add_argument("--seeds", nargs="+", type=int, default=(0,), metavar="SEED")
    cold.set_defaults(act=_run)


def _run(options: argparse.Namespace) -> int:
    print("| problem | limit, s | cold | second | warm |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        home, warm = Path(name), Path(name) / "warm"
        _gangplan(["warm-up", *options.only], warm)
        for objective in options.only:
            for seed in options.seeds:
                file = home / f"{objective}-{seed}.json"
                _gangplan(["generate", *PROBLEMS[objective], "--seed", str(seed), "--out", str(file)], warm)
                for limit in options.limits:
                    folder = Path(tempfile.mkdtemp(dir=home))
                    first = _solve(objective, file, limit, folder)
                    if kernels(objective):
                        _wait(folder / f"{objective}.json")
                    row = [first, _solve(objective, file, limit, folder), _solve(objective, file, limit, warm)]
                    print(f"| {objective} {seed} | {limit:g} | {' | '.join(row)} |", flush=True)
    return 0


def _solve(objective: str, file: Path, limit: float, folder: Path) -> str:
    """Return the objective and the gap of a solve, and the seconds to the proof if there is one."""
    given = ["--objective", objective] if objective in ("throughput", "latency", "step", "stages") else []
    found = json.loads(_gangplan(["solve", str(file), *given, "--time-limit", f"{limit:g}", "--json"], folder))
    if found["objective"] is None:
        return "no plan"
    gap = "no bound" if found["gap"] is None else f"{found['gap']:.2%}"
    proved = f", proved in {found['wall_seconds']:.1f} s" if found["status"] == "OPTIMAL" else ""
    return f"{found['objective']:.6g}, {gap}{proved}"


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
