"""Rules and networks on continuous runs of clusters of 32 to 4,096 GPUs: `--case train`, `validate`, `test` (default).

Seeds of a ground are played until the 95% interval of each paired difference is at most ±1 point, or there are `MOST`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.learned.online.candidates import WAIT
from gangplan.learned.online.features import BY_RULE
from gangplan.scheduler.policies.engine_policy import SchedulerPolicy
from gangplan.simulator.engine import EngineScheduler, simulate
from gangplan.simulator.gangs import formula
from gangplan.simulator.gangs.step import advance, start
from gangplan.simulator.gangs.traffic import LOADING, TEST, TRAIN, VALIDATE, Episode, Traffic, grounds
from gangplan.simulator.metrics.compare import student_quantile, student_within
from gangplan.systems.topdrl.policies import make_policy, weights_of

from .found import Difference, Found, number, percent, table
from .rows import Task, digest
from .study import Options, Study, Tables

GROUNDS = {"train": TRAIN, "validate": VALIDATE, "test": TEST}
RULES = tuple(f"{rule}+overtake" for rule in ("fcfs", "sjf", "smallest", "tetris", "least_work"))
"""Classic rules: everybody at once, at the closest place."""
NETWORKS = {"gnn": "patient", "gnn-unguarded": "patient"}
"""Networks by the name of their weights, and the rule that each corrects."""
PRICE = 60.0
"""Of a stop, seconds."""
SCHEDULERS: dict[str, dict[str, Any]] = {
    "scheduler-patient": {"policy": "patient"},
    "scheduler-evolved": {"policy": "evolved"},
    "scheduler-patient-price": {"policy": "patient", "price": PRICE},
    "scheduler-evolved-price": {"policy": "evolved", "price": PRICE},
}
"""`Scheduler` with its usual rule of who is due, from an empty cluster on; nobody ever is in the other runs."""
BASES = {
    "evolved": "patient",
    **NETWORKS,
    "scheduler-evolved": "scheduler-patient",
    "scheduler-evolved-price": "scheduler-patient-price",
}
"""What each is compared with, on the same jobs."""
POLICIES = (*formula.FORMULAS, *RULES, *NETWORKS, *SCHEDULERS)
USUAL = tuple(policy for policy in POLICIES if not policy.endswith("-price"))
"""Those that are played if none is named: with stops a run takes minutes."""
TARGET, FEWEST = 0.01, 10
"""Half the width of an interval, as a share, and the seeds from which it is taken."""
MOST, MOST_SLOW = 400, 10
"""Seeds at most; of `Scheduler`, which takes seconds for a run."""
WATCHED = 300
"""Decisions of a run of which it is asked whether the network changed them."""


@cache
def ground(case: str, data: Path) -> Traffic:
    """Return a ground by its name."""
    return next(x for named in GROUNDS.values() for x in grounds(named, str(data)) if x.name == case)


@lru_cache(2)
def episode(case: str, data: Path, seed: int) -> Episode:
    """Return a run."""
    return ground(case, data).episode(seed)


def names(options: Options) -> list[str]:
    """Return the grounds that are asked for, by their own names or those of their tables."""
    asked = options.cases or ("test",)
    known = [(x.name, label) for label, named in GROUNDS.items() for x in grounds(named, str(options.data))]
    return [name for name, label in known if name in asked or label in asked]


def tasks(options: Options) -> Iterator[Task]:
    """Yield the runs that are still needed, seed by seed."""
    found = STUDY.found(options.rows)
    policies = options.policies or USUAL
    for case in names(options):
        many = {policy: needed(found, case, policy, options.seeds) for policy in policies}
        for policy in policies:
            base = BASES.get(policy, "patient")
            many[base] = max(many.get(base, 0), many[policy])
        for seed in range(max(many.values(), default=0)):
            for policy in (policy for policy, n in many.items() if seed < n):
                path = weights_of(policy, None, options.weights) if policy in NETWORKS else None
                yield Task(case, policy, seed, digest(path))


def needed(found: Found, case: str, policy: str, seeds: int | None) -> int:
    """Return how many seeds of a ground a policy is played on, as far as its rows say."""
    most = seeds or (MOST_SLOW if policy in SCHEDULERS else MOST)
    apart = found.apart(case, policy, BASES[policy]) if policy in BASES else None
    if apart is None or apart.margin is None:
        return min(FEWEST, most)
    enough = ceil(apart.seeds * (apart.margin / apart.base / TARGET) ** 2)
    return min(max(FEWEST, enough, apart.seeds), 2 * apart.seeds, most)


def measure(task: Task, options: Options) -> Mapping[str, float]:
    """Play one run."""
    run = episode(task.case, options.data, task.seed)
    if task.policy in SCHEDULERS:
        return _by_scheduler(task, options)
    state, began = run.begin(), time.process_time()
    if task.policy in formula.FORMULAS:
        formula.finish(run.jobs, run.cluster, state, formula.FORMULAS[task.policy])
        return {"mean_jct": run.mean_jct(state), "seconds": time.process_time() - began}
    policy: Any = make_policy(task.policy, folder=options.weights)
    policy.finish(run.jobs, run.cluster, state)
    found = {"mean_jct": run.mean_jct(state), "seconds": time.process_time() - began}
    return found | ({"changed": changed(policy, run)} if task.policy in NETWORKS else {})


def changed(policy: Any, run: Episode) -> float:
    """Return the share of the first decisions in which a network does not choose what its rule would."""
    state, all_, others, more = run.begin(), 0, 0, True
    while more and all_ < WATCHED:
        seen = policy.observe(run.jobs, run.cluster, state)
        if seen is None:
            more = advance(run.jobs, run.cluster, state)
            continue
        rule = np.asarray(seen.graph.x[: len(seen.place), BY_RULE], dtype=float)
        rule = np.where((seen.place == WAIT) & seen.at_once, -np.inf, rule)
        best, all_ = policy.choose(seen), all_ + 1
        others += not seen.odd and best != int(np.argmax(rule))
        if seen.place[best] == WAIT:
            more = advance(run.jobs, run.cluster, state)
        else:
            start(run.jobs, run.cluster, state, int(seen.place[best]), seen.take[best].copy())
    return others / max(all_, 1)


def _by_scheduler(task: Task, options: Options) -> dict[str, float]:
    """Return what comes of `Scheduler`, for the jobs behind those that load the cluster."""
    place = ground(task.case, options.data)
    work, told = place.draw(task.seed)
    policy = SchedulerPolicy(True if told is None else told, **SCHEDULERS[task.policy])
    began = time.process_time()
    how: dict[str, Any] = {"speeds": place.proximity, "preempt_cost": SCHEDULERS[task.policy].get("price", 0.0)}
    outcome = simulate(work, place.fleet, EngineScheduler((policy,), "overtake"), **how)
    found = {"seconds": time.process_time() - began}
    late = np.argsort(work.submit, kind="stable")[int(LOADING * work.n_jobs) :]
    found["mean_jct"] = float((outcome.finish - work.submit)[late].mean())
    if (use := policy.scheduler.network) is not None:
        found["changed"] = use.corrected / max(use.choices, 1)
    return found


def p_value(apart: Difference) -> float:
    """Return the two-sided p-value of a paired difference, by Student's t."""
    if not apart.margin:
        return 1.0
    t = abs(apart.mean) / apart.margin * student_quantile(apart.seeds - 1)
    return 1 - student_within(t, apart.seeds - 1)


