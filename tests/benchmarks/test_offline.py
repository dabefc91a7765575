"""The study of whole problems plays its network, its rivals and `auto`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.rows import ROOT, read


@pytest.mark.parametrize("case", ["throughput, 100", "placement, 16"])
def test_a_problem_is_planned_by_everybody(case: str, tmp_path: Path) -> None:
    """Sixteen plans are no worse than the first, nor than the heuristic that search begins with; all plans hold.

    In a process of its own: the study has a clock that tells the processor's time.
    """
    names = ("network", "network of 16", "random of 16", "classic", "classic and search", "auto")
    rows, policies = tmp_path / "rows.csv", [word for name in names for word in ("--policy", name)]
    asked = "offline", "--case", case, *policies, "--seeds", "1", "--rows", str(rows)
    subprocess.run([sys.executable, "-m", "benchmarks", *asked], cwd=ROOT, check=True, timeout=120)
    value = {x.task.policy: x.figures["value"] for x in read(rows)}
    assert set(value) == set(names) and min(value.values()) > 0
    assert value["network of 16"] <= value["network"] and value["classic and search"] <= value["classic"]
