"""What `gangplan simulate` runs: policies by name or from a file, on a trace or in rounds, over seeds."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from math import prod
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import BoolArray, require_choice
from gangplan.instances.generators.fitted import fit_workload
from gangplan.instances.intake import cluster_sizes
from gangplan.instances.quantities import counted
from gangplan.instances.readers.gavel import is_gavel_trace, read_gavel_trace, read_throughputs
from gangplan.instances.readers.traces import Trace, read_trace
from gangplan.instances.torch_model.load import OURS
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import Outages, simulate_named
from gangplan.simulator.engine.simulate import Rules, fitting
from gangplan.simulator.metrics import GroupMetrics, regret, summary
from gangplan.simulator.metrics.groups import HOUR
from gangplan.simulator.outcome import Outcome
from gangplan.simulator.rounds import RoundOutcome, from_gavel, from_workload, parse_cluster, simulate_rounds

from .options import by_name
from .simulation_study import Case, Engine, Maker, Reading, Study, check_effects

Step = Callable[[float], None]


@dataclass(frozen=True)
class Setting:
    """Hold jobs and clusters.

    Attributes:
        run: simulates a policy with a seed, which changes nothing unless `random`; called with these, with what shows
            progress, and except in rounds with the cluster and the discipline of a row.
        facts, about: of the trace and the clusters, for people and for machines.
        jobs: of the trace.
        epoch: seconds from 1970 of the trace's time 0, `None` if it has no dates.
        grouped: whether the jobs have users and queues: not in rounds, nor if there are others for each seed.
    """

    run: Callable[..., Outcome]
    facts: list[tuple[str, str]]
    about: dict[str, Any]
    random: bool
    jobs: Any
    epoch: float | None = None
    grouped: bool = False


def setting_of(study: Study) -> Setting:
    """Read the trace for the clusters."""
    return _on_trace(study) if study.leases.rounds is None else _in_rounds(study)


def _facts(study: Study, jobs: Any, clusters: list[tuple[str, str]], skipped: Sequence[str]) -> list[tuple[str, str]]:
    head = ("trace", f"{study.trace}: {jobs.n_jobs} jobs of 1 to {jobs.gpus.max()} GPUs")
    rows = [*skipped[:5], *[f"{len(skipped) - 5} more rows"] * (len(skipped) > 5)]
    return [head, *clusters, *(("skipped", row) for row in rows)]


def _on_trace(study: Study) -> Setting:
    """Read a trace for clusters of equal nodes: so many of so many GPUs, or so many racks of these.

    Jobs that one of the clusters is too small for are left out of all, so that rows can be compared.
    """
    engine, like = study.engine, study.reading.like
    for name in ("speeds", "throughputs"):
        if getattr(study.leases, name) is not None:
            raise InstanceError(name, "mean something in --rounds only")
    check_effects(engine, study.policies)
    forms = {False: ("nodes x GPUs", "20x8"), True: ("racks x nodes x GPUs", "4x8x8")}
    sizes = {name: cluster_sizes(name, *forms[name.count("x") == 2], 10**7) for name in study.clusters}
    read, facts = _read(study), []
    fits = np.ones(read.workload.n_jobs, dtype=bool)
    for *racks, nodes, gpus in sizes.values():
        fits &= fitting(read.workload, prod((*racks, nodes)), gpus, engine)
        how = "consolidated" if engine.consolidate else "counted only"
        how = f"{counted(racks[0], 'rack')}, close GPUs are faster" if racks else how
        each = " for each queue" * engine.per_queue
        facts.append(("cluster", f"{prod((*racks, nodes))} nodes of {gpus} GPUs{each}, {how}"))
    facts.append(("discipline", ", ".join(engine.disciplines)))
    facts += [("estimates", f"policies are told {_TOLD[x]}") for x in (engine.estimates,) if x in _TOLD]
    facts += [("priorities", "jobs of a higher priority first")] * engine.priorities
    facts += _leave_out(read, fits, "the cluster is" if len(sizes) == 1 else "one of the clusters is")
    workload = read.workload
    model = fit_workload(workload) if like else None

    def run(policy: Maker, seed: int, progress: Step, cluster: str, discipline: str) -> Outcome:
        jobs = workload if model is None else model.draw(workload.n_jobs, seed=seed)
        outages = None if engine.mtbf is None else Outages(mtbf=engine.mtbf, mttr=engine.mttr or 0.0, seed=seed)
        *racks, nodes, gpus = sizes[cluster]
        how: dict[str, Any] = {x.name: getattr(engine, x.name) for x in fields(Rules)} | {"discipline": discipline}
        how |= {"racks": racks[0] if racks else None, "outages": outages, "progress": progress}
        return simulate_named(jobs, nodes, gpus, policy, **how)

    facts, random = _facts(study, workload, facts, read.skipped), like or engine.mtbf is not None
    about = {"skipped": len(read.skipped), "left_out": read.left_out}
    return Setting(run, facts, about, random, workload, read.epoch, grouped=not like)


_TOLD = {"limits": "limits", "none": "no durations"}


def _read(study: Study) -> Trace:
    """Read a trace; an option about what it has not is refused."""
    reading, engine = study.reading, study.engine
    seconds, columns = by_name(reading.lasts, "lasts"), by_name(reading.columns, "columns", str)
    read = read_trace(study.trace, skip_bad=reading.skip_bad, seconds=seconds, columns=columns)
    if reading.queue is not None:
        read.workload = read.workload.only(reading.queue)
    check_wanted(read.workload, engine, seconds, reading.like)
    if not engine.priorities:
        read.workload = replace(read.workload, priority=None)  # no policy of the table knows more than others
    return read


def _leave_out(read: Trace, fits: BoolArray, small: str = "the cluster is") -> list[tuple[str, str]]:
    """Leave out the jobs that never fit, unless none does: then the run says why; return all that was left out."""
    told = [("left out", f"{count} rows {reason}") for reason, count in read.left_out.items()]
    if not fits.all() and fits.any():
        i, count = int(fits.argmin()), int((~fits).sum())
        first = f"{read.workload.names[i]} with {read.workload.gpus[i]} GPUs"
        told.append(("left out", f"{count} jobs that {small} too small for, the first {first}"))
        read.left_out["that the cluster is too small for"] = count
        read.workload = read.workload.take(fits.nonzero()[0])
    return told


def _in_rounds(study: Study) -> Setting:
    """Read a trace, Gavel's or another, for leases on a cluster like ``8xV100+8xK80``; durations are on speed 1."""
    reading, leases = study.reading, study.leases
    length, table, speeds = leases.rounds or 0.0, leases.throughputs, leases.speeds
    alien = [x.name for x in fields(Engine) if getattr(study.engine, x.name) != x.default] + ["like"] * reading.like
    if alien:
        raise InstanceError("rounds", f"of leases know no {', '.join(alien)}")
    if len(study.clusters) > 1:
        raise InstanceError("cluster", "is one in rounds")
    shape = parse_cluster(study.clusters[0])
    facts = [("cluster", " + ".join(f"{n} {kind}" for kind, n in zip(shape.types, shape.count, strict=True)))]
    facts.append(("rounds", f"{length:g} s"))
    about: dict[str, Any] = {}
    skipped: Sequence[str]
    if table is not None:
        if speeds is not None or replace(reading, skip_bad=False) != Reading():
            raise InstanceError("throughputs", "are for Gavel's traces, which take no speeds and have no queues")
        found = read_gavel_trace(study.trace, skip_bad=reading.skip_bad)
        jobs, skipped = from_gavel(found, read_throughputs(table), shape), found.skipped
    elif is_gavel_trace(study.trace):
        raise InstanceError("throughputs", f"{study.trace} is Gavel's, it needs a table of them")
    elif speeds is None:
        raise InstanceError("speeds", f"{study.trace} names no models: say how fast each type is, like v100=1,p100=0.6")
    else:
        read, known = _read(study), by_name(speeds.lower(), "speeds")
        for kind in known:
            require_choice(kind, "speeds", shape.types)
        most = max((n for kind, n in zip(shape.types, shape.count, strict=True) if known.get(kind)), default=0)
        facts += _leave_out(read, read.workload.gpus <= most)
        jobs, skipped, about = from_workload(read.workload, known, shape), read.skipped, {"left_out": read.left_out}

    def run(policy: Maker, seed: int, progress: Step) -> Outcome:
        return simulate_rounds(jobs, shape, policy, length=length, seed=seed)

    return Setting(run, _facts(study, jobs, facts, skipped), {"skipped": len(skipped), **about}, True, jobs)


