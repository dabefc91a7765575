"""Simple agents, by the name of the environment: what an observation and a generator make them do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .observe import JOB, NODE

Agent = Callable[[dict[str, NDArray[Any]], np.random.Generator], int]
"""Chooses an action that the mask allows."""

_FREE, _STAGED = NODE.index("free"), NODE.index("staged")


def at_random(seen: dict[str, NDArray[Any]], rng: np.random.Generator) -> int:
    """Take any of the allowed actions."""
    return int(rng.choice(np.flatnonzero(seen["action_mask"])))


def select(key: str, sign: float, overtake: bool, seen: dict[str, NDArray[Any]], rng: np.random.Generator) -> int:
    """Start the job with the least key if it fits, ties by slot; else wait, or start the first that does.

    Args:
        key: a column of `JOB`.
        sign: -1 for the most instead.
        overtake: whether others may start before it.
        seen: of `SelectEnv`.
        rng: not asked.
    """
    mask, jobs = seen["action_mask"], seen["jobs"]
    there = np.flatnonzero(jobs[:, 0])
    for slot in there[np.argsort(sign * jobs[there, JOB.index(key)], kind="stable")].tolist():
        if mask[slot]:
            return int(slot)
        if not overtake:
            break
    return len(jobs)


def degree(want: int, seen: dict[str, NDArray[Any]], rng: np.random.Generator) -> int:
    """Take the action `want` of `DegreeEnv` if it is allowed, else none; -1 is the most GPUs, -2 the fewest."""
    allowed = np.flatnonzero(seen["action_mask"][1:]) + 1
    if want > 0:
        return want if seen["action_mask"][want] else int(np.flatnonzero(seen["action_mask"])[0])
    return int(allowed[0 if want == -2 else -1]) if len(allowed) else 0


def place(sign: int, seen: dict[str, NDArray[Any]], rng: np.random.Generator) -> int:
    """Take the first node allowed (0), that with the fewest GPUs free (1), or with the most (-1), of `PlaceEnv`."""
    allowed = np.flatnonzero(seen["action_mask"][:-1])
    return int(allowed[np.argmin(sign * (seen["nodes"][allowed, _FREE] - seen["nodes"][allowed, _STAGED]))])


BASELINES: dict[str, dict[str, Agent]] = {
    "Select": {
        "random": at_random,
        "fifo": partial(select, "waited", -1.0, False),
        "first_fit": partial(select, "waited", -1.0, True),
        "sjf": partial(select, "duration", 1.0, False),
        "sjf_overtaking": partial(select, "duration", 1.0, True),
        "ljf": partial(select, "duration", -1.0, False),
        "smallest": partial(select, "gpus", 1.0, False),
    },
    "Degree": {
        "random": at_random,
        "most": partial(degree, -1),
        "fewest": partial(degree, -2),
    },
    "Place": {
        "random": at_random,
        "first_fit": partial(place, 0),
        "best_fit": partial(place, 1),
        "emptiest": partial(place, -1),
    },
}
"""`partial(degree, i)` is the constant i-th degree; "most" is PAC-ML's Para_max and "fewest" its Para_min."""
