"""The learned step-time policy beside its rivals: generated graphs, a family it never saw, networks, large graphs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gangplan.instances import StepProblem
from gangplan.instances.generators.families import make, seed_of
from gangplan.learned.step.dials import draw
from gangplan.learned.step.schema import BASE
from gangplan.solvers.partition.step.bounds import impossible
from gangplan.solvers.partition.step.model import prepare

from . import learned_step_rivals as rivals
from .learned import Task
from .learned_rows import LearnedRow, csv_of, read
from .learned_step_tables import TABLES
from .ledger import ROOT
from .ledger import read as read_ledger
from .suites import step

__all__ = ["TABLES", "tasks"]
DATA = ROOT.parent / "shared" / "data"
TRAINED, UNSEEN = ("layered", "fork_join", "series_parallel"), "pipeline"
ABLATIONS = {
    "GNN": "step-gnn",
    "imitation only": "step-imitation",
    "RL only": "step-rl",
    "one label": "step-one",
}
"""Networks beside the shipped one, by the names of their weights."""
_MANY, _FIRST, _BRIEF = (1000, 26), 100, 0.5
"""Ops and instances of each family to tell stages of training apart, the first of them, and seconds for a bound."""
_SLOW = ("list_schedule", "contiguous")
_EXACT, _QUICK, _BOUND = 75.0, 20.0, 15.0
_SIZES = ((100, 5), (1000, 5), (10_000, 1))
"""Most ops, and how many instances of each family."""


def tasks(weights: Path) -> Iterator[Task]:
    """Yield what is to be judged with the weights of a folder."""
    for i in range(75):
        yield _generated("small", TRAINED[i % 3], i, 100, weights)
    for i in range(25):
        yield _generated("unseen family", UNSEEN, i, 100, weights)
    if DATA.exists():
        for case in step():
            if case.instance.startswith("pipedream/"):
                at = "published", case.instance, 0, 0
                yield Task(
                    *at, _methods(weights, "published", 0), partial(_judge, partial(case.make, DATA), weights, *at)
                )
    for size, count in _SIZES:
        for family in (*TRAINED, UNSEEN):
            for i in _feasible(family, size, count):
                yield _generated("sizes", family, i, size, weights)
    for family in (*TRAINED, UNSEEN):
        for i in _feasible(family, _MANY[0], _MANY[1], _FIRST):
            yield _generated("stages", family, i, _MANY[0], weights)


def _generated(name: str, family: str, index: int, size: int, weights: Path) -> Task:
    seed = seed_of("test", index)
    made = partial(make, "step", family, seed, size)
    judge = partial(_judge, made, weights, name, family, size, seed)
    bound = (lambda best, known: max(rivals.bound(made(), _BOUND), known)) if name == "sizes" else None
    return Task(name, family, size, seed, _methods(weights, name, size), judge, bound)


def _feasible(family: str, size: int, count: int, first: int = 0) -> Iterator[int]:
    """Yield the first instances that fit into their devices at all: graphs grow, and devices do not."""
    for i in range(first, first + 4 * count):
        if count and impossible(prepare(make("step", family, seed_of("test", i), size))) is None:  # type: ignore[arg-type]
            count -= 1
            yield i


def _methods(weights: Path, set_: str, size: int) -> tuple[str, ...]:
    """Return the methods that are judged: those that end in time."""
    if set_ == "stages":
        there = [
            x for x, file in {"learned": "step", **ABLATIONS}.items() if (weights / f"{file}.safetensors").exists()
        ]
        return "bound", "heft", *(f"{x}{many}" for x in there for many in ("", " (16)")), "book", "book (16)"
    names = ["bound" if set_ == "sizes" else "exact"]
    names += [x for x in rivals.HEURISTICS if size <= 1000 or x not in _SLOW]
    for name, file in {"learned": "step", **(ABLATIONS if size <= 1000 else {})}.items():
        if (weights / f"{file}.safetensors").exists():
            names += [name, f"{name} (16)"]
    names += ["book", "book (16)"]
    if size <= 1000:
        names += ["random", "random (16)", "local search"]
    if set_ == "sizes" and size == 1000:
        names.append(rivals.LONG)
    if set_ in {"small", "unseen family"}:
        names += ["trees", "trees (16)"]
    return tuple(names)


def _judge(
    problem: Any, weights: Path, name: str, family: str, size: int, seed: int, methods: Sequence[str]
) -> Iterator[LearnedRow]:
    made = problem()
    reference, proved, first = _reference(made, name, family, size, seed, methods)
    if first is not None:
        yield first
    for method in methods:
        if method not in ("exact", "bound"):
            objective, took = _play(made, method, weights, seed)
            yield LearnedRow("step", name, family, size, seed, method, objective, reference, proved, took)


def _reference(
    problem: StepProblem, name: str, family: str, size: int, seed: int, methods: Sequence[str]
) -> tuple[float, bool, LearnedRow | None]:
    """Return the optimum or a bound, whether it is the optimum, and a row if it was found out only now."""
    at = "step", name, family, size, seed
    if not {"exact", "bound"} & set(methods):
        row = next(x for x in read(csv_of("step")) if x.instance == (name, family, size, seed))
        return row.reference, row.proved, None
    if name == "published":
        row = [x for x in read_ledger() if x.instance == family and x.status == "OPTIMAL"][-1]
        took = 1e3 * row.seconds
        return row.objective, True, LearnedRow(*at, "exact", row.objective, row.objective, True, took)
    if "bound" in methods:
        started = time.process_time()
        least = rivals.bound(problem, _BOUND if name == "sizes" else _BRIEF)
        took = 1e3 * (time.process_time() - started)
        return least, False, LearnedRow(*at, "bound", least, least, False, took)
    (objective, took), least, proved = rivals.exact(problem, _EXACT)
    reference = objective if proved and objective is not None else least
    return reference, proved, LearnedRow(*at, "exact", objective, reference, proved, took)


def _play(problem: StepProblem, method: str, weights: Path, seed: int) -> rivals.Timed:
    if method in (*rivals.HEURISTICS, rivals.LONG):
        return rivals.heuristic(problem, "local_search" if method == rivals.LONG else method, _QUICK)
    plain, samples = method.removesuffix(" (16)"), 16 if method.endswith(" (16)") else 1
    shipped = weights / "step.safetensors"
    policy = rivals.policy(shipped)
    if method == "local search":
        # as long as sixteen decodings take
        took = rivals.chosen(problem, policy, policy.settings_of, 16)[1]
        return rivals.heuristic(problem, "local_search", took / 1e3)
    if plain == "book":
        return rivals.chosen(problem, policy, lambda case: policy.network.book.numpy()[BASE:], samples)
    if plain == "random":
        import numpy as np

        drawn = draw(np.random.default_rng(seed), 17)[1:]
        return rivals.chosen(problem, policy, lambda case: drawn, samples)
    if plain == "trees":
        return rivals.chosen(problem, policy, rivals.trees(shipped), samples)
    file = {"learned": "step", **ABLATIONS}[plain]
    policy = rivals.policy(weights / f"{file}.safetensors")
    return rivals.chosen(problem, policy, policy.settings_of, samples)
