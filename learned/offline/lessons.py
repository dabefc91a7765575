"""Lessons: problems by seed, and near-optimal plans of each by the exact methods, made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from gangplan.instances import StepProblem
from gangplan.instances.arrays import FloatArray
from gangplan.instances.generators.families import FAMILIES, LARGE, make, make_large, seed_of
from gangplan.instances.placement import PlacementPlan
from gangplan.instances.schedule import SchedulePlan, ScheduleProblem
from gangplan.solvers.kernels import compile_kernel
from gangplan.solvers.method import Method, suite
from gangplan.solvers.run import Run

from ..graph.compiled import Graph
from .recipe import OfflinePolicy, OfflineSettings
from .task import SAMPLES, Task

HOUR = 3600.0
"""Seconds, more than any problem takes here."""
_LARGE = 64
"""Jobs or nodes from which on there is another generator."""
GOALS = ("weighted_completion", "mean_jct", "makespan")
"""Of small schedules; of large ones they are drawn."""
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
    """Return a problem by its number, of so many ops, jobs or nodes.

    Of step time every third one has contention; of schedules goals take turns.
    """
    names = FAMILIES[objective]
    family, seed = names[index % len(names)], seed_of(split, index // len(names))
    if len(names) == 1 and ops >= _LARGE:
        return make_large(objective, LARGE[objective][0], seed, ops)
    made = make(objective, family, seed, ops)
    if isinstance(made, ScheduleProblem):
        return replace(made, goal=GOALS[index % len(GOALS)])
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
            found.setdefault(_form(run.plan), (run.objective, run.plan))

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


def _form(plan: Any) -> bytes:
    """Return what two plans share that differ only in the names of devices or nodes."""
    if isinstance(plan, SchedulePlan):
        return plan.degree.tobytes() + plan.start.tobytes()
    gangs = isinstance(plan, PlacementPlan)
    _, form = np.unique(plan.node if gangs else plan.device, return_inverse=True)
    first = np.unique(form, return_index=True)[1]
    place = np.argsort(np.argsort(first))  # devices by the first op on each
    more = plan.job.tobytes() + plan.workers.tobytes() if gangs else b""
    return place[form].astype(np.int16).tobytes() + more


def _load(method: Method) -> None:
    """Load what a method imports and compiles, which is not to be in its time."""
    if method.library:
        import_module(method.library)
    for kernel in method.kernels() if method.kernels else ():
        compile_kernel(kernel)


class Example(NamedTuple):
    """A problem as it is learned from.

    Attributes:
        graph: of the problem.
        values: what the plan of each rule is above the best known, as a share, infinite without a plan, (rules,).
    """

    graph: Graph
    values: FloatArray


def example_of(problem: Any, known: Label, rules: Sequence[int]) -> Example | None:
    """Return a problem with the plans of rules, held against the best of a label."""
    task = task_of(problem.objective)
    prepared = suite(task.objective).prepare(Run(problem, time_limit=HOUR))
    decoder = task.decoder(prepared)
    if decoder is None:
        return None
    made = [decoder.decode(rule) for rule in rules]
    values = np.array([np.inf if x is None else x.value for x in made])
    best = min(values.min(), *known.values[:1], np.inf)
    return Example(task.graph(prepared), values / best - 1) if np.isfinite(values).any() else None


def example(
    objective: str, split: str, index: int, ops: int, seconds: float, rules: Sequence[int], cache: str
) -> Example | None:
    """Return a problem by its number with the plans of rules; joblib makes it anew where this function has changed."""
    known = _kept(cache, label)(objective, split, index, ops, seconds) if seconds else Label((), (), 0.0)
    return example_of(problem_of(objective, split, index, ops), known, rules)


def examples(objective: str, settings: OfflineSettings, split: str, count: int, times: int = 1) -> list[Example]:
    """Return the first problems of a split that have plans, from the cache where they are there.

    Those that are so many times as large as what is learned from first are held against the best rule.
    """
    import joblib

    s, one = settings, joblib.delayed(_kept(settings.cache, example))
    seconds = s.label_seconds if times == 1 else 0.0
    todo = (one(objective, split, i, times * s.ops, seconds, s.rules, s.cache) for i in range(count))
    return [x for x in joblib.Parallel(s.processes)(todo) if x is not None]


def labels(objective: str, settings: OfflineSettings, split: str, count: int) -> list[Label]:
    """Return the labels of the first problems of a split, from the cache where they are there."""
    import joblib

    s, one = settings, joblib.delayed(_kept(settings.cache, label))
    return list(joblib.Parallel(s.processes)(one(objective, split, i, s.ops, s.label_seconds) for i in range(count)))


def _kept(cache: str, function: Any) -> Any:
    import joblib

    return joblib.Memory(cache, verbose=0).cache(function) if cache else function


def good_together(values: FloatArray, count: int, cap: float = 0.5) -> list[int]:
    """Return rules of which each adds most to those before, the first being 0, given values of many examples."""
    capped = np.minimum(values, cap)
    chosen, best = [0], capped[:, 0]
    while len(chosen) < count:
        chosen.append(int(np.minimum(best[:, None], capped).mean(axis=0).argmin()))
        best = np.minimum(best, capped[:, chosen[-1]])
    return chosen


def judged(policy: OfflinePolicy, seeds: Sequence[int], ops: int = 100, seconds: float = 1.0) -> list[dict[str, Any]]:
    """Return what plans of a policy are above the best known, in percent, by family and test seed."""
    rows, objective = list[dict[str, Any]](), policy.task.objective
    names = FAMILIES[objective]
    for index in (seed * len(names) + i for seed in seeds for i in range(len(names))):
        problem = problem_of(objective, "test", index, ops)
        prepared = suite(objective).prepare(Run(problem, time_limit=HOUR))
        chosen = policy.choose(prepared)[:SAMPLES]
        found = example_of(problem, label_of(problem, seconds), [0, *chosen])
        about = {"case": names[index % len(names)], "seed": index // len(names)}
        if found is not None:
            for name, value in (
                ("rule", found.values[0]),
                ("learned", found.values[1]),
                ("best of 16", found.values.min()),
            ):
                rows.append({"policy": name, **about, "above_best": 100 * float(value)})
    return rows