@dataclass
class Found:
    """Hold what was simulated: figures by row of each seed, outcomes and what groups of jobs got of the first."""

    about: dict[str, dict[str, Any]]
    figures: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    groups: dict[str, dict[str, list[GroupMetrics]]] = field(default_factory=dict)
    seeds: list[int] = field(default_factory=list)
    interrupted: bool = False


def play(
    setting: Setting, cases: Mapping[str, Case], seeds: Sequence[int], progress: Step, price: float | None = None
) -> Found:
    """Simulate every row with every seed; with Ctrl-C return what is done, if anything is. `price`: of a GPU-hour."""
    found = Found({label: case.about for label, case in cases.items()})
    runs = [(seed, label) for seed in seeds for label in cases]
    try:
        for done, (seed, label) in enumerate(runs):

            def step(share: float, done: int = done) -> None:
                progress((done + share) / len(runs))

            outcome = _run(setting, cases[label], seed, step)
            found.outcomes.setdefault(label, outcome)
            found.figures.setdefault(label, []).append(figures(outcome, price))
            step(1.0)
    except KeyboardInterrupt:
        if not found.figures:
            raise
        found.interrupted = True
    # only seeds of which every row is done, or the rows that are done with the first
    whole = min(map(len, found.figures.values())) if len(found.figures) == len(cases) else 1
    found.seeds, found.figures = [*seeds[:whole]], {label: made[:whole] for label, made in found.figures.items()}
    return found


