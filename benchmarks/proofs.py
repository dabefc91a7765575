"""Gaps by family and size, what a proof costs with its certificate: docs/proofs-results.md, docs/gapbench.md.

`--policy` is a label such as ``before``: rows of several versions stand side by side. `--only ", 1 s"` runs one
deadline. Of each objective, family and size `SAMPLE` instances of GapBench are taken, at even steps through its numbers
from the first on. Rows of ``LABEL, certify`` are solves with `certify=True`, of toy and small instances at `PROOF` s.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import gangplan
from gangplan.hybrid.bench.rows import ONLINE
from gangplan.hybrid.bench.suite import SIZES, Instance, make, suite
from gangplan.hybrid.server import fork_only
from gangplan.hybrid.table import import_libraries
from gangplan.instances import InstanceError
from gangplan.instances.certificates import verify_bound
from gangplan.solvers.processes import forked

from . import proofs_library as library
from . import proofs_tables as tables
from .proofs_tables import CERTIFY, PUBLISHED
from .rows import Task
from .study import Options, Study

DEADLINES = (1.0, 10.0, 60.0)
"""Seconds."""
PROOF = 10.0
"""Seconds of a solve whose certificate is made; the certificate has as many."""
SAMPLE = 2
LABEL = "now"
_LATE = 60.0
"""Seconds that a solve, or the last argument of a certificate, may take after its time is up."""
_DEVICES = 8
"""A100s of PipeDream's profiles, which name no cluster."""


def chosen() -> dict[str, list[Instance]]:
    """Return the sampled instances by "objective, family, size", the small sizes first."""
    groups: dict[str, list[Instance]] = {}
    for x in sorted(suite("all"), key=lambda x: SIZES.index(x.size)):
        if x.objective != ONLINE:
            groups.setdefault(f"{x.objective}, {x.family}, {x.size}", []).append(x)
    least = {name: min(SAMPLE, len(own)) for name, own in groups.items()}
    return {name: [own[i * len(own) // least[name]] for i in range(least[name])] for name, own in groups.items()}


def tasks(options: Options) -> Iterator[Task]:
    """Yield deadline by deadline each sampled instance, by its number as the seed; then the published graphs."""
    groups = chosen()
    for label in options.policies or (LABEL,):
        for deadline in DEADLINES:
            for group in options.chosen(groups):
                for x in groups[group]:
                    case, number = f"{group}, {deadline:g} s", int(x.id.rpartition("-")[2])
                    yield Task(case, label, number)
                    if deadline == PROOF and x.size in SIZES[:2]:
                        yield Task(case, label + CERTIFY, number)
        for name in options.chosen(f"{PUBLISHED}, {x}" for x in _published(options.data)):
            yield Task(f"{name}, {PROOF:g} s", label + CERTIFY, 0)


def _published(data: Path) -> dict[str, Path]:
    """Return the files of graphs that others have published, by objective and name."""
    files = [(x, file) for x in ("throughput", "latency") for file in (data / "msr-placement" / x).glob("*.json")]
    files += [("throughput", file) for file in (data / "pipedream").glob("*.txt") if file.stem != "LICENSE"]
    return {f"{objective}, {file.stem}": file for objective, file in sorted(files, key=lambda x: (x[1].suffix, *x))}


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Solve by one thread in a process of its own; with a certificate, have it checked."""
    *name, limit = task.case.removesuffix(" s").split(", ")
    problem = _problem(", ".join(name), task.seed, options.data)
    seconds, certify = float(limit), task.policy.endswith(CERTIFY)
    _ready(problem.objective)
    load = os.getloadavg()[0]
    until = time.perf_counter() + seconds * (2 if certify else 1) + _LATE
    found = forked(lambda: _solved(problem, seconds, certify), lambda: time.perf_counter() > until)
    return {**(found or {"seconds": seconds, "failed": 1.0}), "load": load}


def _problem(name: str, number: int, data: Path) -> Any:
    if not name.startswith(PUBLISHED):
        identity = f"{name.replace(', ', '-')}-{number:02}"
        return next(make(x) for x in suite("all") if x.id == identity)
    objective, rest = name.split(", ", 1)[1].split(", ", 1)
    path = _published(data).get(f"{objective}, {rest}")
    if path is None:
        raise InstanceError("data", "the file is not there")
    problem: Any = gangplan.read(path, devices=_DEVICES) if path.suffix == ".txt" else gangplan.read(path)
    return problem if problem.objective == objective else gangplan.with_objective(problem, objective)


@cache
def _ready(objective: str) -> None:
    """Have this process load what its forks will need."""
    from gangplan.solvers.method import suite as methods

    import_libraries(objective)
    own = methods(objective)
    gangplan.solve(own.random_problem(0, own.variants[0]), time_limit=1.0, workers=1, certify=True)


def _solved(problem: Any, seconds: float, certify: bool) -> Mapping[str, float | None]:
    fork_only()
    x = gangplan.solve(problem, time_limit=seconds, workers=1, certify=certify)
    spent = x.phases.get("certify", 0.0)
    found: dict[str, float | None] = {"seconds": x.wall_seconds - spent, "value": x.objective, "bound": x.bound}
    found |= {"zero": x.zero, "infeasible": 1.0 if x.status == "INFEASIBLE" else None}
    if certify:
        found |= {"certify": spent, "certified": float(x.standing.endswith("(certified)"))}
    if x.certificate is not None:
        began = time.perf_counter()
        proves = float(verify_bound(problem, x.certificate))
        found |= {"check": time.perf_counter() - began, "bytes": tables.size_of(x.certificate), "proves": proves}
    return found


STUDY = Study(
    "proofs",
    (
        "seconds", "value", "bound", "zero", "infeasible", "failed", "certify", "certified", "check", "bytes", "proves",
        "load",
    ),
    tasks,
    measure,
    {
        "proofs-results.md": {
            "certified": library.certified_table, "uncertified": library.why_table,
            "gaps in short": tables.gaps_in_short, "gaps": tables.gaps,
        },
        "gapbench.md": {"classes": library.classes, "published": tables.published},
        "open-problems.md": {"open": library.open_problems},
    },
)  # fmt: skip
"""Seconds of the solve alone; value, bound and zero; 1 if infeasible, if it had to be killed, if certified; seconds
to certify and to check, bytes of the certificate as JSON, the bound that it proves; load of the machine."""
