"""The learned schedule policy beside its rivals: small with the optimum, unseen families, larger ones by bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gangplan.instances import verify
from gangplan.instances.generators.families import make, seed_of, unseen

from . import learned_schedule_rivals as rivals
from .learned import Task
from .learned_rows import LearnedRow, csv_of, read
from .learned_schedule_tables import TABLES

__all__ = ["TABLES", "tasks"]
ABLATIONS = {
    "imitation only": "schedule-imitation",
    "short": "schedule-short",
    "MLP": "schedule-mlp",
    "RL only": "schedule-rl",
    "one label": "schedule-one",
}
"""Networks beside the shipped one, by the names of their weights."""
UNSEEN = ("bursts", "moldable, other ranges")
SIZES = ((20, 24), (200, 24), (2000, 4))
"""Most jobs, and how many instances."""
TIMED = ((40, 12), (60, 12))
"""Like `SIZES`, for the time that the exact methods take."""
_EXACT, _BOUND = {"small": 10.0, "unseen family": 10.0, "time": 120.0}, {20: 10.0, 200: 20.0, 2000: 45.0}
"""Seconds at most."""


def tasks(weights: Path) -> Iterator[Task]:
    """Yield what is to be judged with the weights of a folder."""
    for i in range(100):
        yield _task("small", "moldable", i, 20, weights)
    for family in UNSEEN:
        for i in range(50):
            yield _task("unseen family", family, i, 20, weights)
    for size, count in SIZES:
        for i in range(count):
            yield _task("sizes", "moldable", i, size, weights)
    for size, count in TIMED:
        for i in range(count):
            yield _task("time", "moldable", i, size, weights)


def problem_of(family: str, seed: int, size: int) -> Any:
    """Return an instance."""
    return make("schedule", family, seed, size) if family == "moldable" else unseen(family, seed, size)


def _task(name: str, family: str, index: int, size: int, weights: Path) -> Task:
    seed = seed_of("test", index)
    judge = partial(_judge, weights, name, family, size, seed)
    if name == "time":
        return Task(name, family, size, seed, ("exact", "lists", "learned", "learned (16)"), judge)
    methods = ["bound" if name == "sizes" else "exact", "lists", "one list"]
    for method, file in {"learned": "schedule", **ABLATIONS}.items():
        if (weights / f"{file}.safetensors").exists() and (size <= 200 or method in ("learned", "imitation only")):
            methods += [method, f"{method} (16)"]
    methods += ["random", "random (16)"] if size <= 200 else []
    methods += ["local search"]
    methods += ["trees"] if name == "small" else []
    methods += ["base"]  # last: what it shares with the policy is compiled by then
    return Task(name, family, size, seed, tuple(methods), judge)


def _judge(weights: Path, name: str, family: str, size: int, seed: int, methods: Sequence[str]) -> Iterator[LearnedRow]:
    problem, at = problem_of(family, seed, size), ("schedule", name, family, size, seed)
    known = [x for x in read(csv_of("schedule")) if x.instance == (name, family, size, seed)]
    if {"exact", "bound"} & set(methods):
        objective, bound, took = rivals.reference(
            problem, _BOUND[size] if name == "sizes" else _EXACT[name], name == "sizes"
        )
        proved = objective is not None and objective <= bound * (1 + 1e-6)
        worth = objective if proved and objective is not None else bound
        yield LearnedRow(*at, "bound" if name == "sizes" else "exact", objective, worth, proved, took)
    else:
        worth, proved = known[0].reference, known[0].proved
    spent = 0.02
    for method in methods:
        if method in ("exact", "bound"):
            continue
        if method == "local search":
            # as long on the clock as the policy has just taken
            plan, took = rivals.local_search(problem, spent)
        elif method in rivals.HEURISTICS:
            plan, took = rivals.HEURISTICS[method](problem)
        else:
            samples, plain = (16 if "(16)" in method else 1), method.removesuffix(" (16)")
            file = weights / f"{({'learned': 'schedule'} | ABLATIONS).get(plain, plain)}.safetensors"
            policy = rivals.random_policy(seed) if plain == "random" else rivals.policy(file)
            (plan, took), clock = rivals.wall(partial(rivals.learned, problem, policy, samples))
            spent = clock if method == "learned (16)" else spent
        objective = None if plan is None else verify(problem, plan).objective
        yield LearnedRow(*at, method, objective, worth, proved, took)
