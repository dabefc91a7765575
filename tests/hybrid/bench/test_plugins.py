"""Solvers of others: their processes have the problem alone, and whatever they are, what they say counts alike."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gangplan.hybrid.bench.library import read_library
from gangplan.hybrid.bench.plugins import introduced
from gangplan.hybrid.bench.rows import BenchRow
from gangplan.hybrid.bench.run import run
from gangplan.hybrid.bench.suite import read_manifest, suite
from gangplan.hybrid.bench.task import BenchSettings
from gangplan.instances import InstanceError

ROOT = Path(__file__).parents[3]
ONE = "schedule-philly-toy-00"
BEST = read_library()[ONE]
Solve = Callable[..., dict[str, BenchRow]]


@pytest.fixture
def solve(tmp_path: Path) -> Solve:
    """Run plug-ins on `ONE` and return their rows by name."""

    def rows(*plugins: str, limit: float = 0.5) -> dict[str, BenchRow]:
        one = [x for x in suite("toy") if x.id == ONE]
        settings = BenchSettings(tmp_path / "rows", ("lists",), plugins, (limit,))
        return {row.method: row for row in run(one, settings)}

    return rows


def program(folder: Path, name: str, text: str) -> str:
    """Write an executable and return its path."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


PEEK = """
import gc, glob, gzip, json
from pathlib import Path
import gangplan
from gangplan.hybrid.bench import library, suite
from gangplan.instances import dump
from gangplan.instances.documents import from_document

def peek(run):
    want = json.loads(dump(run.problem))["content_hash"]
    places = [library.LIBRARY, Path(gangplan.__file__).parents[1], Path("."), Path("hybrid")]
    files = [x for place in places for x in place.rglob("*.jsonl.gz")]
    plans = [json.loads(line)["plan"] for file in files for line in gzip.open(file, "rt")]
    plans += [x.plan for x in library.read_library().values()]
    seen = [x for x in gc.get_objects() if isinstance(x, suite.Instance) and x.value is not None]
    run.note(f"{len(files)} files, {len(suite.read_manifest())} known, {len(seen)} seen")
    found = [x for x in plans if x.get("instance") == want]
    return from_document(found[0]) if found else None
"""


