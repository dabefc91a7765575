"""The files of `gangplan simulate`: rows of jobs, pictures."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from gangplan.cli.simulate import check_files, write_files
from gangplan.instances import InstanceError
from gangplan.instances.workload import Workload
from gangplan.simulator.trace import Outcome, simulate


@pytest.fixture
def outcomes() -> dict[str, Outcome]:
    """Return three jobs under two policies."""
    work = Workload(("a", "b", "c"), np.array([0.0, 1.0, 2.0]), [1, 2, 1], np.array([10.0, 5.0, 8.0]))
    return {policy: simulate(work, 1, 2, policy=policy, discipline="overtake") for policy in ("fifo", "sjf")}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Return a file that is there."""
    path = tmp_path / "trace.csv"
    path.write_text("job_id,num_gpu,submit_time,duration\na,1,0,10\nb,2,1,5\nc,1,2,8\n")
    return path


def test_all_at_once(outcomes: dict[str, Outcome], tmp_path: Path) -> None:
    """Rows have a column of the policy, and the picture is beside them; nothing else is left behind."""
    out, plot = tmp_path / "jobs.csv", tmp_path / "jobs.png"
    write_files(outcomes, "trace.csv", str(out), str(plot))
    rows = list(csv.DictReader(out.open()))
    assert [(row["policy"], row["job_id"]) for row in rows] == [(p, j) for p in ("fifo", "sjf") for j in "abc"]
    assert [float(row["finish"]) for row in rows[:3]] == outcomes["fifo"].finish.tolist()
    assert plot.read_bytes()[:4] == b"\x89PNG"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jobs.csv", "jobs.png"]


def test_parquet(outcomes: dict[str, Outcome], tmp_path: Path) -> None:
    """Parquet has the same rows."""
    out = tmp_path / "jobs.PARQUET"
    write_files(outcomes, "trace.csv", str(out), None)
    assert parquet.read_table(out).column("policy").to_pylist() == ["fifo"] * 3 + ["sjf"] * 3


def test_nothing_is_half_written(outcomes: dict[str, Outcome], tmp_path: Path) -> None:
    """If one file cannot be written, none is."""
    (tmp_path / "plot.html").mkdir()
    with pytest.raises(InstanceError, match="directory"):
        write_files(outcomes, "trace.csv", str(tmp_path / "jobs.csv"), str(tmp_path / "plot.html"))
    assert [path.name for path in tmp_path.iterdir()] == ["plot.html"]


@pytest.mark.parametrize(
    ("out", "plot", "words"),
    [
        ("jobs.json", None, "out: '.json' is not one of .csv, .parquet"),
        (None, "jobs.gif", "plot: '.gif' is not one of .png, .svg, .html"),
        ("trace.csv", None, "file: is an input of this command and would be overwritten"),
        ("none/jobs.csv", None, "does not exist"),
        (None, "none/jobs.png", "does not exist"),
    ],
)
def test_refused_before_the_run(trace: Path, out: str | None, plot: str | None, words: str) -> None:
    """What cannot be written is refused before any work is done."""
    paths = [None if name is None else str(trace.parent / name) for name in (out, plot)]
    with pytest.raises(InstanceError) as error:
        check_files(str(trace), *paths)
    assert words in str(error.value)


def test_without_pyarrow(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pyarrow is absent, Parquet is refused with what to install, and CSV works."""

    def absent(name: str, *more: Any) -> None:
        return None

    monkeypatch.setattr(sys.modules["gangplan.cli.simulate"], "find_spec", absent)
    with pytest.raises(InstanceError, match=r'out: needs pyarrow; .*: pip install "\.\[tables\]"; .csv needs nothing'):
        check_files(str(trace), str(trace.parent / "jobs.parquet"), None)
    check_files(str(trace), str(trace.parent / "jobs.csv"), None)


def test_command(trace: Path, cli: Any) -> None:
    """The command writes both files, says the same in JSON, and refuses what it cannot write."""
    out, plot = trace.with_name("jobs.csv"), trace.with_name("jobs.html")
    call = ("simulate", trace, "--cluster", "1x2", "--policy", "fifo", "--policy", "sjf", "--json")
    done = cli(*call, "--out", out, "--plot", plot)
    assert done.code == 0
    rows = list(csv.DictReader(out.open()))
    for figures in json.loads(done.out):
        mine = [float(row["jct"]) for row in rows if row["policy"] == figures["policy"]]
        assert np.mean(mine) == pytest.approx(figures["mean_jct"])
        assert figures["goodput"] == 1
    assert "trace.csv: 3 jobs on 1 node of 2 GPUs" in plot.read_text()
    out.unlink()
    assert cli(*call, "--out", out, "--plot", trace.with_name("jobs.gif")).code == 2
    assert not out.exists()
