"""PAC-ML as published, trained here, beside its published rates, on the published models and on others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from gangplan.instances import InstanceError
from gangplan.systems.pacml.arrivals import DISTRIBUTIONS
from gangplan.systems.pacml.learned.tables import DEGREES
from gangplan.systems.pacml.simulate import REASONS, Decides

from .found import Found, table
from .pacml import STUDY as PACML
from .pacml import drawn, play
from .pacml_suites import CONSTANTS, Cell
from .pacml_tables import ALL, PUBLISHED, alike, apart, best, rate, signed, spread
from .rows import Task, digest
from .study import NOT_RUN, Options, Study

POLICY = "pacml-published"
SUITES = {"main": Cell("as-published", (POLICY,)), "models": Cell("as-published", (POLICY,), "nine", seeds=5)}
SHARES = ("rejected", *(f"degree_{d}" for d in DEGREES))
"""Of the jobs, those that the policy rejects, and those that it accepts at each degree."""


def tasks(options: Options) -> Iterator[Task]:
    """Yield every suite, distribution and test seed."""
    weights = digest(_file(options)) if _file(options).is_file() else ""
    for cell in (SUITES[name] for name in options.chosen(SUITES)):
        for d in DISTRIBUTIONS:
            for seed in range(min(cell.seeds, options.seeds or cell.seeds)):
                yield Task(cell.case(d), POLICY, seed, weights)


def measure(task: Task, options: Options) -> Mapping[str, float]:
    """Simulate; the outcome is checked.

    Raises:
        InstanceError: if weights or profiles are not there.
    """
    if not _file(options).is_file():
        raise InstanceError("policy", f"{task.policy!r}: there are no weights")
    outcome, seconds = play(task, drawn(task, options), _policy(_file(options)))
    shares = [np.mean(outcome.reason == REASONS.index("rejected"))]
    shares += [np.mean(outcome.degree == i) for i in range(len(DEGREES))]
    rates = round(outcome.blocked, 6), round(outcome.blocked_or_running, 6), round(seconds, 3)
    return dict(zip(STUDY.figures, (*rates, *(round(float(x), 6) for x in shares)), strict=True))


def _file(options: Options) -> Path:
    return options.weights / f"{POLICY}.safetensors"


@lru_cache(maxsize=1)
def _policy(path: Path) -> Decides:
    from gangplan.systems.pacml.published.policy import PublishedPolicy

    return PublishedPolicy.load(path)


def trained_here(found: Found) -> str:
    """Return its rates beside those published, and how far they are from those of rules."""
    known = _with_rivals(found)
    if not found:
        return NOT_RUN
    cell, nine = SUITES["main"], SUITES["models"]
    theirs = next(iter(PUBLISHED.values()))
    lines: list[tuple[str, ...]] = []
    mine = [spread(known, cell, POLICY, d) for d in ALL]
    lines.append(("trained here", *map(rate, mine)))
    less = [x.mean - y if x else np.nan for x, y in zip(mine, theirs, strict=True)]
    lines.append(("less the published best checkpoint", *(f"{x:+.4f}".replace("0.", ".", 1) for x in less)))
    names = [best(known, nine, CONSTANTS, d) for d in ALL]
    told = [f"`{n}`: {signed(apart(known, nine, POLICY, n or '', d))}" for n, d in zip(names, ALL, strict=True)]
    lines.append(("less the best constant, nine other models", *told))
    return table(("", *ALL), lines)


def _with_rivals(found: Found) -> Found:
    """Return the rows with those of the other study."""
    both = Found((), alike)
    both.runs = PACML.found().runs | found.runs
    return both


STUDY = Study(
    POLICY,
    ("blocked", "blocked_or_running", "seconds", *SHARES),
    tasks,
    measure,
    {"pacml-results.md": {"trained_here": trained_here}},
    alike=alike,
)
"""Rates as in `pacml`, and what is chosen."""
