"""`gangplan simulate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROWS = "job_id,num_gpu,submit_time,duration\na,1,0,10\nb,2,1,5\nc,1,2,8\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Return the file of three jobs."""
    path = tmp_path / "trace.csv"
    path.write_text(ROWS)
    return path


def test_json(trace: Path, cli: Any) -> None:
    """A list with an object a policy, in the order asked."""
    done = cli("simulate", trace, "--cluster", "1x2", "--policy", "sjf", "--policy", "fifo", "--json")
    found = json.loads(done.out)
    assert [one["policy"] for one in found] == ["sjf", "fifo"]
    # fifo: a 0-10, b 10-15, c 15-23: stays of 10, 14 and 21
    assert found[1]["mean_jct"] == pytest.approx(15.0)
    assert found[1]["makespan"] == 23
    assert found[1]["utilisation"] == pytest.approx(28 / 46)


def test_table(trace: Path, cli: Any) -> None:
    """People get a table, with what was skipped."""
    trace.write_text(ROWS + "d,0,1,1\n")
    assert cli("simulate", trace, "--cluster", "1x2").code == 2
    done = cli("simulate", trace, "--cluster", "1x2", "--skip-bad", "--discipline", "easy")
    assert done.code == 0
    assert "line 5: num_gpu: '0' is not a positive whole number" in done.out
    assert "fifo" in done.out


@pytest.mark.parametrize("cluster", ["2", "0x8", "2x", "axb", "2x8x3"])
def test_bad_cluster(trace: Path, cli: Any, cluster: str) -> None:
    """A cluster is nodes x GPUs."""
    done = cli("simulate", trace, "--cluster", cluster)
    assert (done.code, done.err) == (2, f"error: cluster: {cluster!r} is not nodes x GPUs, like 20x8\n")
