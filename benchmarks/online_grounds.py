"""Rules and networks on continuous runs of clusters of 32 to 4,096 GPUs: `--case train`, `validate`, `test` (default).

Seeds of a ground are played until the 95% interval of each paired difference is at most ±1 point, or there are `MOST`;
with `--seeds N` just N of them, whatever comes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.learned.online.candidates import WAIT
from gangplan.learned.online.features import BY_RULE
from gangplan.learned.online.guard import EVERYTHING
from gangplan.learned.policy.weights import find
from gangplan.learned.training.online.evolve import SCALE, Runs
from gangplan.scheduler.policies.engine_policy import SchedulerPolicy
from gangplan.simulator.engine import EngineScheduler, simulate
from gangplan.simulator.gangs import formula
from gangplan.simulator.gangs.mixes import VALIDATION
from gangplan.simulator.gangs.step import advance, start
from gangplan.simulator.gangs.traffic import LOADING, TEST, TRAIN, VALIDATE, Episode, Traffic, grounds
from gangplan.simulator.metrics.compare import student_quantile, student_within
from gangplan.systems.topdrl.policies import make_policy, weights_of

from .found import Difference, Found, number, percent, table
from .online import PARTS
from .rows import Task, digest
from .study import NOT_RUN, Options, Study, Tables

GROUNDS = {"train": TRAIN, "validate": VALIDATE, "test": TEST}
RULES = tuple(f"{rule}+overtake" for rule in ("fcfs", "sjf", "smallest", "tetris", "least_work"))
"""Classic rules: everybody at once, at the closest place."""
TUNED = "patient-tuned"
"""`Patient` with the numbers that are best on other seeds of the ground itself, see `tuned`."""
CHAIN = "gnn-unguarded"
ABLATIONS = tuple(name for name in PARTS if name != "patient")
"""Networks without a part of the chain, from the folder that the command line names: played where they are named."""
NETWORKS = ("gnn", CHAIN, *ABLATIONS)
PRICE, CHEAP = 60.0, 5.0
"""Of a stop, seconds; of the jobs ``mix``, which take some 20."""
HOW: dict[str, dict[str, Any]] = {
    "": {},
    "-price": {"price": PRICE},
    "-due": {"patience": 10.0},
    "-priorities": {},
    "-types": {},
}
"""How `Scheduler` is asked, from an empty cluster on: as usual; stops have a price; jobs are due after
ten times their length; a tenth of the jobs go first; two GPU types by racks, of which two jobs in three accept one."""
SCHEDULERS: dict[str, dict[str, Any]] = {
    f"scheduler-{policy}{how}": {"policy": policy, **more}
    for how, more in HOW.items()
    for policy in ("patient", "evolved", "gnn", "gnn-unguarded")
}
BASES = {
    "evolved": "patient",
    TUNED: "patient",
    "gnn": "patient",
    CHAIN: "patient",
    **dict.fromkeys(ABLATIONS, CHAIN),
    **{f"scheduler-evolved{how}": f"scheduler-patient{how}" for how in HOW},
    **{f"scheduler-{policy}{how}": f"scheduler-evolved{how}" for policy in ("gnn", CHAIN) for how in HOW},
}
"""What each is compared with, on the same jobs: in `Scheduler` the network with the rule behind it."""
POLICIES = (*formula.FORMULAS, TUNED, *RULES, *NETWORKS, *SCHEDULERS)
USUAL = tuple(x for x in POLICIES if x not in ABLATIONS and not any(how and x.endswith(how) for how in HOW))
"""Those that are played if none is named."""
KINDS = ("A100", "H100")
"""Two types of GPU, as fast as each other."""
ALONE = (TUNED, "evolved", "gnn", "scheduler-evolved")
"""What the table of grounds has, beside `patient` and the classic rules."""
NOTHING = 5e-4
"""Share by which a ground's policies differ at most where the page only names it."""
TARGET, FEWEST = 0.01, 10
"""Half the width of an interval, as a share, and the seeds from which it is taken."""
MOST, MOST_SLOW = 400, 40
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
                yield Task(case, policy, seed, digest(_weights(policy, options)))


