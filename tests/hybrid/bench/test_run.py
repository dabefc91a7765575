"""The runner of GapBench: nothing is lost or repeated, and what fails costs its own row."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, fields
from pathlib import Path

import pytest

from gangplan.cli.bench_report import write_report
from gangplan.hybrid.bench.plugins import function_of
from gangplan.hybrid.bench.rows import FAILED, JOURNAL, BenchRow, read_rows
from gangplan.hybrid.bench.run import run
from gangplan.hybrid.bench.suite import read_manifest, suite
from gangplan.hybrid.bench.task import BenchSettings
from gangplan.instances import InstanceError

PLUGINS = """
import os, time

def breaks(run):
    raise ValueError("no idea")

def dies(run):
    os.kill(os.getpid(), 9)

def sleeps(run):
    time.sleep(60)

def hungry(run):
    blocks = bytearray(2**33)

def busy(run):
    while True:
        pass
"""
COMMAND = ("bench", "run", "--suite", "toy", "--objective", "stages", "--methods", "chain,ideals", "--no-report")


def test_kill_9_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """A run that is killed, its last row cut off, goes on: every solve has one row, and those that were there stay."""
    whole = {(x.id, method) for x in suite("toy", objective="stages") for method in ("chain", "ideals")}
    command = [sys.executable, "-m", "gangplan", *COMMAND, "--jobs", "2", "--folder", str(tmp_path)]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    until = time.monotonic() + 120
    while len(read_rows(tmp_path)) < 3 and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    before = read_rows(tmp_path)
    assert 3 <= len(before) < len(whole)
    with (tmp_path / JOURNAL).open("a") as journal:
        journal.write('{"instance":"cut of')
    assert read_rows(tmp_path) == before
    subprocess.run(command, check=True, capture_output=True)
    rows = read_rows(tmp_path)
    assert rows[: len(before)] == before
    assert sorted((row.instance, row.method) for row in rows) == sorted(whole)
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.read_table(tmp_path / "rows.parquet").num_rows == len(whole)


def test_what_fails_costs_its_own_row(tmp_path: Path) -> None:
    """Plug-ins that raise, die, sleep, or break a limit each leave a row that says so, and the report lists them."""
    file, folder = tmp_path / "bad_solvers.py", tmp_path / "rows"
    file.write_text(PLUGINS)
    names = ("breaks", "dies", "sleeps", "hungry", "busy")
    one = [x for x in suite("toy") if x.id == "stages-random-toy-00"]
    plugins = tuple(f"{file}:{name}" for name in names)
    run(one, BenchSettings(folder, ("ideals", "auto"), plugins[:4], (2.0,), memory=2**30))
    rows = run(one, BenchSettings(folder, ("ideals",), plugins[4:], (60.0,), cpu=1.0))
    found = {row.method: row for row in rows}
    assert found["ideals"].status == "OPTIMAL" and found["ideals"].value is not None
    assert found["auto"].status == "OPTIMAL" and found["auto"].notes == ""  # plug-ins are not in it
    assert {name: found[name].status for name in names} == dict.fromkeys(names, FAILED)
    assert "no idea" in found["breaks"].notes and "killed" in found["sleeps"].notes
    assert "MemoryError" in found["hungry"].notes and "a limit" in found["busy"].notes
    markdown, page = write_report(folder, suite("toy"))
    failures = markdown.read_text().partition("## Failures")[2]
    assert all(f"| stages-random-toy-00 | {name} |" in failures for name in names)
    assert "| stages-random-toy-00 | ideals |" not in failures
    assert "<svg" in page.read_text() and "default-src 'none'" in page.read_text() and "<script" not in page.read_text()


def test_no_plan_is_no_failure(tmp_path: Path) -> None:
    """None is a row without a plan, told how to decline; who is skipped has a gap of 100% too."""
    file = tmp_path / "shy.py"
    file.write_text(
        "def none(run):\n    return None\n\n\ndef declines(run):\n    raise NotImplementedError('not mine')\n"
    )
    one = [x for x in suite("toy") if x.id == "stages-random-toy-00"]
    plugins = tuple(f"{file}:{name}" for name in ("none", "declines"))
    found = {row.method: row for row in run(one, BenchSettings(tmp_path / "rows", ("ideals",), plugins, (2.0,)))}
    assert found["none"].status == "UNKNOWN" and "raise NotImplementedError" in found["none"].notes
    assert found["declines"].status == "SKIPPED" and found["declines"].notes == "not mine"
    assert (found["ideals"].gap, found["none"].gap, found["declines"].gap) == (0.0, 1.0, 1.0)


LATE = """
import time
import gangplan

def late(run):
    plan = gangplan.solve(run.problem, time_limit=1.0).plan
    time.sleep(max(0.0, run.deadline + 0.05 - time.perf_counter()))
    run.raise_bound(run.zero + 1e-9, "late")
    return plan

def twice(run):
    run.raise_bound(run.zero + 1e-12, "twice")
    run.offer(gangplan.solve(run.problem, time_limit=0.3, method="chain").plan, "twice")
    return late(run)
