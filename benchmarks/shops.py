"""Compare `gangplan.solve` on job shops with ten lines of CP-SAT: whole new processes, by wall and processor time.

Files are those of ``jobshops`` in the folder of data, in the standard format; ft06 is here. Runs of both take turns, as
others use the machine, and the least of `ROUNDS` counts; who is out of time is not run again.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path

from .found import table

ROUNDS = 5
LIMIT = 20.0
"""Seconds that each may take."""
FT06 = """6 6
2 1 0 3 1 6 3 7 5 3 4 6
1 8 2 5 4 10 5 10 0 10 3 4
2 5 3 4 5 8 0 9 1 1 4 7
1 5 0 5 2 5 3 3 4 8 5 9
2 9 1 3 4 5 5 4 0 3 3 1
1 3 3 3 5 9 0 10 4 4 2 1
"""
"""Fisher and Thompson 1963, in: Muth and Thompson, Industrial Scheduling; the optimum is 55."""
TEN_LINES = """
import json, sys
from ortools.sat.python import cp_model
jobs = [list(zip(*[iter(map(int, line.split()))] * 2)) for line in open(sys.argv[1]).read().splitlines()[1:]]
model, most, on = cp_model.CpModel(), sum(p for job in jobs for _, p in job), {}
end = model.new_int_var(0, most, "")
for job in jobs:
    last = 0
    for machine, p in job:
        start = model.new_int_var(0, most, "")
        model.add(start >= last)
        last = start + p
        on.setdefault(machine, []).append(model.new_interval_var(start, p, last, ""))
    model.add(end >= last)
for intervals in on.values():
    model.add_no_overlap(intervals)
model.minimize(end)
solver = cp_model.CpSolver()
solver.parameters.num_workers, solver.parameters.max_time_in_seconds = 1, float(sys.argv[2])
word = solver.status_name(solver.solve(model))
print(json.dumps([word, solver.objective_value, solver.best_objective_bound]))
"""
"""One worker: with two or more CP-SAT takes longer on the smallest."""
OURS = """
import json, sys
import gangplan
found = gangplan.solve(gangplan.read(sys.argv[1]), time_limit=float(sys.argv[2]))
print(json.dumps([found.standing, found.objective, found.bound]))
"""
_PROVED = "OPTIMAL"


def shops(data: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each job shop."""
    yield "ft06", FT06
    for file in sorted((data / "jobshops").glob("*.txt")):
        if file.stem != "ft06":
            yield file.stem, file.read_text()


def run(program: str, text: str, limit: float) -> tuple[float, float, str, float, float]:
    """Return wall and processor seconds of a new process, what it calls its answer, objective and bound."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        since, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-c", program, file.name, str(limit)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        wall, after = time.perf_counter() - since, resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return wall, processor, *json.loads(done.stdout)


def compared(data: Path, rounds: int = ROUNDS, limit: float = LIMIT) -> str:
    """Return a line a job shop: least seconds of both, ratios, and where one is not done objective and bound."""
    lines = []
    for name, text in shops(data):
        wall, processor, told = [inf, inf], [inf, inf], ["", ""]
        for _ in range(rounds):
            for i, program in enumerate((OURS, TEN_LINES)):
                seconds, busy, word, value, bound = run(program, text, limit)
                wall[i], processor[i] = min(wall[i], seconds), min(processor[i], busy)
                told[i] = word if word.startswith(_PROVED) else f"{value:g}, bound {bound:.5g}"
            if not all(word.startswith(_PROVED) for word in told):
                break
        cells = [f"{ours:.2f} s, {theirs:.2f} s, {ours / theirs:.2f}" for ours, theirs in (wall, processor)]
        lines.append((name, *cells, *told))
    head = "job shop", "wall: gangplan, ten lines, ratio", "processor", "gangplan's answer", "of ten lines"
    return table(head, lines)