def holm(values: Mapping[str, float]) -> dict[str, float]:
    """Return p-values adjusted by Holm (1979)."""
    found, least = {}, 0.0
    for i, name in enumerate(sorted(values, key=lambda x: values[x])):
        found[name] = least = max(least, min(1.0, (len(values) - i) * values[name]))
    return found


def compared(found: Found, cases: list[str]) -> list[dict[str, Any]]:
    """Return of each ground and policy by what share its mean JCT is above its base's."""
    rows = []
    for policy in POLICIES:
        of = {case: x for case in cases if (x := found.apart(case, policy, BASES.get(policy, "patient")))}
        adjusted = holm({case: p_value(x) for case, x in of.items()})
        for case, x in of.items():
            if policy == BASES.get(policy, "patient"):
                continue
            margin = None if x.margin is None else x.margin / x.base
            rows.append({
                "ground": case, "policy": policy, "base": BASES.get(policy, "patient"), "seeds": x.seeds,
                "base_jct": x.base, "above": x.mean / x.base, "margin": margin,
                "p": p_value(x), "p_holm": adjusted[case], "changed": found.mean(case, policy, "changed"),
            })  # fmt: skip
    return rows


def shown(found: Found, cases: list[str] | None = None) -> str:
    """Return a line a ground."""
    cases = [x.name for x in TEST if x.name in found.cases] if cases is None else cases
    rows = {(x["ground"], x["policy"]): x for x in compared(found, cases)}
    judged = [policy for policy in POLICIES if policy in BASES and any((case, policy) in rows for case in cases)]
    lines = []
    for case in (case for case in cases if case in found.cases):
        best = found.best(case, RULES)
        cells = [case, number(found.mean(case, "patient")), percent(found.apart(case, best or "", "patient"))]
        for policy in judged:
            row, apart = rows.get((case, policy)), found.apart(case, policy, BASES[policy])
            some = f", {row['changed']:.0%}" if row and row["changed"] is not None else ""
            cells.append(f"{percent(apart)}{some}; {_p(row['p_holm'])}" if row else "")
        lines.append(cells)
    heads = (f"`{x}` less `{BASES[x]}`" for x in judged)
    return table(("mean JCT", "`patient`, s", "best classic rule", *heads), lines)


def _p(value: float) -> str:
    return "<.001" if value < 0.001 else f"{value:.2g}"


def run(options: Options) -> None:
    """Run until the intervals are as narrow as they should be, and show the table."""
    while any(True for _ in tasks(options)) and STUDY.run(options):
        pass
    show(options)


def show(options: Options) -> None:
    """Print the table, or its rows as JSON."""
    import json

    found, cases = STUDY.found(options.rows), names(options)
    print(json.dumps(compared(found, cases), indent=1) if options.as_json else shown(found, cases))


MORE: dict[str, Callable[[Options], object]] = {"run": run, "table": show}
PAGES: dict[str, Tables] = {"scheduler-results.md": {"grounds": shown}}
STUDY = Study("online-grounds", ("mean_jct", "changed", "seconds"), tasks, measure, PAGES, MORE)
"""Mean JCT of the jobs behind those that load the cluster, s; `changed`; processor seconds."""
