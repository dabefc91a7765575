"""What operators ask of `Scheduler`: guarantees over a month, Kueue's set-ups, latency with everything switched on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from gangplan import Scheduler
from gangplan.instances.placement import Fleet
from gangplan.scheduler.settings import Limit, Quota, Sharing

from .found import Found, table
from .operators_kueue import kueue
from .operators_month import measure as month
from .rows import Task
from .scheduler_latency import NODES
from .scheduler_latency import measure as latency
from .study import Options, Study

MONTH, KUEUE, TOPOLOGY = "a month", "Kueue's baseline", "Kueue's topology"
LATENCY = "everything on, 100,000 GPUs, 5,000 waiting"
MONTHS = range(3)
"""Seeds."""
QUEUES, USERS, WAIT = 30, 200, 5000


def everything(gpus: int) -> Scheduler:
    """Return a scheduler of 30 queues with limits and users that share, classes, stops, two types, racks and drains."""
    racks, nodes = NODES[gpus]
    fleet = Fleet.regular(racks, nodes, 8, gpu_type={"A100": nodes - nodes // 3, "H100": nodes // 3})
    queues = {f"q{i}": Quota(1 / QUEUES) for i in range(QUEUES)}
    sharing = Sharing(queues, {"*": Limit(gpus=gpus // 20)}, fair_users=True, halflife=86400.0, least_run=600.0)
    scheduler = Scheduler(fleet, "heuristic", price=600.0, sharing=sharing)
    for node in range(0, racks * nodes, racks * nodes // 8):
        scheduler.drain(node, at=1e7)
    return scheduler


def terms(rng: np.random.Generator) -> dict[str, object]:
    """Draw what is said of a job."""
    draw: dict[str, object] = {
        "queue": f"q{rng.integers(QUEUES)}", "user": f"u{rng.integers(USERS)}",
        "priority": int(rng.choice((0, 0, 0, 1, 2))),
    }  # fmt: skip
    return draw | ({"within": "rack"} if rng.random() < 0.1 else {})


def tasks(options: Options) -> Iterator[Task]:
    """Yield all runs."""
    for case in options.chosen((MONTH, KUEUE, TOPOLOGY, LATENCY)):
        yield from (Task(case, "heuristic", seed) for seed in (MONTHS if case == MONTH else range(1)))


def measure(task: Task, options: Options) -> Mapping[str, float]:
    """Return the figures of one run."""
    if task.case == MONTH:
        return month(task.seed)
    if task.case != LATENCY:
        return kueue(task.case == TOPOLOGY)
    found = latency(100_000, task.seed, 600.0, 2000, make=everything, terms=terms, waiting=WAIT)
    return {"p99": found.p99, "thread": found.thread, "median": found.median, "seconds": found.seconds}


def months(found: Found) -> str:
    """Return a line a month."""
    rows = {seed: row.figures for seed, row in found.runs.get((MONTH, "heuristic"), {}).items()}
    lines = [
        (
            str(seed), f"{x['events'] / 2:,.0f}", f"{x['stops']:,.0f}", f"{x['owed']:,.0f}", f"{x['longest']:.0f}",
            f"{x['borrowed']:.0%}",
        )
        for seed, x in sorted(rows.items())
    ]  # fmt: skip
    return table(("seed", "jobs", "stops", "waits for what was owed", "longest, s", "GPU-hours borrowed"), lines)


def setups(found: Found) -> str:
    """Return what Kueue's set-ups took, theirs beside ours."""
    lines = []
    for case, rate, usage in ((KUEUE, 43, 0.559), (TOPOLOGY, 37, 0.624)):
        for row in found.runs.get((case, "heuristic"), {}).values():
            x = row.figures
            wait = " / ".join(f"{x[size]:.3g}" for size in ("small", "medium", "large"))
            lines.append((case, f"{x['rate']:.0f}", f"{rate}", f"{x['usage']:.1%}", f"{usage:.1%}", wait))
    waits = "s to admission: small / medium / large"
    return table(("set-up", "a second of a core", "theirs, by the clock", "usage", "theirs", waits), lines)


def latencies(found: Found) -> str:
    """Return how long a decision takes with everything switched on."""
    rows = [row.figures for row in found.runs.get((LATENCY, "heuristic"), {}).values()]
    lines = [tuple(f"{1e3 * x[key]:.0f}" for key in ("median", "thread", "p99")) for x in rows]
    return table(("median, ms of a core", "p99, ms of a core", "p99, ms by the clock"), lines)


STUDY = Study(
    "operators",
    (
        *("longest", "owed", "borrowed", "events", "decisions", "stops", "seconds"),
        *("workloads", "rate", "usage", "span", "small", "medium", "large", "p99", "thread", "median"),
    ),
    tasks,
    measure,
    {"operators-results.md": {"month": months, "set-ups": setups, "latency": latencies}},
)