def _run(setting: Setting, case: Case, seed: int, progress: Step) -> Outcome:
    policy = case.policy
    try:
        return setting.run(policy, seed, progress, **case.how)
    except InstanceError:
        raise
    except Exception as error:
        module = sys.modules.get(getattr(policy, "__module__", ""))
        if not hasattr(module, OURS):
            raise
        file = str(getattr(module, "__file__", ""))
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        where = f"{file}, line {lines[-1]}" if lines else file
        raise InstanceError("policy", f"{case.about['policy']}: {type(error).__name__}: {error} ({where})") from error


def figures(outcome: Outcome, price: float | None = None) -> dict[str, Any]:
    """Return the figures of a simulation; of rounds, also how many there were; with the price of a GPU-hour, costs."""
    known = asdict(summary(outcome))
    if price is not None:
        hours = float(outcome.held.sum()) / HOUR
        idle = hours / known["utilisation"] - hours if known["utilisation"] else 0.0
        known |= {"gpu_hours": hours, "cost": hours * price, "idle_cost": max(0.0, idle) * price}
    if isinstance(outcome, RoundOutcome):
        leases = round(known["jobs"] * (1 + known["interruptions"]))
        return known | {"rounds": len(outcome.begins), "allocations": outcome.allocations, "leases": leases}
    return known | {"regret": regret(outcome)}


def check_groups(by: Sequence[str], setting: Setting, many: bool) -> None:
    """Refuse a table of groups that the jobs do not have, or that is of several seeds."""
    if by and many:
        raise InstanceError("by", "is of one seed: leave --seeds out")
    for name in by:
        if name != "size" and not (setting.grouped and any(getattr(setting.jobs, name))):
            raise InstanceError("by", f"{name!r}: the trace says of no job what {name} it is of")


def check_wanted(workload: Workload, engine: Engine, lasts: Mapping[str, float], like: bool) -> None:
    """Refuse an option about something that the trace, or one drawn like it, does not have."""
    for name in lasts:
        if name not in workload.model:
            raise InstanceError("lasts", f"{name!r} is no application of the trace")
    for name, words in (("cpu", "cores"), ("memory", "memory")):
        if getattr(engine, name) is not None and not np.any(getattr(workload, name)):
            raise InstanceError(f"node_{name}", f"changes nothing: the trace says of no job what {words} it needs")
    if engine.per_queue and len(set(workload.queue)) == 1:
        raise InstanceError("per_queue", "changes nothing: the jobs are all of one queue")
    if engine.priorities and len(set(np.asarray(workload.priority).tolist())) == 1:
        raise InstanceError("priorities", "change nothing: the trace gives all jobs the same one, or none")
    if like and (engine.estimates == "limits" or engine.priorities):
        raise InstanceError("like", "draws jobs that have neither priorities nor limits")
