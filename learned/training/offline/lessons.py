"""Lessons: problems by seed, and the best plan of each by the exact methods with its bound, made once."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from gangplan.instances.generators import generate
from gangplan.instances.generators.families import FAMILIES, LARGE, make, make_large, seed_of
from gangplan.solvers.method import suite
from gangplan.solvers.run import Run

from ...offline.policy import OfflinePolicy, OfflineSettings
from ...offline.task import OfflineTask

HOUR = 3600.0
"""Seconds, more than any problem takes here."""
_LARGE = 64
"""Nodes from which on there is another generator."""
PROVED = 1e-6
"""How far a bound may be below a plan that is an optimum, as a share."""


class ExactLabel(NamedTuple):
    """What the exact methods know of a problem.

    Attributes:
        plan, value: the best plan and its objective, `None` and infinite if there is none.
        bound: that no plan is below, 0 if nothing is proved.
    """

    plan: Any
    value: float
    bound: float

    @property
    def proved(self) -> bool:
        """Whether the plan is known to be an optimum."""
        return self.plan is not None and self.bound >= self.value * (1 - PROVED)


def problem_of(objective: str, split: str, index: int, ops: int) -> Any:
    """Return a problem by its number, of so many ops or nodes; every second small placement is full."""
    names = FAMILIES[objective]
    family, seed = names[index % len(names)], seed_of(split, index // len(names))
    if len(names) == 1 and ops >= _LARGE:
        return make_large(objective, LARGE[objective][0], seed, ops)
    return _full(seed, ops) if objective == "placement" and index % 2 else make(objective, family, seed, ops)


def _full(seed: int, most: int) -> Any:
    """Return a placement of few nodes as full as the racks of large ones: more than the classic order is to be learned.

    Half of the problems have less than twice the fewest nodes: few others are solved with a proof.
    """
    rng = np.random.default_rng([*b"full", seed])
    nodes, racks = int(max(4, most * 4 ** -rng.uniform())), int(rng.integers(1, 3))
    return generate(
        "gangs", seed=seed, racks=racks, nodes=nodes // racks, gpus=int(4 * rng.integers(1, 3)),
        jobs=int(nodes * rng.uniform(1.2, 2.2)), load=float(rng.uniform(0.8, 0.95)),
        running=0.4 * float(rng.integers(2)), optional=max(0.0, 0.3 * float(rng.integers(-1, 2))),
    )  # fmt: skip


def task_of(objective: str) -> OfflineTask:
    """Return the task of an objective."""
    found: OfflineTask = import_module(f"gangplan.learned.offline.{objective}").TASK
    return found


def label(objective: str, split: str, index: int, ops: int, seconds: float) -> ExactLabel:
    """Return the best plan of a problem by its number; joblib makes it anew where this function has changed."""
    return label_of(problem_of(objective, split, index, ops), seconds)


def label_of(problem: Any, seconds: float) -> ExactLabel:
    """Return the best plan within so many seconds, and what is proved."""
    tools, teachers = suite(problem.objective), task_of(problem.objective).teachers
    for name, _ in teachers:
        if library := tools.methods[name].library:
            import_module(library)  # which is not to be in its time
    run = Run(problem, time_limit=seconds)
    try:
        prepared = tools.prepare(run)
        for name, share in teachers:
            method = tools.methods[name]
            if run.stopped:
                break
            if method.suits(prepared) and problem.variant in tools.variants_of(method):
                with run.share(share):
                    method.run(run, prepared)
    except TimeoutError:
        pass
    return ExactLabel(run.plan, np.inf if run.objective is None else run.objective, run.bound or 0.0)


def labels(objective: str, settings: OfflineSettings, split: str, count: int) -> list[ExactLabel]:
    """Return the labels of the first problems of a split, from the cache where they are there."""
    import joblib

    s, one = settings, joblib.delayed(_kept(settings.cache, label))
    return list(joblib.Parallel(s.processes)(one(objective, split, i, s.ops, s.label_seconds) for i in range(count)))


def _kept(cache: str, function: Any) -> Any:
    import joblib

    return joblib.Memory(cache, verbose=0).cache(function) if cache else function


def judged(policy: OfflinePolicy, seeds: Sequence[int], ops: int = 100, seconds: float = 1.0) -> list[dict[str, Any]]:
    """Return what plans of a policy are above the best known, in percent, by family and test seed."""
    rows, objective = list[dict[str, Any]](), policy.task.objective
    names = FAMILIES[objective]
    for index in (seed * len(names) + i for seed in seeds for i in range(len(names))):
        problem = problem_of(objective, "test", index, ops)
        prepared = suite(objective).prepare(Run(problem, time_limit=HOUR))
        decoder, known = policy.task.decoder(prepared), label_of(problem, seconds)
        if decoder is None:
            continue
        found = [decoder.decode(x) for x in (0, *policy.choose(prepared))]
        values = np.array([np.inf if x is None else x.value for x in found])
        about = {"case": names[index % len(names)], "seed": index // len(names)}
        values = 100 * (values / min(values.min(), known.value) - 1)
        if np.isfinite(values).any():
            for name, value in (("rule", values[0]), ("learned", values[1]), ("best of 16", values.min())):
                rows.append({"policy": name, **about, "above_best": float(value)})
    return rows
