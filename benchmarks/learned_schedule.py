"""The learned schedule policy beside its rivals: small with the optimum, unseen families, larger ones by bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gangplan.instances import verify
from gangplan.instances.generators.families import make, seed_of, unseen

from . import learned_schedule_rivals as rivals
from .ledger import ROOT
from .records import append_records, read_records

WEIGHTS = ROOT / "learned" / "weights"
CSV = ROOT / "benchmarks" / "learned_schedule.csv"
Key = tuple[str, str, int, int, str]
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


@dataclass(frozen=True, slots=True)
class LearnedRow:
    """One plan.

    Attributes:
        problem: schedule.
        set: of instances, ``small``, ``unseen family``, ``sizes`` or ``time``.
        family: of the instance.
        size: jobs at most, as asked for.
        seed: of the instance, see `gangplan.instances.generators.families.seed_of`.
        method: that made the plan.
        objective: as the verifier says; None if the method found no plan.
        reference: the optimum, or else the best bound known.
        proved: whether the reference is the optimum.
        milliseconds: for the plan, after warm-up, on one core; the processor's where a page says so.
    """

    problem: str
    set: str
    family: str
    size: int
    seed: int
    method: str
    objective: float | None
    reference: float
    proved: bool
    milliseconds: float

    @property
    def key(self) -> Key:
        """What makes another row a repetition of this one."""
        return self.set, self.family, self.size, self.seed, self.method

    @property
    def instance(self) -> tuple[str, str, int, int]:
        """What rows of several methods have in common."""
        return self.set, self.family, self.size, self.seed

    @property
    def gap(self) -> float:
        """By how much the plan is above the reference, as a share of it; infinite without a plan."""
        if self.objective is None:
            return float("inf")
        if self.reference > 0:
            return max(self.objective / self.reference - 1, 0.0)
        return 0.0 if self.objective <= 0 else float("inf")


def read(path: Path = CSV) -> list[LearnedRow]:
    """Return the rows of a file, see `read_records`."""
    return read_records(path, LearnedRow)


def instances() -> Iterator[tuple[str, str, int, int]]:
    """Yield set, family, size and seed of what is judged."""
    for i in range(100):
        yield "small", "moldable", 20, seed_of("test", i)
    for family in UNSEEN:
        for i in range(50):
            yield "unseen family", family, 20, seed_of("test", i)
    for name, sizes in (("sizes", SIZES), ("time", TIMED)):
        for size, count in sizes:
            for i in range(count):
                yield name, "moldable", size, seed_of("test", i)


def run(weights: Path = WEIGHTS, only: str = "", say: Callable[[str], None] = print) -> None:
    """Judge what is missing; a row is written as soon as its instance is done, so that Ctrl-C loses little.

    Args:
        weights: folder of the weights.
        only: only methods with this in 'set family size seed method'.
        say: takes a line an instance.
    """
    done = {row.key for row in read()}
    for at in instances():
        label = " ".join(map(str, at))
        methods = methods_of(at[0], at[2], weights)
        missing = [m for m in methods if (*at, m) not in done and only in f"{label} {m}"]
        if missing:
            rows = list(_judge(weights, *at, missing))
            append_records(rows, CSV)
            say(f"{label}: " + ", ".join(f"{row.method} {row.gap:.2%} {row.milliseconds:.1f} ms" for row in rows))


def problem_of(family: str, seed: int, size: int) -> Any:
    """Return an instance."""
    return make("schedule", family, seed, size) if family == "moldable" else unseen(family, seed, size)


def methods_of(name: str, size: int, weights: Path) -> tuple[str, ...]:
    """Return what an instance of a set is judged by."""
    if name == "time":
        return "exact", "lists", "learned", "learned (16)"
    methods = ["bound" if name == "sizes" else "exact", "lists", "one list"]
    for method, file in {"learned": "schedule", **ABLATIONS}.items():
        if (weights / f"{file}.safetensors").exists() and (size <= 200 or method in ("learned", "imitation only")):
            methods += [method, f"{method} (16)"]
    methods += ["random", "random (16)"] if size <= 200 else []
    methods += ["local search"]
    methods += ["trees"] if name == "small" else []
    methods += ["base"]  # last: what it shares with the policy is compiled by then
    return tuple(methods)


def _judge(weights: Path, name: str, family: str, size: int, seed: int, methods: Sequence[str]) -> Iterator[LearnedRow]:
    problem, at = problem_of(family, seed, size), ("schedule", name, family, size, seed)
    known = [x for x in read() if x.instance == (name, family, size, seed)]
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
