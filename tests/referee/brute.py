"""Every method by its name, in this process, against a referee: ``python -m tests.referee --methods``."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from gangplan.solvers import Run
from gangplan.solvers.method import Method, suite

from . import nasty
from .compare import GAP, Tally, check
from .problems import PROBLEMS

EXACT_SECONDS, OTHER_SECONDS = 30.0, 0.05
"""Limits of methods that come to an end by a proof, and of those that search on."""


@dataclass
class Brute(Tally):
    """Counts and words as `Tally` has them, and the seconds of each method."""

    seconds: Counter[str] = field(default_factory=Counter)
    longest: dict[str, float] = field(default_factory=dict)


@dataclass
class Answer:
    """What a run says in the end, as `check` reads it."""

    plan: Any
    objective: float | None
    bound: float | None
    notes: list[str]
    status: str


def answer(run: Run) -> Answer:
    """Return what a run says."""
    proved = run.gap is not None and run.gap <= GAP
    status = "INFEASIBLE" if run.infeasible else "OPTIMAL" if proved else "FEASIBLE" if run.plan else "UNKNOWN"
    return Answer(run.plan, run.objective, run.bound, run.notes, status)


def brute(objective: str, seed: int, tally: Brute, seconds: float = OTHER_SECONDS, *, proofs: bool = False) -> None:
    """Run all methods of an objective on a problem of `nasty`, and compare what each says with the referee.

    With `proofs` those are left out that only search.
    """
    rules, tools, problem = PROBLEMS[objective], suite(objective), nasty.draw(seed, objective)
    best = rules.optimum(problem)
    tally.counts["instances"] += 1
    tally.counts["infeasible"] += best is None
    methods = {"draft": Method(tools.draft), **tools.methods}
    for name, method in methods.items():
        if problem.variant not in tools.variants_of(method) or (proofs and method.draws):
            continue
        if method.library:
            import_module(method.library)  # within so short a limit no method would
        began = time.perf_counter()
        run = Run(problem, time_limit=EXACT_SECONDS if method.exact else seconds)
        said, suits = f"{objective} {seed} {problem.variant} {name}", True
        try:
            prepared = tools.prepare(run)
            if not run.stopped:
                suits = method.suits(prepared)
                if suits:
                    method.run(run, prepared)
        except TimeoutError:
            pass
        except Exception as error:  # whatever it is, it is counted
            tally.fail("crashes", f"{said}: {type(error).__name__}: {error}; the referee has {best!r}")
            continue
        took = time.perf_counter() - began
        tally.seconds[name] += took
        tally.longest[name] = max(took, tally.longest.get(name, 0.0))
        found = answer(run)
        before = len(tally.wrong)
        words = f"{said}: {found.status} {found.objective!r}, bound {found.bound!r}; the referee has {best!r}"
        check(rules, problem, found, best, tally, words, GAP)
        if not method.exact or not suits or run.stop_reason == "time limit":
            tally.wrong[before:] = [x for x in tally.wrong[before:] if not x.startswith("open")]
        elif tally.wrong[before:] and tally.wrong[-1].startswith("open"):
            tally.counts["unproved"] += 1
