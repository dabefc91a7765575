"""The learned throughput policy beside its rivals: small graphs, an unseen family, published graphs, large ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from gangplan.instances import PartitionProblem, content_hash
from gangplan.instances.generators.families import make, seed_of

from . import learned_throughput_rivals as rivals
from .learned import Task
from .learned_rows import LearnedRow, csv_of, read
from .learned_throughput_tables import TABLES
from .ledger import LEDGER, ROOT
from .ledger import read as read_ledger
from .suites import SUITES

__all__ = ["TABLES", "tasks"]
TRAINED, UNSEEN = ("layered", "fork_join", "series_parallel"), "pipeline"
SIZES = ((100, 4), (300, 4), (1000, 4), (3000, 2), (10_000, 1))
"""Ops, and how many instances of each family."""
DATA = ROOT.parent / "shared" / "data"
_EXACT = 100.0
_SLOW = 3000
"""Ops from which on rivals that take minutes are left out."""


def tasks(weights: Path) -> Iterator[Task]:
    """Yield what is to be judged with the weights of a folder."""
    for i in range(75):
        yield _generated("small", TRAINED[i % 3], 100, i, weights)
    for i in range(25):
        yield _generated("unseen", UNSEEN, 100, i, weights)
    for case in (c for name in ("published", "pipedream") for c in SUITES[name]()):
        if case.method == "auto" and case.variant == "contiguous":
            yield _task("real", case.instance, 0, 0, weights, partial(case.make, DATA))
    for size, count in SIZES:
        for family in (*TRAINED, UNSEEN):
            for i in range(count):
                yield _generated("sizes", family, size, 2000 + i, weights)


def _generated(name: str, family: str, size: int, i: int, weights: Path) -> Task:
    seed = seed_of("test", i)
    return _task(name, family, size, seed, weights, partial(make, "throughput", family, seed, size))


def _task(name: str, family: str, size: int, seed: int, weights: Path, made: Callable[[], PartitionProblem]) -> Task:
    at = name, family, size, seed
    exact = ("cpsat", "pipeline") if name in ("small", "unseen") else ()
    names = exact + rivals.methods(weights, few=name == "real" or size not in (100, 1000), large=size >= _SLOW)
    names += (rivals.LONG,) if name == "sizes" and size == 1000 else ()
    bound = (lambda best, known: rivals.bound(made(), best, known)) if name == "sizes" else None
    return Task(*at, names, partial(_judge, made, weights, at), bound)


def _judge(
    made: Callable[[], PartitionProblem], weights: Path, at: tuple[str, str, int, int], methods: Sequence[str]
) -> Iterator[LearnedRow]:
    if at[0] == "real" and not DATA.exists():
        return
    problem = made()
    rows = [x for x in read(csv_of("throughput")) if x.instance == at]
    found: dict[str, tuple[float | None, float | None, float]] = {}
    for method in methods:
        found[method] = rivals.judge(problem, method, weights, seed=at[3], limit=_EXACT)
    if rows:
        reference, proved = rows[0].reference, rows[0].proved
    else:
        best = min((x for x, _, _ in found.values() if x is not None), default=None)
        if best is None:
            return  # memory that nothing fits
        bounds = [b for _, b, _ in found.values() if b is not None]
        bounds += [rivals.bound(problem, best)] if at[0] == "sizes" else []
        optima, known = _ledger(problem) if at[0] == "real" else ([], [])
        reference = min(max(bounds + known), best)
        proved = bool(optima) or best <= reference * (1 + 1e-6)
    for method, (objective, _, took) in found.items():
        yield LearnedRow("throughput", *at, method, objective, reference, proved, round(took, 3))


def _ledger(problem: PartitionProblem) -> tuple[list[float], list[float]]:
    """Return the proved optima of a published graph that the ledger has, and the bounds."""
    name = content_hash(problem)
    rows = [x for x in read_ledger(LEDGER) if x.content_hash == name and x.bound is not None]
    return [x.bound for x in rows if x.status == "OPTIMAL" and x.bound], [x.bound for x in rows if x.bound]
