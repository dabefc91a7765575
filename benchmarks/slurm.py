"""Measure the same jobs under Slurm's own backfill and under `gangplan slurm`, on its real daemons."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from gangplan.instances import InstanceError

from .found import Found, table
from .rows import Task
from .slurm_daemons import Daemons, missing
from .study import Options, Study

WHO = ("backfill", "gangplan")
CASES = {"4x4": (4, 4)}
"""Racks, and nodes in each, of 4 GPUs."""
WORDS = {"backfill": "Slurm's backfill", "gangplan": "`gangplan slurm`"}
JOBS = 200
SEEDS = 3
_NICE = -15
"""Nice value of all that is measured: other work of the machine is not to delay it."""
LOAD = 1.0
"""GPUs that jobs ask for over those that there are, while they come."""
SCALE = 15.0
"""Seconds of a limit for one that jobs take: limits are whole minutes, and the study is not to take hours."""


def tasks(options: Options) -> Iterator[Task]:
    """Yield each cluster, seed and scheduler."""
    for case in options.chosen(CASES):
        for seed in range(options.seeds or SEEDS):
            yield from (Task(case, who, seed) for who in options.policies or WHO)


def jobs(seed: int, nodes: int) -> list[tuple[float, int, int, float, int]]:
    """Return jobs by arrival: when, nodes, GPUs of each, seconds, limit in minutes.

    Users ask for one to three times what they need, as scaled.
    """
    draw, now, rows = random.Random(seed), 0.0, []
    for _ in range(JOBS):
        wide, gpus = draw.choices((1, 2, 3, 4), (4, 3, 1, 2))[0], draw.choice((2, 4, 4))
        seconds = min(60.0, max(4.0, draw.lognormvariate(2.6, 0.7)))
        limit = max(1, round(seconds * SCALE * draw.uniform(1.0, 3.0) / 60.0))
        rows.append((now, wide, gpus, round(seconds, 1), limit))
        now += draw.expovariate(1.0)
    asked = sum(wide * gpus * seconds for _, wide, gpus, seconds, _ in rows)
    stretch = asked / (LOAD * nodes * 4) / now
    return [(at * stretch, *rest) for at, *rest in rows]


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Return the makespan, waits and pairs of nodes in different racks of one run."""
    if lack := missing():
        raise InstanceError("slurm", lack)
    os.setpriority(os.PRIO_PROCESS, 0, _NICE)
    with tempfile.TemporaryDirectory() as folder, Daemons(Path(folder), CASES[task.case]) as slurm:
        ours = task.policy == "gangplan"
        words = ["-m", "gangplan", "slurm", "--interval", "0.2", "--log", f"{folder}/log.jsonl"]
        with (Path(folder) / "log" / "gangplan").open("wb") as out:
            command = ["setpriv", "--pdeathsig", "KILL", *([sys.executable, *words] if ours else ["true"])]
            door = subprocess.Popen(command, env=slurm.environment, stdout=out, stderr=out)
        try:
            slurm.wait(lambda: not ours or Path(f"{folder}/log.jsonl").exists(), "start of gangplan")
            began = time.monotonic()
            for at, wide, gpus, seconds, limit in jobs(task.seed, len(slurm.nodes)):
                time.sleep(max(0.0, began + at - time.monotonic()))
                held = ("--hold", "--comment=gangplan") if ours else ()
                slurm.submit(seconds, *held, f"--nodes={wide}", f"--gres=gpu:{gpus}", f"--time={limit}")
            slurm.wait(
                lambda: all(x["job_state"] == "COMPLETED" for x in slurm.jobs().values()), "end", 1800.0, every=1.0
            )
        finally:
            door.kill()
            door.wait()
        rows = list(slurm.jobs().values())
        where = [[seat["nodename"] for seat in row["job_resources"]["allocated_nodes"]] for row in rows]
    waits = np.array([row["start_time"] - row["submit_time"] for row in rows], dtype=float)
    return {
        "makespan": float(max(row["end_time"] for row in rows) - min(row["submit_time"] for row in rows)),
        "wait": float(waits.mean()),
        "worst": float(waits.max()),
        "crossing": float(sum(map(slurm.crossing, where))),
        "pairs": float(sum(len(nodes) * (len(nodes) - 1) // 2 for nodes in where)),
    }


def compared(found: Found) -> str:
    """Return a row a scheduler, means over seeds."""
    rows = []
    for case in found.cases:
        for who in WHO:
            of = {name: found.of(case, who, name) for name in STUDY.figures}
            if of["wait"]:
                mean = {name: float(np.mean([*values.values()])) for name, values in of.items()}
                texts = (f"{mean[name]:.{digits}f}" for name, digits in (("makespan", 0), ("wait", 1), ("worst", 0)))
                rows.append((WORDS[who], *texts, f"{mean['crossing']:.0f} of {mean['pairs']:.0f}"))
    titles = ("makespan, s", "mean wait, s", "longest wait, s", "pairs across racks")
    return table(("200 jobs on 4 racks of 4 nodes", *titles), rows)


STUDY = Study(
    "slurm",
    ("makespan", "wait", "worst", "crossing", "pairs"),
    tasks,
    measure,
    pages={"operators-results.md": {"slurm": compared}},
)
"""Seconds, and pairs of nodes of one job: those in different racks, and all."""
