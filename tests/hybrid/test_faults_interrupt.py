"""Ctrl-C: the best so far comes back, whatever native code is at work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import json, sys
from gangplan import solve
from gangplan.instances.generators import generate

problem = generate("layered", ops=90, layers=10, degree=3.0, training=False, devices=6, variant="free", seed=5)
said = []

def tell(run):
    if run.trace and not said:
        said.append(True)
        print("plan", flush=True)

result = solve(problem, time_limit=60, method=sys.argv[1], workers=2, callbacks=[tell])
print(json.dumps({"status": result.status, "reason": result.stop_reason, "objective": result.objective,
                  "bound": result.bound, "seconds": result.wall_seconds, "phases": result.phases}), flush=True)
"""


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process and of those that it began, and these in turn."""
    parents, times = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)] = int(fields[1])
        times[int(folder.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(times.get(member, 0.0) for member in family)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="a file of Linux")
@pytest.mark.usefixtures("listens_to_ctrl_c")
@pytest.mark.parametrize("method", ["cpsat", "milp"])
def test_interrupt(method: str) -> None:
    """A SIGINT amid CP-SAT or HiGHS ends the solve soon, with what there is."""
    call = [sys.executable, "-W", "ignore", "-c", PROGRAM, method]
    child = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "plan\n"
        at_work = cpu_seconds(child.pid) + 2.0  # a first plan comes first; then the method itself is at work
        while child.poll() is None and cpu_seconds(child.pid) < at_work:
            time.sleep(0.05)
        os.kill(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=300)
    finally:
        child.kill()
    assert child.returncode == 0, err
    result = json.loads(out)
    assert (result["status"], result["reason"]) == ("FEASIBLE", "interrupted")
    assert 0 < result["bound"] <= result["objective"]
    assert result["phases"][method] > 0.5