def _weights(policy: str, options: Options) -> Path | None:
    """Return the file of a policy's weights, None if it has none."""
    if policy in SCHEDULERS:
        return find("gnn") if "gnn" in policy else None
    return weights_of(policy, None, options.weights) if policy in NETWORKS else None


def needed(found: Found, case: str, policy: str, seeds: int | None) -> int:
    """Return on how many seeds of a ground a policy is played: as many as somebody says, else as its rows ask for."""
    if seeds:
        return seeds
    most = MOST_SLOW if policy in SCHEDULERS else MOST
    apart = found.apart(case, policy, BASES[policy]) if policy in BASES else None
    if apart is None or apart.margin is None:
        return min(FEWEST, most)
    enough = ceil(apart.seeds * (apart.margin / apart.base / TARGET) ** 2)
    return min(max(FEWEST, enough, apart.seeds), 2 * apart.seeds, most)


def measure(task: Task, options: Options) -> Mapping[str, float]:
    """Play one run."""
    run = episode(task.case, options.data, task.seed)
    if task.policy in SCHEDULERS:
        return _by_scheduler(task, options.data)
    state, began = run.begin(), time.process_time()
    weights = tuned(task.case, options.data) if task.policy == TUNED else formula.FORMULAS.get(task.policy)
    if weights is not None:
        formula.finish(run.jobs, run.cluster, state, weights)
        return {"mean_jct": run.mean_jct(state), "seconds": time.process_time() - began}
    policy: Any = make_policy(task.policy, folder=options.weights)
    policy.finish(run.jobs, run.cluster, state)
    found = {"mean_jct": run.mean_jct(state), "seconds": time.process_time() - began}
    return found | ({"changed": changed(policy, run)} if task.policy in NETWORKS else {})


@cache
def tuned(case: str, data: Path) -> FloatArray:
    """Return `PATIENT` with the three numbers that an evolution finds best on validation seeds of a ground itself."""
    runs, rng = Runs([ground(case, data)], range(VALIDATION, VALIDATION + 4)), np.random.default_rng(0)
    best, at = formula.PATIENT, np.flatnonzero(formula.PATIENT)
    mean, deviation = best[at], SCALE[at]
    for _ in range(5):
        drawn = np.tile(formula.PATIENT, (12, 1))
        drawn[:, at] = mean + deviation * rng.normal(size=(12, len(at)))
        order = np.argsort([runs.score(x) for x in drawn])
        best = min(best, drawn[order[0]], key=runs.score)
        mean, deviation = drawn[order[:4]][:, at].mean(axis=0), drawn[order[:4]][:, at].std(axis=0) + 0.02
    return best


def changed(policy: Any, run: Episode) -> float:
    """Return the share of the first decisions in which a network does not choose what its rule would."""
    if policy.guarded and policy.guard(run.cluster).due == EVERYTHING:
        return 0.0
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


