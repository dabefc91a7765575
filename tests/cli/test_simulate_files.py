"""The files of `gangplan simulate`: rows of jobs, pictures."""

from __future__ import annotations

import csv
import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from gangplan.instances.readers.traces import read_trace
from gangplan.simulator.trace import simulate

CALL = ("--cluster", "1x2", "--policy", "fifo,sjf")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Return a file that is there."""
    path = tmp_path / "trace.csv"
    path.write_text("job_id,num_gpu,submit_time,duration\na,1,0,10\nb,2,1,5\nc,1,2,8\n")
    return path


def test_all_at_once(trace: Path, cli: Any) -> None:
    """Rows have a column of the policy, and the picture is beside them; nothing else is left behind."""
    out, plot = trace.with_name("jobs.csv"), trace.with_name("jobs.png")
    assert cli("simulate", trace, *CALL, "--out", out, "--plot", plot).code == 0
    rows = list(csv.DictReader(out.open()))
    assert [(row["policy"], row["job_id"]) for row in rows] == [(p, j) for p in ("fifo", "sjf") for j in "abc"]
    assert [float(row["finish"]) for row in rows[:3]] == simulate(read_trace(trace).workload, 1, 2).finish.tolist()
    assert plot.read_bytes()[:4] == b"\x89PNG"
    assert sorted(path.name for path in trace.parent.iterdir()) == ["jobs.csv", "jobs.png", "trace.csv"]


def test_parquet(trace: Path, cli: Any) -> None:
    """Parquet has the same rows."""
    out = trace.with_name("jobs.PARQUET")
    assert cli("simulate", trace, *CALL, "--out", out).code == 0
    assert parquet.read_table(out).column("policy").to_pylist() == ["fifo"] * 3 + ["sjf"] * 3


def test_nothing_is_half_written(trace: Path, cli: Any) -> None:
    """If one file cannot be written, none is."""
    trace.with_name("plot.html").mkdir()
    done = cli("simulate", trace, *CALL, "--out", trace.with_name("jobs.csv"), "--plot", trace.with_name("plot.html"))
    assert (done.code, "directory" in done.err) == (2, True)
    assert sorted(path.name for path in trace.parent.iterdir()) == ["plot.html", "trace.csv"]


@pytest.mark.parametrize(
    ("out", "plot", "words"),
    [
        ("jobs.json", None, "out: '.json' is not one of .csv, .parquet"),
        (None, "jobs.gif", "plot: '.gif' is not one of .png, .svg, .html"),
        ("trace.csv", None, "file: is an input of this command and would be overwritten"),
        ("none/jobs.csv", None, "does not exist"),
        (None, "none/jobs.png", "does not exist"),
        ("both.svg", "both.svg", "out: '.svg' is not one of"),
        (None, "trace.csv", "would be overwritten"),
    ],
)
def test_refused_before_the_run(trace: Path, out: str | None, plot: str | None, words: str, cli: Any) -> None:
    """What cannot be written is refused before any work is done."""
    files = [x for name, path in (("--out", out), ("--plot", plot)) if path for x in (name, trace.parent / path)]
    done = cli("simulate", trace, "--cluster", "none", *files)
    assert done.code == 2 and words in done.err


def test_without_pyarrow(trace: Path, monkeypatch: pytest.MonkeyPatch, cli: Any) -> None:
    """Where pyarrow is absent, Parquet is refused with what to install, and CSV works."""
    monkeypatch.setattr(import_module("gangplan.cli.simulation_study"), "find_spec", lambda name: None)
    call = ("simulate", trace, "--cluster", "1x2", "--out")
    told = cli(*call, trace.with_name("jobs.parquet")).err
    assert re.search(r'out: needs pyarrow; .*: pip install "\.\[tables\]"; .csv needs nothing', told)
    assert cli(*call, trace.with_name("jobs.csv")).code == 0


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