"""


def test_what_comes_late_does_not_count(tmp_path: Path) -> None:
    """Of a plug-in's plans and bounds those count that came before the deadline, though the row tells of all."""
    (file := tmp_path / "late.py").write_text(LATE)
    one = [x for x in suite("toy") if x.id == "stages-random-toy-00"]
    settings = BenchSettings(tmp_path / "rows", ("auto",), (f"{file}:late", f"{file}:twice"), (1.0,))
    found = {row.method: row for row in run(one, settings)}
    late, twice = found["late"], found["twice"]
    assert late.value == one[0].value and (late.in_time, late.gap, late.bound) == (None, 1.0, None)
    assert twice.trace, twice.notes
    assert twice.in_time == twice.trace[0][1] and twice.bound == pytest.approx(1e-12)
    assert late.trace[-1][0] > 1.0 > twice.trace[0][0]
    assert found["auto"].gap == 0.0 and found["auto"].by and found["auto"].bound_by


def test_rows_of_before_a_column_was_added(tmp_path: Path) -> None:
    """A journal without the columns that have a default is read; one without another is not."""
    row = BenchRow("a", "sha256:0", "step", "random", "toy", 1, "auto", 0, 1.0, 1, "UNKNOWN")
    data = asdict(row)
    (tmp_path / JOURNAL).write_text(json.dumps({k: x for k, x in data.items() if k != "gap"}) + "\n")
    assert [x.key for x in read_rows(tmp_path)] == [row.key]
    (tmp_path / JOURNAL).write_text(json.dumps({k: x for k, x in data.items() if k != "seed"}) + "\n")
    with pytest.raises(InstanceError, match="seed: is missing"):
        read_rows(tmp_path)


def test_the_page_has_every_column() -> None:
    """What a row holds is on the page."""
    page = (Path(__file__).parents[3] / "docs" / "gapbench.md").read_text(encoding="utf-8")
    assert [f.name for f in fields(BenchRow) if f"`{f.name}`" not in page] == []


def test_the_ledger_has_verified_values(tmp_path: Path) -> None:
    """A run notes values and bounds of gangplan's methods in the ledger, and nothing twice."""
    chosen = [x for x in suite("toy") if x.id.startswith("stages-random")][:1]
    run(chosen, BenchSettings(tmp_path, ("ideals",), ledger=tmp_path / "own.jsonl"))
    own = read_manifest(tmp_path / "own.jsonl") if (tmp_path / "own.jsonl").exists() else {}
    known = own.get(chosen[0].id, chosen[0])
    assert known.proved and known.value == read_rows(tmp_path)[0].value


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"methods": ("fastest",)}, "methods: there is no 'fastest'; see"),
        ({"plugins": ("nothing",)}, "plugin: 'nothing' is no FILE.py:FUNCTION and no executable, nor one .*metis"),
        ({"plugins": ("nowhere.py:f",)}, "plugin: there is no file"),
        ({"engine": "spark"}, "engine: 'spark' is not one of loky, ray, dask"),
    ],
)
def test_bad_settings(tmp_path: Path, settings: dict[str, object], words: str) -> None:
    """What is not there is named before anything runs."""
    with pytest.raises(InstanceError, match=words):
        run(suite("toy")[:1], BenchSettings(tmp_path, **settings))  # type: ignore[arg-type]
    assert read_rows(tmp_path) == []


def test_a_peer_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra that brings its package is named."""
    monkeypatch.setitem(sys.modules, "pymetis", None)
    monkeypatch.delitem(sys.modules, "gangplan.hybrid.bench.peers.metis", raising=False)
    with pytest.raises(InstanceError, match=r"'metis' needs pymetis.*pip install \"\.\[peers\]\""):
        function_of("metis")


def test_peers_of_a_run(tmp_path: Path) -> None:
    """A peer has a row where it has a model and is left out where it declares none; the report times its proofs."""
    chosen = [x for x in suite("toy", sample=4) if x.id.startswith(("throughput-random", "stages-random"))]
    rows = run(chosen, BenchSettings(tmp_path, ("auto",), ("plain-cpsat", "pipedream-dp"), (1.0, 5.0)))
    found = {(row.objective, row.method): row for row in rows if row.deadline == 5.0}
    skipped = found["throughput", "pipedream-dp"]
    assert skipped.status == "UNSUITED" and "not its own" in skipped.notes
    assert found["throughput", "plain-cpsat"].status == found["throughput", "auto"].status == "OPTIMAL"
    page = tmp_path / "elsewhere.md"
    write_report(tmp_path, suite("toy"), short=page)
    assert "## Scaling" not in page.read_text() and "## Scaling" in (tmp_path / "report.md").read_text()
    assert "auto | 1 |" not in page.read_text() and "auto | 1 |" in (tmp_path / "report.md").read_text()
    proofs = page.read_text().partition("## Time to optima")[2].partition("##")[0]
    assert "| throughput, plain-cpsat |" in proofs and "throughput, pipedream-dp" not in proofs
    assert "(elsewhere-profiles.svg)" in page.read_text() and (tmp_path / "elsewhere-profiles.svg").exists()


def test_an_engine_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra that brings it is named."""
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InstanceError, match=r"pip install \"\.\[ray\]\""):
        run(suite("toy")[:1], BenchSettings(tmp_path, engine="ray"))
