"""`solve` with `auto` against each single method, deadline by deadline, wherever benchmarks/hybrid.csv lacks it.

The reference of a small instance is the optimum: ``auto`` with `PROOF` seconds, or else the instance does not count.
Everything runs in one process that has solved something before: what is compared is methods, not imports.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .ledger import ROOT
from .records import append_records, read_records

CSV = ROOT / "benchmarks" / "hybrid.csv"
Key = tuple[str, str, str, int, int, str, float]
PROOF = 20.0
DEADLINES = (0.01, 0.1, 1.0, 2.0, 10.0)
SINGLE = {
    "throughput": ("pipedream", "random_keys", "pipeline", "local_search", "cpsat"),
    "step": ("heft", "list_schedule", "local_search", "lns", "cpsat"),
    "placement": ("topology", "least_interference", "local_search", "patterns", "cpsat"),
    "schedule": ("lists", "lp", "local_search", "starts", "cpsat"),
}
"""The methods that `auto` is compared with."""
SMALL = {"throughput": 60, "step": 50, "placement": 8, "schedule": 12}
MEDIUM = {"throughput": 600, "step": 300, "placement": 40, "schedule": 60}
LARGE = {
    "throughput": (300, 1000, 3000),
    "step": (300, 1000, 3000),
    "placement": (64, 256, 1000),
    "schedule": (200, 500, 2000),
}
"""The sizes of instances; of the large set three, at `AT` seconds."""
AT = (0.03, 0.1, 1.0, 3.0, 10.0)
WORKERS = 2
HOT = 0.1
"""Seconds up to which a solve is made twice: the processor's caches hold another problem's code the first time."""


@dataclass(frozen=True, slots=True)
class HybridRow:
    """One solve.

    Attributes:
        set: ``small``, ``medium`` or ``large``.
        problem, family, size, seed: of the instance, see `gangplan.instances.generators.families.make`, and `large`.
        method: ``auto``, or a single one.
        deadline: seconds given.
        seconds: taken.
        status: of the result.
        objective: as the verifier says; None without a plan.
        bound: proved; None if nothing is.
        trace: ``seconds:objective`` of every incumbent, with blanks between.
        notes: of the result, with semicolons between.
        load: runnable processes of the machine over the last minute.
    """

    set: str
    problem: str
    family: str
    size: int
    seed: int
    method: str
    deadline: float
    seconds: float
    status: str
    objective: float | None
    bound: float | None
    trace: str
    notes: str
    load: float

    @property
    def instance(self) -> tuple[str, str, str, int, int]:
        """What the rows of several methods have in common."""
        return self.set, self.problem, self.family, self.size, self.seed

    @property
    def key(self) -> Key:
        """What makes another row a repetition of this one."""
        return *self.instance, self.method, self.deadline

    @property
    def incumbents(self) -> list[tuple[float, float]]:
        """When each better plan came, and its objective."""
        pairs = (part.split(":") for part in self.trace.split())
        return [(float(a), float(b)) for a, b in pairs]


def read(path: Path = CSV) -> list[HybridRow]:
    """Return the rows, oldest first."""
    return read_records(path, HybridRow)


@dataclass(frozen=True, slots=True)
class Job:
    """One solve to be made."""

    set: str
    problem: str
    family: str
    size: int
    seed: int
    method: str
    deadline: float


def jobs(which: str, instances: int, alone: int, longest: int, deadline: float) -> Iterator[Job]:
    """Yield all solves of a set, those of an instance next to one another.

    Args:
        which: ``small`` or ``medium``.
        instances: of each problem, on which ``auto`` runs.
        alone: of these, so many on which each single method runs as well.
        longest: of these, so many with the longest deadline of the small set.
        deadline: of the medium set, seconds.
    """
    from gangplan.instances.generators.families import FAMILIES, seed_of

    sizes = SMALL if which == "small" else MEDIUM
    for i in range(instances):
        for problem, size in sizes.items():
            families = FAMILIES[problem]
            at = (which, problem, families[i % len(families)], size, seed_of("test", i))
            if which == "medium":
                yield from (Job(*at, method, deadline) for method in ("cpsat", "auto"))
                continue
            yield Job(*at, "auto", PROOF)
            for limit in DEADLINES if i < longest else DEADLINES[:-1]:
                yield Job(*at, "auto", limit)
                if i < alone and limit != 2:
                    yield from (Job(*at, method, limit) for method in SINGLE[problem])


def large_jobs(instances: int, deadlines: Sequence[float]) -> Iterator[Job]:
    """Yield the solves of the large set: of each family and size so many instances, by every method.

    Seeds go up with sizes, so that no two instances are the same graph, and those of two families are, as they should.
    """
    from gangplan import methods
    from gangplan.instances.generators.families import seed_of
    from gangplan.instances.generators.large import LARGE as FAMILIES

    known = methods("throughput")
    for i in range(instances):
        for problem, sizes in LARGE.items():
            for at, size in enumerate(sizes):
                for family in FAMILIES[problem]:
                    seed = seed_of("test", i + instances * at)
                    for deadline in deadlines:
                        for method in ("auto", *SINGLE[problem]):
                            if problem != "throughput" or method == "auto" or family in known[method]:
                                yield Job("large", problem, family, size, seed, method, deadline)


def run(todo: Iterator[Job], *, only: str = "", path: Path = CSV, say: Callable[[str], None] = print) -> None:
    """Make the solves that are missing; a row is written as soon as it is there."""
    from gangplan import methods, warm_up

    warm_up(*SINGLE)
    done = {row.key for row in read(path)}
    known = {problem: methods(problem) for problem in SINGLE}
    proved = {row.instance for row in read(path) if row.deadline == PROOF and row.status == "OPTIMAL"}
    warm: set[tuple[str, str]] = set()
    for job in todo:
        row_key = (job.set, job.problem, job.family, job.size, job.seed, job.method, job.deadline)
        label = " ".join(map(str, row_key))
        reference = job.set == "small" and job.deadline == PROOF
        if job.set == "small" and not reference and row_key[:5] not in proved:
            continue
        if row_key in done or only not in label or (job.method != "auto" and job.method not in known[job.problem]):
            continue
        if (job.problem, job.method) not in warm:
            warm.add((job.problem, job.method))
            _solve(_make(job), job.method, 5.0)
        if job.deadline <= HOT:
            _solve(_make(job), job.method, job.deadline)
        row = _row(job, *_solve(_make(job), job.method, job.deadline))
        if reference and row.status == "OPTIMAL":
            proved.add(row.instance)
        append_records([row], path)
        say(f"{label}: {row.status} {row.objective} in {row.seconds:.3f} s")


def _make(job: Job) -> Any:
    from gangplan.instances.generators.families import make
    from gangplan.instances.generators.large import make_large

    if job.set == "large":
        return make_large(job.problem, job.family, job.seed, job.size)
    return make(job.problem, job.family, job.seed, job.size)


def _solve(problem: Any, method: str, deadline: float) -> tuple[Any, float]:
    from gangplan import solve

    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the notes have it
        result = solve(problem, time_limit=deadline, method=method, workers=WORKERS)
    return result, time.perf_counter() - started


def _row(job: Job, result: Any, seconds: float) -> HybridRow:
    trace = " ".join(f"{found.seconds:.4f}:{found.objective:.9g}" for found in result.trace)
    return HybridRow(
        job.set, job.problem, job.family, job.size, job.seed, job.method, job.deadline, round(seconds, 4),
        result.status.value, result.objective, result.bound, trace, "; ".join(result.notes),
        round(os.getloadavg()[0], 2),
    )  # fmt: skip


def add(commands: Any) -> None:
    """Add the command."""
    hybrid = commands.add_parser(
        "hybrid", help="auto against single methods: run what hybrid.csv lacks, write the page"
    )
    hybrid.add_argument("what", choices=("small", "medium", "large", "page"))
    hybrid.add_argument("--instances", type=int, default=100, help="of each problem  [default: 100]")
    hybrid.add_argument("--alone", type=int, default=30, help="of these for single methods  [default: 30]")
    hybrid.add_argument("--longest", type=int, default=10, help="of these with 10 s as well  [default: 10]")
    hybrid.add_argument("--deadline", type=float, default=10.0, help="of the medium set, seconds  [default: 10]")
    hybrid.add_argument(
        "--at", type=float, nargs="+", default=AT, metavar="SECONDS", help="of the large set  [default: .03 to 10]"
    )
    hybrid.add_argument(
        "--only", default="", help="only solves with this in 'set problem family size seed method deadline'"
    )
    hybrid.add_argument("--rows", type=Path, default=CSV, help="where the rows are  [default: benchmarks/hybrid.csv]")
    hybrid.add_argument("--check", action="store_true", help="run nothing; fail if the page would change")
    hybrid.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    from .hybrid_tables import draw, large, write_page

    if options.what != "page" and not options.check:
        todo = (
            large_jobs(options.instances, options.at)
            if options.what == "large"
            else jobs(options.what, options.instances, options.alone, options.longest, options.deadline)
        )
        run(todo, only=options.only, path=options.rows)
    if options.rows != CSV:
        print(large(read(options.rows)))
        return 0
    if not options.check:
        draw()
    return write_page(check=options.check)
