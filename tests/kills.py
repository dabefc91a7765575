"""``python -m tests.kills``: kill trainings, labels, sweeps, passes and sessions at random moments, and go on.

Each is run once undisturbed; then again and again, killed (SIGKILL, with all its processes) until it was killed so many
times, and started by the same command until it is over. The result has to be the same.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

GANGPLAN = [sys.executable, "-P", "-m", "gangplan"]
ROOT = Path(__file__).parents[1]
PLACEMENT = """policy = "offline-placement"
ops = 6
lessons = 24
validation = 4
larger = 2
imitation_updates = 6
rl_updates = 4
minibatch = 4
draws = 2
validate_every = 2
"""
TOPDRL = """policy = "topdrl"
imitation_updates = 2
labels = 20
rl_updates = 1
lanes = 2
steps = 8
warm = 1
validate_every = 2
validation_seeds = 2
"""
CLOCK = ("seconds", "date", "wall", "time", "per_second", "at", "on", "commit", "began", "memory")
"""Words in names of what a machine's clock decides."""


class Case(NamedTuple):
    """A command that goes on where it was: in an empty folder, and in one in which it was killed."""

    begin: list[str]
    again: list[str]
    result: Callable[[Path], Any]
    stdin: str = ""


def _plain(data: Any) -> Any:
    """Return data without what the clock decides."""
    if isinstance(data, dict):
        return {k: _plain(v) for k, v in data.items() if not any(word in k.lower().split("_") for word in CLOCK)}
    return [_plain(x) for x in data] if isinstance(data, list) else data


def _trained(folder: Path) -> Any:
    """Return the weights of a training, and its curve."""
    out = folder / "out"
    weights = {x.name: hashlib.sha256(x.read_bytes()).hexdigest() for x in sorted(out.glob("*.safetensors"))}
    curves = {str(x.relative_to(out)): _plain(list(csv.DictReader(x.open()))) for x in sorted(out.rglob("*.csv"))}
    assert weights
    return weights, curves


def _rows(folder: Path) -> Any:
    """Return which runs of a sweep there are, each once, and what was proved."""
    rows = [json.loads(x) for x in (folder / "gapbench" / "rows.jsonl").read_text().splitlines() if x.strip()]
    return sorted((x["instance"], x["method"], x["seed"], x["status"] == "OPTIMAL", x["objective"]) for x in rows)


def _passed(folder: Path) -> Any:
    """Return what a library has of each instance: the value, the bound."""
    from gangplan.hybrid.bench.library import read_library

    found = {name: (x.value, x.bound) for name, x in read_library(folder / "library").items()}
    assert found
    return found


def _events() -> str:
    """Return events of a loaded cluster, a line each."""
    draw, rows = random.Random(1), list[dict[str, Any]]()
    for i in range(1100):  # more lines than there are between whole states
        rows.append({"event": "submit", "now": 10 * i, "job": f"j{i}", "gpus": draw.choice((1, 2, 4)), "seconds": 60})
        rows.append({"event": "decide", "deadline": 60})
        if i % 7 == 6:
            rows.append({"event": "drain", "node": "node1", "until": 10 * i + 50})
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _session(folder: Path) -> Any:
    """Return the decisions of a log."""
    rows = [json.loads(x) for x in (folder / "log.jsonl").read_text().splitlines()[1:]]
    return [_plain(row) for row in rows if row["event"] != "restore"]


def _train(config: str) -> list[str]:
    return [*GANGPLAN, "learn", "train", config, "--out", "out", "--seed", "1"]


