"""Measure decisions through the doors: events a second and how long each takes, the service on one core."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances import InstanceError

from .found import Found, table
from .rows import Task
from .study import Options, Study

DOORS = ("json lines", "http")
CLUSTERS = {"20x8": 160, "128x8": 1024}
"""GPUs of each."""
SEEDS = 3
EVENTS = 3000
"""Requests of a run, each an event and the decision that follows it."""
WARM = 500
"""Requests of them that are not counted."""
Ask = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


def tasks(options: Options) -> Iterator[Task]:
    """Yield each cluster, door and seed."""
    for case in options.chosen(CLUSTERS):
        for seed in range(options.seeds or SEEDS):
            yield from (Task(case, door, seed) for door in options.policies or DOORS)


def requests(cluster: str, seed: int, ask: Ask) -> Iterator[tuple[float, int]]:
    """Play a loaded cluster: jobs come and end; yield the seconds of each request, and who started."""
    draw, now, running, count = random.Random(seed), 0.0, list[tuple[float, str]](), 0
    mean = 3600.0 * 8 / CLUSTERS[cluster]  # seconds between jobs of four GPUs that take two hours, on average
    arrives = 0.0
    while True:
        if running and (first := min(running))[0] <= arrives:
            running.remove(first)
            now, event = first[0], {"event": "finish", "job": first[1]}
        else:
            now, count = arrives, count + 1
            arrives += draw.expovariate(1 / mean)
            event = {"event": "submit", "job": f"job{count}", "gpus": draw.choice((1, 2, 4, 8))}
            event["seconds"] = draw.expovariate(1 / 7200.0)
        began = time.perf_counter()
        told, decided = ask([event | {"now": now}, {"event": "decide"}])
        took = time.perf_counter() - began
        if "error" in told or "error" in decided:
            raise InstanceError("answer", f"{told} {decided}")
        starts = decided["answer"]["starts"]
        running += [(now + start["seconds"], start["job"]) for start in starts]
        yield took, len(starts)


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Return requests a second, their times, and how many jobs started."""
    cores = sorted(os.sched_getaffinity(0))
    with (
        tempfile.TemporaryDirectory() as folder,
        (_http if task.policy == "http" else _lines)(task.case, Path(folder), cores[0]) as (ask, process),
    ):
        os.sched_setaffinity(0, cores[1:] or cores)
        try:
            play = requests(task.case, task.seed, ask)
            for _ in range(WARM):
                next(play)
            began, before = time.perf_counter(), computed(process)
            rows = [next(play) for _ in range(EVENTS - WARM)]
            wall, cpu = time.perf_counter() - began, computed(process) - before
        finally:
            os.sched_setaffinity(0, cores)
    times = np.array([seconds for seconds, _ in rows])
    return {
        "a_second": len(rows) / wall,
        "a_core_second": len(rows) / cpu,
        "median": float(np.median(times)),
        "p99": float(np.quantile(times, 0.99)),
        "worst": float(times.max()),
        "starts": float(sum(starts for _, starts in rows)),
    }


def computed(process: int) -> float:
    """Return the seconds that a process has computed."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _command(core: int, *arguments: str) -> list[str]:
    """Return a command of gangplan that stays on one core."""
    program = f"import os, sys; os.sched_setaffinity(0, [{core}]); from gangplan.cli import main; sys.exit(main())"
    return [sys.executable, "-P", "-c", program, *arguments]


@contextmanager
def _lines(cluster: str, folder: Path, core: int) -> Iterator[tuple[Ask, int]]:
    command = _command(core, "decide", "--cluster", cluster, "--log", str(folder / "log.jsonl"))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None

        def ask(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
            process.stdin.write("".join(f"{json.dumps(x)}\n" for x in events).encode())
            process.stdin.flush()
            return [json.loads(process.stdout.readline()) for _ in events]

        yield ask, process.pid
        process.stdin.close()


@contextmanager
def _http(cluster: str, folder: Path, core: int) -> Iterator[tuple[Ask, int]]:
    """Ask by one connection that stays open."""
    from http.client import HTTPConnection

    command = _command(core, "serve", "--port", "0", "--state", str(folder / "state"))
    headers = {"content-type": "application/json"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        connection = HTTPConnection("127.0.0.1", int(process.stdout.readline().rpartition(":")[2]))

        def ask(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
            connection.request("POST", "/v1/sessions/a/events", json.dumps(events), headers)
            return json.loads(connection.getresponse().read())

        connection.request("PUT", "/v1/sessions/a", json.dumps({"cluster": cluster}), headers)
        connection.getresponse().read()
        try:
            yield ask, process.pid
        finally:
            connection.close()
            process.terminate()


def compared(found: Found) -> str:
    """Return a row a cluster and door: requests a second, and their times in milliseconds."""
    rows = []
    for case in found.cases:
        for door in DOORS:
            of = {name: found.of(case, door, name) for name in ("a_second", "a_core_second", "median", "p99", "worst")}
            if of["p99"]:
                ms = (f"{1e3 * max(of[name].values()):.2f}" for name in ("median", "p99", "worst"))
                rates = (f"{min(of[name].values()):.0f}" for name in ("a_second", "a_core_second"))
                rows.append((case, door, *rates, *ms))
    return table(
        ("cluster", "door", "decisions a second", "a second of its core", "median, ms", "p99, ms", "longest, ms"), rows
    )


STUDY = Study(
    "doors",
    ("a_second", "a_core_second", "median", "p99", "worst", "starts"),
    tasks,
    measure,
    pages={"operators-results.md": {"doors": compared}},
)
"""The least a second of the seeds, and the longest times."""
