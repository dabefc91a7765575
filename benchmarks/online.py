"""The graph policy in `Scheduler` on clusters of 64 to 1,024 GPUs, with jobs of three traces, beside all rivals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from gangplan.hybrid.bench.makers import SCHEDULERS, Near
from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.workload import Workload
from gangplan.learned.policy.weights import find
from gangplan.scheduler.policies.engine_policy import SchedulerPolicy
from gangplan.simulator.gangs.formula import EVOLVED, finish
from gangplan.simulator.gangs.traffic import fit
from gangplan.simulator.metrics import interval
from gangplan.systems.topdrl.ground import Topdrl
from gangplan.systems.topdrl.policies import make_policy, weights_of
from gangplan.systems.topdrl.suites import SUITES, ClusterSuite, suite

from .found import Difference, Found, number, percent, table
from .rows import Task, digest
from .study import NOT_RUN, Options, Study, Tables

SIZES = {"64": (2, 4, 8), "256": (4, 8, 8), "1024": (8, 16, 8)}
"""Racks, nodes, GPUs, by the number of GPUs."""
TRACES = ("philly", "openb", "pollux")
CASES = tuple(f"{trace}-{size}" for size in SIZES for trace in TRACES)
WIDEST = 64
"""GPUs of a gang at most."""
PER_GPU, FEWEST = 1.5, 150
"""Jobs of a workload."""
OPENB = "openb/openb_pod_list_default.csv"
ORACLE, PATIENT, USUAL, NETWORK, FREE = (
    "oracle", "scheduler-patient", "scheduler", "scheduler-gnn", "scheduler-gnn-unguarded",
)  # fmt: skip
RULES = tuple(
    f"{rule}+{discipline}+closest"
    for rule in ("fcfs", "sjf", "smallest", "tetris", "least_work")
    for discipline in ("head", "overtake", "easy")
)
"""Classic rules, the best of which is chosen in hindsight."""
POLICIES = (*RULES, "linear", "patient", USUAL, PATIENT, NETWORK, FREE, ORACLE)
OURS, PARTS = (
    "gnn-unguarded",
    {
        "gnn-exact-unguarded": "exact labels alone",
        "gnn-rollouts-unguarded": "rollouts alone",
        "gnn-imitation-unguarded": "both, no RL",
        "gnn-rl-only-unguarded": "RL alone, no imitation",
        "gnn-alone-unguarded": "no messages: candidates alone",
        "gnn-random-unguarded": "random weights",
        "patient": "no network: the rule",
    },
)
"""The network alone, and what it is without one of its parts: weights in the folder that the command line names."""
PART_SEEDS = range(40, 80)
"""Test seeds on which they are compared, in compiled episodes: others were looked at before the last choice."""
SYNTHETIC = ("small", "expensive", "mixed", "loaded", "uncertain", "rush")
RULE = "evolved"
"""The rule behind the network, in compiled episodes beside `patient`: played where it is named."""


@cache
def ground(case: str, data: Path) -> ClusterSuite:
    """Return a cluster and its workloads."""
    if case in SUITES:
        return suite(case, data)
    trace, size = case.split("-")
    fleet = Fleet.regular(*SIZES[size])
    n = max(FEWEST, int(PER_GPU * fleet.n_gpus))
    jobs, proximity = _jobs(trace, data)

    def draw(seed: int) -> tuple[Workload, None]:
        rng = np.random.default_rng([seed, *case.encode()])
        low = int(0.7 * jobs.n_jobs) if jobs.n_jobs > 4 * n else 0  # the policy learned from none of them
        if jobs.n_jobs - low >= n:
            at = low + int(rng.integers(jobs.n_jobs - low - n + 1))
            return fit(jobs.take(np.arange(at, at + n)), fleet, proximity), None
        order = rng.integers(jobs.n_jobs, size=n)  # sizes and lengths as they are, at random times
        drawn = Workload(
            tuple(map(str, range(n))), np.cumsum(rng.exponential(1.0, n)), jobs.gpus[order], jobs.duration[order],
            model=tuple(jobs.model[i] for i in order),
        )  # fmt: skip
        return fit(drawn, fleet, proximity), None

    return ClusterSuite(case, fleet, proximity, draw, width=WIDEST)


@cache
def _jobs(trace: str, data: Path) -> tuple[Workload, Proximity]:
    """Return the jobs of a trace with whole GPUs, and how much they pay for being apart."""
    if trace == "pollux":
        made = suite("pollux", data)
        parts = [made.draw(seed)[0] for seed in range(4)]
        jobs = Workload(
            tuple(map(str, range(sum(x.n_jobs for x in parts)))),
            *(np.concatenate([getattr(x, name) for x in parts]) for name in ("submit", "gpus", "duration")),
            model=tuple(m for x in parts for m in x.model),
        )
        return replace(jobs, gpus=np.minimum(jobs.gpus, WIDEST)), made.proximity
    path = data / ("philly/philly.csv.gz" if trace == "philly" else OPENB)
    if not path.is_file():
        raise InstanceError("data", f"{str(data)!r} does not have {path.name}")
    read = read_trace(path).workload
    kept = np.flatnonzero((read.duration > 0) & (np.asarray(read.share) == 1) & (read.gpus > 0))
    read = read.take(kept[np.argsort(read.submit[kept], kind="stable")])
    return replace(read, gpus=np.minimum(read.gpus, WIDEST)), Proximity()


def tasks(options: Options) -> Iterator[Task]:
    """Yield every case, test seed and policy."""
    weights = digest(find("gnn"))
    for case in options.chosen((*SYNTHETIC, "large", "philly", "pollux", *CASES)):
        try:
            ground(case, options.data)
        except InstanceError as error:
            print(f"{case}: left out, {error}")
            continue
        small = case in SUITES or case.endswith("-64")
        for seed in range(options.seeds or 10):
            for policy in options.policies or POLICIES:
                if small or policy != ORACLE:
                    yield Task(case, policy, seed, weights if "gnn" in policy else "")
        for policy in (OURS, *PARTS) if case in SYNTHETIC and not options.policies else ():
            path = weights_of(policy, None, options.weights)
            seeds = PART_SEEDS[: options.seeds] if path or policy in POLICIES else ()
            for seed in (*range(options.seeds or 10), *seeds) if policy == OURS else seeds:
                yield Task(case, policy, seed, digest(path) if path else "")


def measure(task: Task, options: Options) -> Mapping[str, float]:
    """Simulate."""
    made = ground(task.case, options.data)
    near = Near(made)
    drawn = near.draw(task.seed)
    if task.policy in SCHEDULERS:
        scheduler = near.policy(task.policy)(drawn, task.seed)
        return near.play(scheduler, drawn) | _use(scheduler.parts[0])
    policy: Any = SimpleNamespace(finish=partial(finish, weights=EVOLVED))
    if task.policy != RULE:
        policy = make_policy(task.policy, suite=made, folder=options.weights)
    return near.play(near.always(policy)(drawn, task.seed), drawn)


def _use(policy: SchedulerPolicy) -> dict[str, float]:
    """Return the share of the starts that are the network's, and of its choices that are not the rule's."""
    use = policy.scheduler.network
    if use is None:
        return {}
    return {"by_network": policy.by["gnn"] / policy.by.total(), "corrected": use.corrected / max(use.choices, 1)}


def _shares(found: Found, case: str) -> tuple[str, ...]:
    """Return the shares of the network without guard, in the mean over seeds."""
    means = [found.mean(case, FREE, figure) for figure in SHARES]
    return tuple("" if mean is None else f"{mean:.0%}" for mean in means)


def summary(found: Found) -> str:
    """Return a line a case: the best rule, and how far others are from it and the network from them."""
    lines: list[tuple[Any, ...]] = []
    for case in (*SYNTHETIC, "large", "philly", "pollux", *CASES):
        best = found.best(case, RULES) if case in found.cases else None
        if best is None:
            continue
        cells = [found.apart(case, FREE, rival) for rival in (best, PATIENT, USUAL, ORACLE) if found.of(case, rival)]
        if all(abs(cell.mean) < 1.5e-3 * cell.base for cell in cells if cell):
            continue  # the page names them
        cells += [None] * (4 - len(cells))
        lines.append((case, f"`{best.removesuffix('+closest')}` {number(found.mean(case, best))}",
                      *(percent(x) if x else "" for x in cells), *_shares(found, case)))  # fmt: skip
    head = ("mean JCT of the network less", "best rule, s", "best rule", "patient", "`Scheduler()`", "oracle",
            "starts", "choices")  # fmt: skip
    return table(head, lines) if lines else NOT_RUN


def parts(found: Found) -> str:
    """Return how much worse the network is without each of its parts, in the mean over the synthetic suites."""
    lines = []
    for name, about in PARTS.items():
        shares = np.zeros(len(PART_SEEDS))
        for case in SYNTHETIC:
            mine, ours = (found.of(case, policy) for policy in (name, OURS))
            both = np.array([(mine[seed], ours[seed]) for seed in PART_SEEDS if seed in mine and seed in ours])
            if len(both) < len(PART_SEEDS):
                break
            shares += (both[:, 0] - both[:, 1]) / both[:, 1].mean() / len(SYNTHETIC)
        else:
            lines.append((about, percent(Difference(len(shares), *interval(shares), 1.0))))
    return table(("mean JCT less the network's", "six suites"), lines) if lines else NOT_RUN


def rule(found: Found) -> str:
    """Return how much worse the rule behind the network is than `patient`, suite by suite."""
    cells = {case: found.apart(case, RULE, "patient") for case in (*SYNTHETIC, "large", "philly", "pollux")}
    return "; ".join(f"{case} {percent(x)}" for case, x in cells.items() if x) or NOT_RUN


TABLES: Tables = {"online": summary, "parts": parts}
SHARES = ("by_network", "corrected")
PAGES = {"graph-policy.md": TABLES, "scheduler-results.md": {"rule on suites": rule}}
STUDY = Study("online", (*Topdrl.figures, *SHARES), tasks, measure, PAGES)
"""See `Topdrl.figures`."""