_BENCH = ["--suite", "toy", "--objective", "throughput", "--sample", "4", "--time-limit", "20"]
_RUN = [*GANGPLAN, "bench", "run", *_BENCH, "--methods", "pipeline,milp", "--seeds", "2"]
_PASS = [*GANGPLAN, "bench", "pass", *_BENCH, "--certify", "20", "--library", "library"]
_SERVE = [sys.executable, "-m", "tests.kills", "--feed", "events"]
CASES = {
    "training": Case(_train("placement.toml"), [*_train("placement.toml"), "--resume"], _trained),
    "labels": Case(_train("topdrl.toml"), [*_train("topdrl.toml"), "--resume"], _trained),
    "sweep": Case(_RUN, _RUN, _rows),
    "bench pass": Case(_PASS, _PASS, _passed),
    "session": Case(_SERVE, _SERVE, _session),
}


def feed(name: str) -> int:
    """Send the events of a file to `gangplan decide --log`, from where its log is on; wait for each answer."""
    log, rows = Path("log.jsonl"), Path(name).read_text().splitlines()
    lines = log.read_bytes().split(b"\n")[1:-1] if log.exists() else []  # that are whole
    done = sum(not line.startswith(b'{"event":"restore"') for line in lines)
    command = [*GANGPLAN, "decide", "--cluster", "3x8", "--log", "log.jsonl"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        for row in rows[done:]:
            process.stdin.write(f"{row}\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert "error" not in answer, answer
    return process.returncode


def _start(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    surroundings = os.environ | {"PYTHONPATH": str(ROOT), "GANGPLAN_KILLS": "1"} if "tests.kills" in command else None
    with (folder / "stderr").open("ab") as errors:
        return subprocess.Popen(
            command, cwd=folder, env=surroundings, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
            start_new_session=True,
        )  # fmt: skip


def _prepared(folder: Path) -> Path:
    folder.mkdir()
    (folder / "placement.toml").write_text(PLACEMENT)
    (folder / "topdrl.toml").write_text(TOPDRL)
    (folder / "events").write_text(_events())
    return folder


def _finished(command: list[str], folder: Path) -> None:
    code = _start(command, folder).wait(3600)
    assert code == 0, f"{command} ended with code {code}: {(folder / 'stderr').read_text()[-1500:]}"


def trial(name: str, kills: int, seed: int) -> str:
    """Return a row of the table: kills, runs, how many results were the same."""
    case, draw, done, runs, wrong = CASES[name], random.Random(f"{name} {seed}"), 0, 0, list[str]()
    with tempfile.TemporaryDirectory() as place:
        reference, began = _prepared(Path(place) / "reference"), time.monotonic()
        _finished(case.begin, reference)
        expected, whole = case.result(reference), time.monotonic() - began
        while done < kills:
            folder, runs, command, lives = _prepared(Path(place) / f"run{runs}"), runs + 1, case.begin, 0
            try:
                while done < kills and lives < 10:
                    process = _start(command, folder)
                    with suppress(subprocess.TimeoutExpired):
                        code = process.wait(draw.uniform(0.1, 1.0) * whole)
                        if code:
                            wrong.append(f"code {code}: {(folder / 'stderr').read_text()[-1500:]}")
                        break
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    done, lives, command = done + 1, lives + 1, case.again
                    if command != case.begin and not (folder / "out").exists():
                        command = case.begin  # it was killed before it began
                _finished(command if lives else case.again, folder)
                found = case.result(folder)
                if found != expected:
                    wrong.append(f"{str(found)[:700]}\nis not\n{str(expected)[:700]}")
            except AssertionError as error:
                wrong.append(str(error))
            print(f"{name}: {done} kills, {runs} runs, {len(wrong)} wrong", file=sys.stderr, flush=True)
    words = "".join(f"\n{x}" for x in wrong)
    return f"{name:12} {done:>6} kills {runs:>5} runs of {whole:.0f} s {len(wrong):>5} wrong{words}"


def main() -> int:
    """Return 1 if a result was another."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="of each")
    parser.add_argument("--only", default="", help=f"of {', '.join(CASES)}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--feed", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.feed:
        return feed(args.feed)
    rows = []
    for name in CASES:
        if args.only in ("", name):
            rows.append(trial(name, args.kills, args.seed))
            print(rows[-1], flush=True)
    return 1 if any(" 0 wrong" not in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
