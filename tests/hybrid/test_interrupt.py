"""Ctrl-C: the best so far comes back, whatever native code is at work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

PROGRAM = """
import json, sys
from gangplan import solve
from gangplan.instances.generators import generate

method, variant = sys.argv[1:]
problem = generate("layered", ops=90, layers=10, degree=3.0, training=False, devices=6, variant=variant, seed=5)
said = []

def tell(run):
    if run.trace and not said:
        said.append(True)
        print("plan", flush=True)

result = solve(problem, time_limit=60, method=method, workers=2, callbacks=[tell])
print(json.dumps({"status": result.status, "reason": result.stop_reason, "objective": result.objective,
                  "bound": result.bound, "seconds": result.wall_seconds, "phases": result.phases}), flush=True)
"""


@pytest.mark.usefixtures("listens_to_ctrl_c")
@pytest.mark.parametrize(("method", "variant"), [("cpsat", "free"), ("milp", "free"), ("neighbourhood", "contiguous")])
def test_interrupt(method: str, variant: str) -> None:
    """A SIGINT amid CP-SAT, HiGHS or the dynamic programme ends the solve soon, with what there is."""
    call = [sys.executable, "-W", "ignore", "-c", PROGRAM, method, variant]
    child = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "plan\n"
        time.sleep(3.0)  # greedy's plan comes first; now the method itself is at work
        os.kill(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=30)
    finally:
        child.kill()
    assert child.returncode == 0, err
    result = json.loads(out)
    assert (result["status"], result["reason"]) == ("FEASIBLE", "interrupted")
    assert 0 < result["bound"] <= result["objective"]
    assert result["seconds"] < 30
    assert result["phases"][method] > 0.5
