"""Policies that cannot be used: the answer comes from the others, in time, and says why."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import json, sys, time, warnings
from pathlib import Path

fault, folder = sys.argv[1], Path(sys.argv[2])
if fault == "no torch":
    sys.modules["torch"] = None  # importing it fails, as where it is not installed

from gangplan import solve, verify, warm_up
from gangplan.instances.generators.families import make, seed_of
from gangplan.learned.policy import weights

LIMIT = 1.5

if fault != "no torch":
    import torch
    from safetensors.torch import load_file, save_file

    for card in weights.FOLDER.glob("*.json"):
        known = json.loads(card.read_text())
        tensors = card.with_suffix(".safetensors")
        target = folder / tensors.name
        if fault == "truncated":
            target.write_bytes(tensors.read_bytes()[:1000])
        elif fault == "not numbers":
            save_file({name: x * float("nan") for name, x in load_file(tensors).items()}, target)
        elif fault == "of another":
            save_file({name: x.reshape(-1)[:1].clone() for name, x in load_file(tensors).items()}, target)
        if fault != "missing":
            import hashlib

            known["sha256"] = hashlib.sha256(target.read_bytes()).hexdigest()
            (folder / card.name).write_text(json.dumps(known))
    weights.FOLDER = folder

warm_up("schedule")
found = {}
for problem, family, size in (("schedule", "moldable", 16),):
    instance = make(problem, family, seed_of("test", 7), size)
    solve(instance, time_limit=LIMIT, workers=1)
    started = time.perf_counter()
    result = solve(instance, time_limit=LIMIT, workers=1)
    found[problem] = {
        "seconds": time.perf_counter() - started,
        "verified": result.plan is not None and verify(instance, result.plan).objective == result.objective,
        "notes": [note for note in result.notes if note.startswith(("learned left out", "learned:", "torch left out"))],
        "stop": result.stop_reason,
    }
print(json.dumps(found))
"""


def solved(fault: str, folder: Path) -> dict[str, Any]:
    """Solve a problem of each kind with that fault, in a process that has not loaded anything yet."""
    call = [sys.executable, "-W", "ignore", "-c", PROGRAM, fault, str(folder)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("fault", ["truncated", "not numbers", "of another", "missing", "no torch"])
def test_faults_of_weights(fault: str, tmp_path: Path) -> None:
    """Each problem has a verified plan by the deadline and a tenth, and a note on the policy."""
    pytest.importorskip("torch")
    for problem, found in solved(fault, tmp_path).items():
        assert found["verified"], (problem, found)
        assert found["seconds"] <= 1.1 * 1.5, (problem, found)
        assert found["stop"] == "proved" or found["notes"], (problem, found)
