"""`gangplan solve`: what it prints, what it writes, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gangplan.instances import InstanceError, dump, load, verify
from gangplan.instances.generators import generate
from gangplan.instances.outlet import write_whole
from gangplan.instances.readers import read

COMMAND = [sys.executable, "-m", "gangplan"]
FIELDS = [
    *("status", "standing", "stop_reason", "objective", "bound", "gap", "wall_seconds", "method", "seed", "workers"),
    *("plan", "phases", "trace", "turns", "left_out", "versions", "notes", "conflict"),
]


def test_json(problem: Path, cli: Any) -> None:
    """One JSON object, and nothing else, says what was found; the verifier agrees and the phases add up."""
    done = cli("solve", problem, "--json", "--seed", "3", "--workers", "1", "--time-limit", "20")
    assert (done.code, done.err) == (0, "")
    assert done.out.count("\n") == 1
    found = json.loads(done.out)
    assert list(found) == [*FIELDS, "certified", "certificate"]
    assert (found["standing"], found["stop_reason"]) == ("OPTIMAL (certified)", "proved")
    assert (found["seed"], found["workers"], found["method"], found["gap"]) == (3, 1, "auto", 0.0)
    verdict = verify(read(problem), load(json.dumps(found["plan"])))
    assert verdict.objective == pytest.approx(found["objective"], rel=1e-12)
    assert found["bound"] == pytest.approx(found["objective"], rel=1e-6)
    assert sum(found["phases"].values()) == pytest.approx(found["wall_seconds"], abs=1e-6)
    assert found["trace"][-1]["objective"] == found["objective"]
    assert 0 < found["phases"]["read"] < found["trace"][-1]["seconds"] < found["wall_seconds"]


def test_files(problem: Path, cli: Any, tmp_path: Path) -> None:
    """--json, --out and both kinds of --plot go together; the plan written is the plan printed."""
    for ending in ("png", "html"):
        out, plot = tmp_path / f"{ending}.json", tmp_path / f"plan.{ending}"
        done = cli("solve", problem, "--json", "--out", out, "--plot", plot)
        assert done.code == 0
        assert json.loads(out.read_text()) == json.loads(done.out)["plan"]
        assert plot.stat().st_size > 1000
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_table(problem: Path, tmp_path: Path) -> None:
    """Without --json the log goes to stderr, and summary and devices to stdout, with units."""
    done = subprocess.run([*COMMAND, "solve", problem], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "OPTIMAL (certified)" in done.stdout
    assert " ms per pass" in done.stdout
    assert "load," in done.stdout
    assert sum(line.startswith("A100") for line in done.stdout.splitlines()) == 3
    assert "24 ops" in done.stderr
    assert "* " in done.stderr


def test_variant(tmp_path: Path, cli: Any) -> None:
    """A problem keeps its own variant unless another is asked for."""
    path = tmp_path / "free.json"
    path.write_text(dump(generate("fork_join", stages=2, variant="free", seed=2)))
    own, other = (cli("solve", path, "--json", *more) for more in ([], ["--variant", "contiguous"]))
    values = [json.loads(done.out)["objective"] for done in (own, other)]
    hashes = [json.loads(done.out)["plan"]["instance"] for done in (own, other)]
    assert values[0] <= values[1] * (1 + 1e-9)
    assert hashes[0] != hashes[1]


def test_initial(problem: Path, plan: Path, cli: Any) -> None:
    """A first plan is the first in the trace, and the answer is no worse."""
    done = cli("solve", problem, "--json", "--initial", plan, "--method", "pipedream")
    found = json.loads(done.out)
    assert found["trace"][0]["by"] == "initial"
    assert found["objective"] == verify(read(problem), load(plan.read_text())).objective


def test_infeasible(problem: Path, cli: Any, tmp_path: Path) -> None:
    """What cannot be solved has exit code 1, null where nothing is known, and no file."""
    out, plot = tmp_path / "out.json", tmp_path / "out.png"
    done = cli("solve", problem, "--memory", "1", "--json", "--out", out, "--plot", plot)
    found = json.loads(done.out)
    assert done.code == 1
    assert (found["status"], found["plan"], found["objective"], found["gap"]) == ("INFEASIBLE", None, None, None)
    assert not out.exists() and not plot.exists()
    assert str(out) in done.err and str(plot) in done.err


def test_no_time(problem: Path, cli: Any) -> None:
    """A limit that reading uses up ends in UNKNOWN or in what was found by then, not in an error."""
    done = cli("solve", problem, "--json", "--time-limit", "1e-9")
    found = json.loads(done.out)
    assert done.code == (1 if found["plan"] is None else 0)
    assert found["status"] == "UNKNOWN" or found["plan"] is not None
    assert done.err == ""


@pytest.fixture
def hard(tmp_path: Path) -> Path:
    """Return the file of a problem that takes long."""
    path = tmp_path / "hard.json"
    path.write_text(dump(generate("layered", ops=150, layers=10, degree=3, devices=7, variant="free", seed=5)))
    return path


def test_time_limit(hard: Path, spent: Callable[[], float]) -> None:
    """The limit covers the whole process: start, reading, solving, printing."""
    call = [*COMMAND, "solve", hard, "--json", "--time-limit", "2", "--workers", "2"]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["stop_reason"] == "time limit"
    assert spent() <= 2 * (2 * 1.05 + 4)  # of two workers, imports included


@pytest.mark.usefixtures("listens_to_ctrl_c")
@pytest.mark.parametrize("method", ["local_search", "cpsat"])
def test_interrupt(method: str, hard: Path, tmp_path: Path) -> None:
    """Ctrl-C, also amid native code, prints and writes the best plan so far, which is feasible, with exit code 0."""
    out = tmp_path / "plan.json"
    call = [*COMMAND, "solve", hard, "--time-limit", "60", "--method", method, "--devices", "3", "--out", out]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("*") and line.rstrip().endswith(method):
                break
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert "(interrupted)" in printed
    assert "Traceback" not in errors
    assert verify(read(hard, devices=3), load(out.read_text())).ok


def test_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure while writing leaves the old files as they were and no other file behind."""
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("old")

    real, opened = os.fdopen, []

    def fail(descriptor: int, mode: str) -> Any:
        opened.append(descriptor)
        if len(opened) == 2:
            os.close(descriptor)
            raise OSError(28, "No space left on device")
        return real(descriptor, mode)

    monkeypatch.setattr(os, "fdopen", fail)
    with pytest.raises(InstanceError, match="no space left"):
        write_whole({str(first): b"new", str(second): b"new"})
    assert first.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_writes_through_links_and_devices(tmp_path: Path) -> None:
    """A link stays a link and a device a device: neither is replaced by a file."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_whole({str(link): b"new", os.devnull: b"new"})
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert not Path(os.devnull).is_file()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the age of a process is known on Linux")
def test_the_wall_counts_from_the_start_of_the_process(problem: Path) -> None:
    """What a process has waited before the command begins is part of the wall time, as a person sees it."""
    code = "import sys, time; time.sleep(1); from gangplan.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "solve", problem, "--json", "--method", "pipedream"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert found["wall_seconds"] > found["phases"]["read"] >= 1