def test_one_that_peeks_sees_the_problem_alone(solve: Solve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither package nor folder of its process has a plan, a value, or an instance with one; from here it has all."""
    (tmp_path / "peek.py").write_text(PEEK)
    monkeypatch.chdir(ROOT)
    row = solve(f"{tmp_path / 'peek.py'}:peek")["peek"]
    assert (row.status, row.in_time, row.gap) == ("UNKNOWN", None, 1.0)
    assert row.notes.startswith("0 files, 0 known, 0 seen")
    assert len(read_manifest()) > 600 and BEST.plan  # which are there


FORGE = """
import json, sys
from multiprocessing.connection import Connection

def forge(run, **more):
    end = {"end": {"cpu": 0, "notes": "", "status": "OPTIMAL", **more}}
    Connection(int(sys.argv[3])).send_bytes(json.dumps(end).encode())

def value(run):
    forge(run, value=1.0, bound=1.0)
"""


def test_one_that_speaks_for_its_server_gains_nothing(solve: Solve, tmp_path: Path) -> None:
    """No status, value or bound is taken on its word."""
    (tmp_path / "forge.py").write_text(FORGE)
    found = solve(*(f"{tmp_path / 'forge.py'}:{name}" for name in ("forge", "value")))
    assert [(x.status, x.value, x.bound, x.gap) for name, x in found.items() if name != "lists"] == [
        ("FAILED", None, None, 1.0)
    ] * 2


def test_one_that_has_changed_is_run_again(solve: Solve, tmp_path: Path) -> None:
    """A file that is as it was is not."""
    name = program(tmp_path, "says.sh", """echo '{"skipped": "one"}'""")
    first = solve(name)["says"]
    assert solve(name)["says"] == first and first.notes == "one"
    program(tmp_path, "says.sh", """echo '{"skipped": "two"}'""")
    assert solve(name)["says"].notes == "two"


LEAVES = """
import os, time

def leaves(run):
    if not os.fork():
        os.setsid()
        if not os.fork():
            with open({pid!r}, "w") as file:
                file.write(str(os.getpid()))
            os.closerange(0, 64)
            time.sleep(60)
        os._exit(0)
    os.wait()
    time.sleep(0.2)
"""


def test_nothing_is_left_behind(solve: Solve, tmp_path: Path) -> None:
    """A process in a session of its own, whose parents have ended, ends with the solve."""
    (tmp_path / "leaves.py").write_text(LEAVES.format(pid=str(tmp_path / "pid")))
    solve(f"{tmp_path / 'leaves.py'}:leaves")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_who_declares_is_left_out_and_who_declines_pays(solve: Solve, tmp_path: Path) -> None:
    """An objective that is declared to be for others costs nothing; a problem that is seen and declined costs 100%."""
    text = (
        "def f(run):\n    raise NotImplementedError('large')\n\n\ndef g(run):\n    pass\n\n\ng.objectives = ('step',)\n"
    )
    (tmp_path / "shy.py").write_text(text)
    found = solve(f"{tmp_path / 'shy.py'}:f", f"{tmp_path / 'shy.py'}:g", program(tmp_path, "h", "") + ":latency,step")
    assert {name: (row.status, row.gap) for name, row in found.items()} == {
        "lists": ("OPTIMAL", 0.0), "f": ("SKIPPED", 1.0), "g": ("UNSUITED", None), "h": ("UNSUITED", None)
    }  # fmt: skip
    (tmp_path / "other.py").write_text(text)
    with pytest.raises(InstanceError, match="plugin: two are named 'f'"):
        solve(f"{tmp_path / 'shy.py'}:f", f"{tmp_path / 'other.py'}:f")
    (tmp_path / "dead.py").write_text("import os\n\nos.kill(os.getpid(), 9)\n")
    with pytest.raises(InstanceError, match=r"plugin: '.*dead.py:f' cannot be loaded: its process ended"):
        introduced(f"{tmp_path / 'dead.py'}:f")
    with pytest.raises(InstanceError, match=r"plugin.objectives: 'steps' is not one of"):
        introduced(program(tmp_path, "i", "") + ":steps")


def test_executables(solve: Solve, tmp_path: Path) -> None:
    """Plans count when they come, bounds are claims; who ends badly or says no plan fails, and all are stopped."""
    (tmp_path / "plan.json").write_text(json.dumps(BEST.plan))
    bad = json.dumps({**BEST.plan, "start": [0.0] * 8, "content_hash": None})
    told = f"cat {tmp_path / 'plan.json'}; echo; "
    plugins = {
        "good": f'test "$GANGPLAN_TIME_LIMIT $GANGPLAN_SEED" = "0.5 0" || exit 3; {told} echo \'{{"bound": 1485.0}}\'',
        "slow": f"trap '{told} exit' TERM; grep -q philly_has_no_name; sleep 30 & wait",
        "deaf": f"trap '' TERM; {told} sleep 30",
        "dies": "exit 3",
        "wrong": f"echo '{bad}'",
        "prose": "echo optimal",
        "skips": f'echo $$ > {tmp_path / "left"}; echo \'{{"skipped": "not mine"}}\'; exec sleep 300',
    }
    found = solve(*(program(tmp_path, name, text) for name, text in plugins.items()))
    assert BEST.value == 1485.0
    assert {name: (row.status, row.value, row.in_time) for name, row in found.items() if name != "lists"} == {
        "good": ("OPTIMAL", 1485.0, 1485.0),
        "slow": ("FEASIBLE", 1485.0, None),
        **dict.fromkeys(("deaf", "dies", "wrong", "prose"), ("FAILED", None, None)),
        "skips": ("SKIPPED", None, None),
    }
    assert not Path("/proc", (tmp_path / "left").read_text().strip(), "exe").exists()
    notes = {name: row.notes for name, row in found.items()}
    assert "killed" in notes["deaf"] and "exit code 3" in notes["dies"] and notes["skips"] == "not mine"
    assert "infeasible" in notes["wrong"] and "JSON" in notes["prose"]


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
def test_the_shell_example(solve: Solve) -> None:
    """It makes a plan of every job, and declines what is not for it."""
    row = solve(str(ROOT / "docs" / "examples" / "longest_first.sh"), limit=2.0)["longest_first"]
    assert (row.status, row.value) == ("FEASIBLE", pytest.approx(83580 / 8)) and row.value != BEST.value
    assert row.environment.count("cores") == 1 and "GiB of memory" in row.environment and row.busy > 0
