"""Lessons: problems by seed, and near-optimal plans of each by the exact methods, made once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from gangplan.instances import StepProblem
from gangplan.instances.generators.families import make, seed_of
from gangplan.solvers.kernels import compile_kernel
from gangplan.solvers.method import Method, suite
from gangplan.solvers.run import Run

from .recipe import FAMILIES, OfflinePolicy, OfflineSettings
from .task import Task

NEAR, MOST = 1.01, 20
"""How much longer than the best a plan may be, and how many plans of a problem are kept."""


class Label(NamedTuple):
    """What the exact methods know of a problem; the best first.

    Attributes:
        plans, values: near-optimal plans and their objectives; none if there is no plan.
        bound: that no plan is below, 0 if nothing is proved.
    """

    plans: tuple[Any, ...]
    values: tuple[float, ...]
    bound: float


def problem_of(objective: str, split: str, index: int, ops: int) -> Any:
    """Return a problem by its number; of step time, every third one has contention."""
    family, seed = FAMILIES[index % len(FAMILIES)], seed_of(split, index // len(FAMILIES))
    made = make(objective, family, seed, ops)
    return replace(made, contention=True) if isinstance(made, StepProblem) and index % 3 == 2 else made


def task_of(objective: str) -> Task:
    """Return the task of an objective."""
    found: Task = import_module(f"{__package__}.{objective}").TASK
    return found


def label(objective: str, split: str, index: int, ops: int, seconds: float) -> Label:
    """Return near-optimal plans of a problem by its number; joblib makes it anew where this function has changed."""
    return label_of(problem_of(objective, split, index, ops), seconds)


def label_of(problem: Any, seconds: float) -> Label:
    """Return near-optimal plans within so many seconds, different ones even if equal devices are exchanged."""
    found: dict[bytes, tuple[float, Any]] = {}

    def keep(run: Run) -> None:
        if run.plan is not None and run.objective is not None:
            _, form = np.unique(run.plan.device, return_inverse=True)
            first = np.unique(form, return_index=True)[1]
            place = np.argsort(np.argsort(first))  # devices by the first op on each
            found.setdefault(place[form].astype(np.int16).tobytes(), (run.objective, run.plan))

    tools, teachers = suite(problem.objective), task_of(problem.objective).teachers
    for name, _ in teachers:
        _load(tools.methods[name])
    run = Run(problem, time_limit=seconds, callbacks=(keep,))
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
    best = sorted(found.values(), key=lambda x: x[0])[:MOST]
    near = [x for x in best if x[0] <= best[0][0] * NEAR]
    return Label(tuple(x[1] for x in near), tuple(x[0] for x in near), run.bound or 0.0)


def _load(method: Method) -> None:
    """Load what a method imports and compiles, which is not to be in its time."""
    if method.library:
        import_module(method.library)
    for kernel in method.kernels() if method.kernels else ():
        compile_kernel(kernel)


def labels(objective: str, settings: OfflineSettings, split: str, count: int) -> Iterator[Label]:
    """Yield the labels of the first problems of a split, in order; those in the cache are not made again."""
    import joblib

    work = joblib.Memory(settings.cache, verbose=0).cache(label) if settings.cache else label
    todo = (joblib.delayed(work)(objective, split, i, settings.ops, settings.label_seconds) for i in range(count))
    yield from joblib.Parallel(settings.processes, return_as="generator")(todo)


def judged(
    policy: OfflinePolicy, seeds: Sequence[int], *, ops: int = 100, seconds: float = 1.0
) -> list[dict[str, Any]]:
    """Return what plans of a policy are above the best known, in percent, by family and test seed."""
    rows, task = list[dict[str, Any]](), policy.task
    for index in (seed * len(FAMILIES) + i for seed in seeds for i in range(len(FAMILIES))):
        problem = problem_of(task.objective, "test", index, ops)
        known = label_of(problem, seconds)
        if not known.values:
            continue
        prepared = suite(task.objective).prepare(Run(problem, time_limit=3600))
        found = policy.candidates(prepared, samples=16, seed=index)
        rule = task.decoder(prepared)
        zeros = (
            None
            if rule is None
            else rule.decode(np.zeros((policy.task.split(prepared).seconds.shape[1], task.outputs)))
        )
        best = min(known.values[0], *(x.value for x in found))
        about = {"case": FAMILIES[index % len(FAMILIES)], "seed": index // len(FAMILIES)}
        for name, value in (
            ("learned", found[0].value),
            ("best of 16", min(x.value for x in found)),
            ("rule", zeros.value if zeros else np.nan),
        ):
            rows.append({"policy": name, **about, "above_best": 100 * (value / best - 1)})
    return rows
