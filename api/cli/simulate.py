"""`gangplan simulate`: policies by name or from a file, on a trace or in rounds, over seeds."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from math import prod
from pathlib import Path
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
from gangplan.simulator.engine import Outages, simulate_named
from gangplan.simulator.engine.simulate import Rules, fitting
from gangplan.simulator.metrics import columns, groups, regret, summary
from gangplan.simulator.metrics.groups import HOUR
from gangplan.simulator.outcome import Outcome
from gangplan.simulator.rounds import RoundOutcome, from_gavel, from_workload, parse_cluster, simulate_rounds

from ..early import INTERRUPTED
from ..plot import check_panel, render
from .options import by_name, refuse
from .output import Told, progress, tell, write
from .simulation_study import ENDINGS, Maker, Study, StudyRow, cases_of, check_effects
from .simulation_tables import StudyRows, as_blocks, as_data, as_page

Step = Callable[[float], None]


def simulate(study: Study) -> Told:
    """Run the jobs of TRACE on a cluster and show when they were done.

    With Ctrl-C it shows what has been simulated so far.
    """
    check_panel(study.panel, Outcome)
    with progress("simulating") as bar:
        found = play(study, bar)
    name = Path(study.trace).name
    write(
        (study.html, lambda _: as_page(found, name)),
        (study.out, lambda path: ENDINGS[Path(path).suffix.lower()](columns(found.outcomes))),
        (study.plot, lambda x: render(x, found.outcomes, None, name=name, panel=study.panel, epoch=found.epoch)),
    )
    return tell(as_data(found), *as_blocks(found), code=INTERRUPTED if found.interrupted else 0)


@dataclass(frozen=True)
class Setting:
    """Hold jobs and clusters.

    Attributes:
        run: simulates a policy with a seed, which changes nothing unless `random`; called with these, with what shows
            progress, and except in rounds with the cluster and the discipline of a row.
        jobs: of the trace.
        facts, about: of the trace and the clusters, for people and for machines.
        epoch: seconds from 1970 of the trace's time 0, `None` if it has no dates.
    """

    run: Callable[..., Outcome]
    jobs: Any
    facts: list[tuple[str, str]]
    about: dict[str, Any]
    random: bool = True
    epoch: float | None = None


def _facts(study: Study, jobs: Any, clusters: list[tuple[str, str]], skipped: Sequence[str]) -> list[tuple[str, str]]:
    head = ("trace", f"{study.trace}: {jobs.n_jobs} jobs of 1 to {jobs.gpus.max()} GPUs")
    rows = [*skipped[:5], *[f"{len(skipped) - 5} more rows"] * (len(skipped) > 5)]
    return [head, *clusters, *(("skipped", row) for row in rows)]


def _on_trace(study: Study) -> Setting:
    """Read a trace for clusters of equal nodes: so many of so many GPUs, or so many racks of these.

    Jobs that one of the clusters is too small for are left out of all, so that rows can be compared.
    """
    alone = "mean something in --rounds only"
    refuse(*((name, getattr(study, name) is not None, alone) for name in ("speeds", "throughputs")))
    check_effects(study, study.policies)
    forms = {False: ("nodes x GPUs", "20x8"), True: ("racks x nodes x GPUs", "4x8x8")}
    sizes = {name: cluster_sizes(name, *forms[name.count("x") == 2], 10**7) for name in study.cluster}
    read, told = _read(study), list[tuple[str, str]]()
    fits = np.ones(read.workload.n_jobs, dtype=bool)
    for *racks, nodes, gpus in sizes.values():
        fits &= fitting(read.workload, prod((*racks, nodes)), gpus, study)
        how = "consolidated" if study.consolidate else "counted only"
        how = f"{counted(racks[0], 'rack')}, close GPUs are faster" if racks else how
        each = " for each queue" * study.per_queue
        told.append(("cluster", f"{prod((*racks, nodes))} nodes of {gpus} GPUs{each}, {how}"))
    told.append(("discipline", ", ".join(study.disciplines)))
    words = {"limits": "policies are told limits", "none": "policies are told no durations"}
    told.append(("estimates", words.get(study.estimates, "")))
    told.append(("priorities", "jobs of a higher priority first" * study.priorities))
    told += _leave_out(read, fits, "the cluster is" if len(sizes) == 1 else "one of the clusters is")
    workload = read.workload
    model = fit_workload(workload) if study.like else None

    def run(policy: Maker, seed: int, progress: Step, cluster: str, discipline: str) -> Outcome:
        jobs = workload if model is None else model.draw(workload.n_jobs, seed=seed)
        outages = None if study.mtbf is None else Outages(mtbf=study.mtbf, mttr=study.mttr or 0.0, seed=seed)
        *racks, nodes, gpus = sizes[cluster]
        how: dict[str, Any] = {x.name: getattr(study, x.name) for x in fields(Rules)} | {"discipline": discipline}
        how |= {"racks": racks[0] if racks else None, "outages": outages, "progress": progress}
        return simulate_named(jobs, nodes, gpus, policy, **how)

    about = {"skipped": len(read.skipped), "left_out": read.left_out}
    random = study.like or study.mtbf is not None
    return Setting(run, workload, _facts(study, workload, told, read.skipped), about, random, read.epoch)


def _read(study: Study) -> Trace:
    """Read a trace; an option about what neither it nor one drawn like it has is refused."""
    seconds, columns = by_name(study.lasts, "lasts"), by_name(study.columns, "columns", str)
    read = read_trace(study.trace, skip_bad=study.skip_bad, seconds=seconds, columns=columns)
    work = read.workload if study.queue is None else read.workload.only(study.queue)
    nothing = "changes nothing: the trace says of no job what"
    same = "change nothing: the trace gives all jobs the same one, or none"
    neither = "draws jobs that have neither priorities nor limits"
    queues, priorities = len(set(work.queue)), len(set(np.asarray(work.priority).tolist()))
    refuse(
        *(("lasts", name not in work.model, f"{name!r} is no application of the trace") for name in seconds),
        ("node_cpu", study.cpu is not None and not np.any(work.cpu), f"{nothing} cores it needs"),
        ("node_memory", study.memory is not None and not np.any(work.memory), f"{nothing} memory it needs"),
        ("per_queue", study.per_queue and queues == 1, "changes nothing: the jobs are all of one queue"),
        ("priorities", study.priorities and priorities == 1, same),
        ("like", study.like and (study.priorities or study.estimates == "limits"), neither),
    )
    # no policy of the table knows more than others
    read.workload = work if study.priorities else replace(work, priority=None)
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
    length, table, speeds = study.rounds or 0.0, study.throughputs, study.speeds
    of_engine = {x.name for x in fields(Rules)} | {"price", "mtbf", "mttr", "like"}
    alien = [x.name for x in fields(study) if x.name in of_engine and getattr(study, x.name) != x.default]
    refuse(
        ("rounds", alien, f"of leases know no {', '.join(alien)}"),
        ("cluster", len(study.cluster) > 1, "is one in rounds"),
    )
    shape = parse_cluster(study.cluster[0])
    counts = dict(zip(shape.types, shape.count, strict=True))
    told = [("cluster", " + ".join(f"{n} {kind}" for kind, n in counts.items())), ("rounds", f"{length:g} s")]
    gavel, about = table is not None or is_gavel_trace(study.trace), dict[str, Any]()
    others = speeds or study.queue or study.lasts or study.columns
    unnamed = "names no models: say how fast each type is, like v100=1,p100=0.6"
    refuse(
        ("throughputs", table and others, "are for Gavel's traces, which take no speeds and have no queues"),
        ("throughputs", gavel and table is None, f"{study.trace} is Gavel's, it needs a table of them"),
        ("speeds", not gavel and speeds is None, f"{study.trace} {unnamed}"),
    )
    skipped: Sequence[str]
    if table is not None:
        found = read_gavel_trace(study.trace, skip_bad=study.skip_bad)
        jobs, skipped = from_gavel(found, read_throughputs(table), shape), found.skipped
    else:
        read, known = _read(study), by_name((speeds or "").lower(), "speeds")
        for kind in known:
            require_choice(kind, "speeds", shape.types)
        told += _leave_out(read, read.workload.gpus <= max((n for x, n in counts.items() if known.get(x)), default=0))
        jobs, skipped, about = from_workload(read.workload, known, shape), read.skipped, {"left_out": read.left_out}

    def run(policy: Maker, seed: int, progress: Step) -> Outcome:
        return simulate_rounds(jobs, shape, policy, length=length, seed=seed)

    return Setting(run, jobs, _facts(study, jobs, told, skipped), {"skipped": len(skipped), **about})


def play(study: Study, progress: Step) -> StudyRows:
    """Simulate every row with every seed; with Ctrl-C return what is done, if anything is."""
    setting = _on_trace(study) if study.rounds is None else _in_rounds(study)
    seeds, known = study.drawn(setting.random), study.rounds is None and not study.like
    for name in study.by or ():
        if name != "size" and not (known and any(getattr(setting.jobs, name))):
            raise InstanceError("by", f"{name!r}: the trace says of no job what {name} it is of")
    cases = cases_of(study)
    about = {label: case.about | setting.about for label, case in cases.items()}
    epoch = setting.epoch if study.zero is None else study.zero
    found = StudyRows(setting.facts, about, seeds, epoch, study.many)
    runs = [(seed, label) for seed in seeds for label in cases]
    try:
        for done, (seed, label) in enumerate(runs):

            def step(share: float, done: int = done) -> None:
                progress((done + share) / len(runs))

            outcome = _run(setting, cases[label], seed, step)
            found.outcomes.setdefault(label, outcome)
            found.figures.setdefault(label, []).append(_figures(outcome, study.gpu_hour_price))
            step(1.0)
    except KeyboardInterrupt:
        if not found.figures:
            raise
        found.interrupted = True
    # only seeds of which every row is done, or the rows that are done with the first
    whole = min(map(len, found.figures.values())) if len(found.figures) == len(cases) else 1
    found.seeds, found.figures = seeds[:whole], {label: made[:whole] for label, made in found.figures.items()}
    for label, outcome in found.outcomes.items():
        found.groups[label] = {name: groups(outcome, name, study.gpu_hour_price) for name in study.by or ()}
    return found


def _run(setting: Setting, case: StudyRow, seed: int, progress: Step) -> Outcome:
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


def _figures(outcome: Outcome, price: float | None) -> dict[str, Any]:
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
