"""Solve and label one instance: its optimum, the actions at its start and in states on the way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.metadata import version
from math import inf, isfinite, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances import PartitionProblem, content_hash, dump
from gangplan.instances.generators.families import make, seed_of
from gangplan.solvers import Run
from gangplan.solvers.method import suite

from .actions import Labels, State
from .configuration import LEVELS, Configuration

if TYPE_CHECKING:
    from .search import Pipelines

Row = dict[str, Any]
"""One instance as a shard holds it, see `files.COLUMNS`."""
METHODS = ("pipedream", "pipeline", "cpsat")
"""What solves an instance, one after the other."""
_SOLVE = 0.4
"""What the optimum may take of an instance's time."""
_ASTRAY, _TRIES = 0.25, 4
"""Share of the states on the way to plans that a solve has left behind; draws a state, for some come out twice."""


def label_state(
    problem: PartitionProblem,
    state: State,
    *,
    time_limit: float,
    whole: bool = False,
    levels: tuple[float, ...] = LEVELS,
    seed: int = 0,
) -> Labels:
    """Return what the actions of any state are worth, e.g. of one that a policy has got itself into.

    Args:
        problem: a pipeline.
        state: its plan says how the policy, or anything else, has gone on from there.
        time_limit: seconds.
        whole: whether to label every open decision, or only the next one.
        levels: see `values.LEVELS`.
        seed: of CP-SAT.
    """
    from .search import Pipelines, label

    return label(Pipelines(problem), state, Run(problem, time_limit=time_limit, seed=seed), whole=whole, levels=levels)


def label_instance(configuration: Configuration, index: int) -> Row:
    """Solve and label the `index`-th instance of a data set on one thread."""
    # these import CP-SAT's models, which take a second
    from .search import Pipelines, label

    c = configuration
    started = time.perf_counter()
    family, seed = c.families[index % len(c.families)], seed_of(c.split, index)
    problem = make("throughput", family, seed, c.size)
    space = Pipelines(problem)
    deadline = started + c.time_limit
    known: list[tuple[Any, float]] = []
    run = _solved(space, seed, _SOLVE * c.time_limit, known)
    rng = np.random.default_rng(seed)
    plans = [(run.plan, float(run.objective or 0.0))] if run.plan is not None else []
    states: list[tuple[State, Labels]] = []
    for i, state in enumerate(_states(space, plans, known, c, rng)):
        left = deadline - time.perf_counter()
        if left <= 0:
            break
        clock = Run(problem, time_limit=left / (c.states + 1 - i) if i else left / 2, seed=seed)
        found = label(space, state, clock, whole=not i, levels=c.levels, bound=run.bound)
        states.append((state, found))
        plans += [pair for pair in found.plans if pair[0] is not state.plan]
    plans += [pair for pair in known if any(pair[0] is state.plan for state, _ in states) and pair not in plans]
    return _row(c, family, seed, problem, run, plans, states) | {"seconds": time.perf_counter() - started}


def _solved(space: Pipelines, seed: int, seconds: float, known: list[tuple[Any, float]]) -> Run:
    """Solve the problem; `known` takes the plans that were the best for a while."""

    def keep(run: Run) -> None:
        if run.plan is not None and (not known or known[-1][0] is not run.plan):
            known.append((run.plan, float(run.objective or 0.0)))

    run = Run(space.problem, time_limit=seconds, seed=seed, callbacks=(keep,))
    tools = suite("throughput")
    prepared = tools.prepare(run)
    for name in METHODS:
        method = tools.methods[name]
        if not run.stopped and method.suits(prepared):
            with run.share(1.0 if name == METHODS[-1] else 0.5):
                method.run(run, prepared)
    return run


def _states(
    space: Pipelines,
    good: list[tuple[Any, float]],
    known: list[tuple[Any, float]],
    c: Configuration,
    rng: np.random.Generator,
) -> Iterator[State]:
    """Yield the empty state, then others on the way to good plans, which grow meanwhile, and some to lesser ones."""
    if not good or space.n_groups < 1:
        return
    seen: set[tuple[int, ...]] = set()
    most = (1 + c.levels[-1]) * good[0][1]
    yield State(good[0][0])
    for _ in range(_TRIES * c.states):
        if len(seen) == c.states:
            return
        among = known if rng.random() < _ASTRAY else [pair for pair in good if pair[1] <= most]
        plan = among[int(rng.integers(len(among)))][0]
        depth = int(rng.integers(1, max(2, space.n_groups)))
        taken = tuple(space.stages(plan)[:depth])
        if depth < space.n_groups and taken not in seen:
            seen.add(taken)
            yield State(plan, depth)


def _row(
    c: Configuration,
    family: str,
    seed: int,
    problem: PartitionProblem,
    run: Run,
    plans: list[tuple[Any, float]],
    states: list[tuple[State, Labels]],
) -> Row:
    number = {id(plan): i for i, (plan, _) in enumerate(plans)}
    count = [len(found.decision) for _, found in states]

    def joined(field: str) -> list[Any]:
        columns = [getattr(found, field).tolist() for _, found in states]
        return [None if isinstance(x, float) and isnan(x) else x for column in columns for x in column]

    best = min([run.objective, *(o for _, o in plans)], key=lambda x: inf if x is None else x) if plans else None
    bounds = [b for b in (run.bound, *(f.bound for s, f in states if not s.depth)) if b is not None and isfinite(b)]
    bound = max(bounds, default=None)
    return {
        "problem": c.problem,
        "family": family,
        "seed": seed,
        "size": c.size,
        "split": c.split,
        "hash": content_hash(problem),
        "objective": best,
        "bound": bound if bound is None or best is None else min(bound, best),
        "infeasible": run.infeasible,
        "plan": [dump(plan) for plan, _ in plans],
        "plan_objective": [objective for _, objective in plans],
        "state_plan": [number[id(state.plan)] for state, _ in states],
        "state_depth": [state.depth for state, _ in states],
        "state_objective": [found.objective for _, found in states],
        "state_bound": [found.bound for _, found in states],
        "state_proved": [found.proved for _, found in states],
        "label_state": [i for i, n in enumerate(count) for _ in range(n)],
        "decision": joined("decision"),
        "action": joined("action"),
        "value": joined("value"),
        "lower": joined("lower"),
        "gangplan": version("gangplan"),
        "ortools": version("ortools"),
    }