def _by_scheduler(task: Task, data: Path) -> dict[str, float]:
    """Return what comes of `Scheduler`, for the jobs behind those that load the cluster."""
    place = ground(task.case, data)
    (work, told), fleet, accepts = place.draw(task.seed), place.fleet, None
    rng = np.random.default_rng(task.seed)
    if task.policy.endswith("-priorities"):
        work = replace(work, priority=(rng.random(work.n_jobs) < 0.1).astype(np.int32))
    if task.policy.endswith("-types"):
        fleet = replace(fleet, gpu_types=KINDS, gpu_type=(fleet.topology.group[0] % 2).astype(np.int32))
        accepts = [((), *((kind,) for kind in KINDS))[i] for i in rng.integers(3, size=work.n_jobs)]
    options = dict(SCHEDULERS[task.policy])
    if "price" in options and place.jobs == "mix":
        options["price"] = CHEAP
    policy = SchedulerPolicy(True if told is None else told, accepts=accepts, **options)
    began, how = time.process_time(), {"speeds": place.proximity, "preempt_cost": options.get("price", 0.0)}
    outcome = simulate(work, fleet, EngineScheduler((policy,), "overtake"), **how)
    found = {"seconds": time.process_time() - began}
    late = np.argsort(work.submit, kind="stable")[int(LOADING * work.n_jobs) :]
    found["mean_jct"] = float((outcome.finish - work.submit)[late].mean())
    if (use := policy.scheduler.network) is not None:
        found["changed"] = use.corrected / max(use.choices, 1)
        found["made"] = policy.by["gnn"] / policy.by.total()
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
    cases = [x.name for x in TEST] if cases is None else cases
    rows = {(x["ground"], x["policy"]): x for x in compared(found, cases)}
    judged = [x for x in ALONE if any((case, x) in rows for case in cases)]
    lines = []
    for case in (case for case in cases if case in found.cases):
        best = found.best(case, RULES)
        if all(abs(rows[case, x]["above"]) < NOTHING for x in judged if (case, x) in rows):
            continue  # the page names them
        cells = [case, number(found.mean(case, "patient")), percent(found.apart(case, best or "", "patient"))]
        lines.append([*cells, *(_cell(found, rows.get((case, policy)), "changed") for policy in judged)])
    heads = (f"`{x.removeprefix('scheduler-')}` less `patient`{', in `Scheduler`' * (x in SCHEDULERS)}" for x in judged)
    return table(("mean JCT", "`patient`, s", "best classic rule", *heads), lines)


def in_scheduler(found: Found) -> str:
    """Return by what share the network in `Scheduler` is above the rule behind it, as it is asked, a line a ground."""
    rows = {(x["ground"], x["policy"]): x for x in compared(found, [x.name for x in TEST])}
    every = [(x.name, [rows.get((x.name, f"scheduler-gnn{how}")) for how in HOW]) for x in TEST]
    lines = [
        (name, *(_cell(found, row, "made") for row in each))
        for name, each in every
        if any(x and abs(x["above"]) >= NOTHING for x in each)
    ]
    heads = (how[1:] or "as usual" for how in HOW)
    return table(("`gnn` less `evolved`", *heads), lines) if lines else NOT_RUN


def parts(found: Found) -> str:
    """Return by how much networks without a part of the chain are behind it, a line each."""
    rows = {(x["ground"], x["policy"]): x for x in compared(found, [x.name for x in TEST])}
    cases = [x.name for x in TEST if any((x.name, name) in rows for name in ABLATIONS)]
    lines = [[PARTS[name], *(_cell(found, rows.get((case, name)), "") for case in cases)] for name in ABLATIONS]
    return table(("mean JCT less the chain's", *cases), lines) if cases else NOT_RUN


def _cell(found: Found, row: dict[str, Any] | None, share: str) -> str:
    """Return a difference, a share of decisions if there is one, and the p-value by Holm below 1; "=" if it is none."""
    if row is None:
        return ""
    of = found.mean(row["ground"], row["policy"], share)
    if of == 0:
        return "="
    apart = percent(found.apart(row["ground"], row["policy"], row["base"]))
    p = f"; {_p(row['p_holm'])}" if row["p_holm"] < 1 else ""
    return f"{apart}{'' if of is None else f', {of:.0%}'}{p}"


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
PAGES: dict[str, Tables] = {
    "scheduler-results.md": {"grounds": shown, "grounds in Scheduler": in_scheduler},
    "graph-policy.md": {"parts on grounds": parts},
}
STUDY = Study("online-grounds", ("mean_jct", "changed", "seconds", "made"), tasks, measure, PAGES, MORE)
"""Mean JCT of the jobs behind those that load the cluster, s; share of the network's decisions that are not its rule's;
processor seconds; share of the starts that are the network's."""
