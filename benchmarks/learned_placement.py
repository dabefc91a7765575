"""The learned placement policy beside its rivals: small batches, batches of other kinds, larger and larger fleets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from gangplan.instances.generators.families import seed_of
from gangplan.instances.placement import PlacementProblem
from gangplan.learned.placement.batches import sized, small
from gangplan.solvers.placement.mend import LONG, SHORT
from gangplan.solvers.placement.methods import POLICIES

from . import learned_placement_rivals as rivals
from .learned import Task
from .learned_placement_tables import TABLES
from .learned_rows import LearnedRow, csv_of, read

__all__ = ["TABLES", "tasks"]
ABLATIONS = {
    "MLP": "placement-mlp",
    "imitation only": "placement-imitation",
    "RL only": "placement-rl",
    "one label": "placement-one",
    "flat": "placement-flat",
}
"""Networks beside the shipped one, by the names of their weights."""
SIZES = ((16, 8), (64, 20), (256, 10), (1024, 2), (10_000, 1))
"""Nodes, and how many instances."""
PAIRED = ((64, 60), (256, 30), (1024, 6))
"""More of them, to tell the passes of training apart."""
UNSEEN: dict[str, dict[str, object]] = {
    "two kinds of GPUs": {"gpu_types": "A100,V100"},
    "constrained": {"menus": 0.3, "selectors": 0.3, "spread": 0.3, "apart": 0.3, "shares": 0.3},
    "parameter servers": {"collective": "ps"},
}
"""Options of batches of which no training had any, but for parameter servers in some of the jobs."""
_EXACT, _SHORT = 60.0, 4.0
_FEW = ("least_interference", "topology", "nearest_by_size", "nearest_to_centre")
"""Heuristics on 1,024 nodes and more: the best there; others take minutes, or split gangs over thousands of nodes."""


def tasks(weights: Path) -> Iterator[Task]:
    """Yield what is to be judged with the weights of a folder."""
    for i in range(100):
        yield _task("small", "gangs", i, 16, weights, partial(small, "test", i))
    for name, options in UNSEEN.items():
        for i in range(12):
            make = partial(sized, "test", 5000 + i, 12, 1.0, **{"running": 0.0, **options})
            yield _task("unseen", name, 5000 + i, 12, weights, make)
    for nodes, count in SIZES:
        for i in range(count):
            make = partial(sized, "test", 6000 + i, nodes, 0.1 if nodes > 2000 else 1.0, running=0.0, optional=0.0)
            yield _task("sizes", "gangs", 6000 + i, nodes, weights, make)
    for nodes, count in PAIRED:
        for i in range(count):
            make = partial(sized, "test", 7000 + i, nodes, 1.0, running=0.0, optional=0.0)
            yield _task("passes", "gangs", 7000 + i, nodes, weights, make)


def _task(name: str, family: str, index: int, size: int, weights: Path, make: Callable[[], PlacementProblem]) -> Task:
    at = name, family, size, seed_of("test", index)
    judge = partial(_judge, make, weights, at)
    return Task(*at, _methods(weights, name, size), judge)


def _methods(weights: Path, name: str, size: int) -> tuple[str, ...]:
    """Return the methods that are judged: fewer on large fleets, where they take long."""
    if name == "passes":
        own = ["learned, placed"]
        own += ["imitation only, placed"] if (weights / f"{ABLATIONS['imitation only']}.safetensors").exists() else []
        return "bound", *own
    names = ["bound" if name == "sizes" else "exact", *(POLICIES if size <= 256 else _FEW)]
    names += ["learned", "learned, placed", "greedy", "greedy, placed", "local search"]
    if size <= 64:
        names += ["learned (16)", "greedy (16)", "local search (16)"]
    for method, file in ABLATIONS.items():
        few = name == "unseen" or (size > 64 and method != "imitation only")
        if (weights / f"{file}.safetensors").exists() and not few:
            names += [f"{method}, placed"]
    return (*names, "trees, placed", "random, placed") if name == "small" else tuple(names)


def _judge(
    make: Callable[[], PlacementProblem], weights: Path, at: tuple[str, str, int, int], methods: Sequence[str]
) -> Iterator[LearnedRow]:
    problem = make()
    if {"exact", "bound"} & set(methods):
        limit = {"small": _EXACT, "unseen": _SHORT}.get(at[0])
        objective, reference, proved, took = rivals.exact(problem, limit) if limit else rivals.bound(problem)
        if reference is None:
            return  # no placement: nothing to be learned from it
        yield LearnedRow("placement", *at, "exact" if limit else "bound", objective, reference, proved, took)
    else:
        row = next((x for x in read(csv_of("placement")) if x.instance == at), None)
        if row is None:
            return
        reference, proved = row.reference, row.proved
    spent: dict[str, float] = {}
    for method in sorted(methods, key=lambda x: x.startswith("local search")):
        if method in ("exact", "bound"):
            continue
        plain, rounds = _rounds(method)
        if plain in POLICIES:
            cost, took = rivals.heuristic(problem, plain)
        elif plain == "local search":
            # as long as the learned policy takes
            other = method.replace("local search", "learned")
            if other not in spent:
                spent[other] = rivals.decoded(problem, weights / "placement.safetensors", "learned", rounds, at[3])[1]
            cost, took = rivals.local_search(problem, spent[other] / 1e3)
        else:
            file = weights / f"{ {'learned': 'placement', **ABLATIONS}.get(plain, 'placement') }.safetensors"
            cost, took = rivals.decoded(problem, file, plain, rounds, at[3])
        spent[method] = took
        yield LearnedRow("placement", *at, method, cost, reference, proved, took)


def _rounds(method: str) -> tuple[str, int]:
    """Return what places a batch, and how many rounds mend that for each job."""
    for suffix, rounds in ((" (16)", LONG), (", placed", 0)):
        if method.endswith(suffix):
            return method.removesuffix(suffix), rounds
    return method, SHORT
