"""What `gangplan simulate` runs: policies by name or from a file, on a trace or in rounds, over seeds."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import BoolArray, require_choice
from gangplan.instances.generators.fitted import fit_workload
from gangplan.instances.readers.gavel import is_gavel_trace, read_gavel_trace, read_throughputs
from gangplan.instances.readers.traces import Trace, read_trace
from gangplan.instances.torch_model.load import OURS, find_object
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import POLICIES
from gangplan.simulator.outcome import Outcome

from .options import by_name

Maker = str | Callable[..., Any]
"""The name of a policy, or what makes one."""
Step = Callable[[float], None]
ONLINE: dict[str, dict[str, Any]] = {"online": {}, "patient": {"policy": "patient"}, "gnn": {"policy": "gnn"}}
"""Names by which `gangplan.Scheduler` decides, with its arguments."""


@dataclass(frozen=True)
class Setting:
    """Jobs and a cluster: `run` simulates a policy with a seed, which changes nothing unless `random`."""

    run: Callable[[Maker, int, Step], Outcome]
    facts: list[tuple[str, str]]
    about: dict[str, Any]
    random: bool


def on_trace(
    trace: str,
    sizes: Sequence[int],
    engine: dict[str, Any],
    failures: tuple[float, float] | None,
    *,
    like: bool,
    **reading: Any,
) -> Setting:
    """Read a trace for a cluster of equal nodes: so many of so many GPUs, or so many racks of these."""
    from gangplan.simulator.engine import Outages, simulate_named
    from gangplan.simulator.engine.simulate import fitting

    *racks, per_rack, gpus = sizes
    nodes = per_rack * (racks[0] if racks else 1)
    read = _read(trace, engine, reading)
    limits = {name: engine.get(name) for name in ("degrees", "cpu", "memory")}
    left_out = _leave_out(read, fitting(read.workload, nodes, gpus, consolidate=engine["consolidate"], **limits))
    workload = read.workload
    model = fit_workload(workload) if like else None
    each = " for each queue" if engine["per_queue"] else ""
    how = "consolidated" if engine["consolidate"] else "counted only"
    how = f"{racks[0]} {'rack' if racks[0] == 1 else 'racks'}, close GPUs are faster" if racks else how
    facts = [
        (
            "cluster",
            f"{nodes} nodes of {gpus} GPUs{each}, {f'{racks[0]} racks, close GPUs are faster' if racks else how}",
        ),
        ("discipline", engine["discipline"]),
        *left_out,
    ]

    def run(policy: Maker, seed: int, progress: Step) -> Outcome:
        jobs = workload if model is None else model.draw(workload.n_jobs, seed=seed)
        outages = None if failures is None else Outages(mtbf=failures[0], mttr=failures[1], seed=seed)
        near = racks[0] if racks else None
        return simulate_named(jobs, per_rack, gpus, policy, **engine, racks=near, outages=outages, progress=progress)

    return _setting(run, trace, workload, facts, read.skipped, {"left_out": read.left_out}, like or bool(failures))


def _read(trace: str, engine: dict[str, Any], reading: dict[str, Any]) -> Trace:
    """Read a trace as the options of `TRACE` say; an option of the engine about what it has not is refused."""
    seconds = by_name(reading["lasts"] or "", "lasts")
    columns = by_name(reading["columns"] or "", "columns", str)
    read = read_trace(trace, skip_bad=reading["skip_bad"], seconds=seconds, columns=columns)
    if reading["queue"] is not None:
        read.workload = read.workload.only(reading["queue"])
    check_wanted(read.workload, engine, seconds)
    return read


def _leave_out(read: Trace, fits: BoolArray) -> list[tuple[str, str]]:
    """Leave out the jobs that never fit, unless none does: then the run says why; return all that was left out."""
    told = [("left out", f"{count} rows {reason}") for reason, count in read.left_out.items()]
    if not fits.all() and fits.any():
        i, count = int(fits.argmin()), int((~fits).sum())
        first = f"{read.workload.names[i]} with {read.workload.gpus[i]} GPUs"
        told.append(("left out", f"{count} jobs that the cluster is too small for, the first {first}"))
        read.left_out["that the cluster is too small for"] = count
        read.workload = read.workload.take(fits.nonzero()[0])
    return told


def in_rounds(trace: str, cluster: str, leases: dict[str, Any], reading: dict[str, Any]) -> Setting:
    """Read a trace, Gavel's or another, for leases on GPUs of several types.

    Args:
        trace: the file.
        cluster: like ``8xV100+8xP100+8xK80``.
        leases: ``rounds``, the length of one, seconds; ``throughputs``, for Gavel's traces the file of measured steps a
            second; ``speeds``, for others how fast each type is, like ``v100=1,p100=0.6``: durations are on speed 1.
        reading: see `_read`.
    """
    from gangplan.simulator.rounds import from_gavel, from_workload, parse_cluster, simulate_rounds

    shape, length = parse_cluster(cluster), leases["rounds"]
    throughputs, speeds = leases["throughputs"], leases["speeds"]
    skipped: Sequence[str]
    left_out: list[tuple[str, str]] = []
    about = {}
    if throughputs is not None:
        if speeds is not None or any(x for name, x in reading.items() if name != "skip_bad"):
            raise InstanceError("throughputs", "are for Gavel's traces, which take no speeds and have no queues")
        found = read_gavel_trace(trace, skip_bad=reading["skip_bad"])
        jobs, skipped = from_gavel(found, read_throughputs(throughputs), shape), found.skipped
    elif is_gavel_trace(trace):
        raise InstanceError("throughputs", f"{trace} is Gavel's, it needs a table of them")
    elif speeds is None:
        raise InstanceError("speeds", f"{trace} names no models: say how fast each type is, like v100=1,p100=0.6")
    else:
        read, known = _read(trace, {}, reading), by_name(speeds.lower(), "speeds")
        for kind in known:
            require_choice(kind, "speeds", shape.types)
        most = max((n for kind, n in zip(shape.types, shape.count, strict=True) if known.get(kind)), default=0)
        left_out, about = _leave_out(read, read.workload.gpus <= most), {"left_out": read.left_out}
        jobs, skipped = from_workload(read.workload, known, shape), read.skipped
    facts = [
        ("cluster", " + ".join(f"{n} {kind}" for kind, n in zip(shape.types, shape.count, strict=True))),
        ("rounds", f"{length:g} s"),
        *left_out,
    ]

    def run(policy: Maker, seed: int, progress: Step) -> Outcome:
        return simulate_rounds(jobs, shape, policy, length=length, seed=seed)

    return _setting(run, trace, jobs, facts, skipped, about, True)


def _setting(
    run: Any, trace: str, jobs: Any, facts: list[tuple[str, str]], skipped: Sequence[str], about: Any, random: bool
) -> Setting:
    head = ("trace", f"{trace}: {jobs.n_jobs} jobs of 1 to {jobs.gpus.max()} GPUs")
    more = [f"{len(skipped) - 5} more rows"] * (len(skipped) > 5)
    told = [("skipped", one) for one in (*skipped[:5], *more)]
    return Setting(run, [head, *facts, *told], {"skipped": len(skipped), **about}, random)


@dataclass
class Found:
    """Hold what was simulated: figures by policy of each seed, outcomes of the first."""

    figures: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    seeds: list[int] = field(default_factory=list)
    interrupted: bool = False


def play(setting: Setting, policies: dict[str, Maker], seeds: Sequence[int], progress: Step) -> Found:
    """Simulate every policy with every seed; with Ctrl-C return what is done, if anything is."""
    found, done, total = Found(), 0, len(policies) * len(seeds)
    row: dict[str, dict[str, Any]] = {}
    try:
        for seed in seeds:
            row = {}
            for label, policy in policies.items():

                def step(share: float, before: int = done) -> None:
                    progress((before + share) / total)

                outcome = _run(setting, label, policy, seed, step)
                row[label] = figures(outcome)
                if seed == seeds[0]:
                    found.outcomes[label] = outcome
                done += 1
                progress(done / total)
            found.seeds.append(seed)
            for label, one in row.items():
                found.figures.setdefault(label, []).append(one)
    except KeyboardInterrupt:
        if not done:
            raise
        found.interrupted = True
        if not found.seeds:  # those policies that were done, with the one seed
            found.seeds, found.figures = [seeds[0]], {label: [one] for label, one in row.items()}
    return found


def _run(setting: Setting, label: str, policy: Maker, seed: int, progress: Step) -> Outcome:
    try:
        return setting.run(policy, seed, progress)
    except InstanceError:
        raise
    except Exception as error:
        module = sys.modules.get(getattr(policy, "__module__", ""))
        if not hasattr(module, OURS):
            raise
        file = str(getattr(module, "__file__", ""))
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        where = f"{file}, line {lines[-1]}" if lines else file
        raise InstanceError("policy", f"{label}: {type(error).__name__}: {error} ({where})") from error


def figures(outcome: Outcome) -> dict[str, Any]:
    """Return the figures of a simulation; of rounds, also how many there were."""
    from gangplan.simulator.metrics import regret, summary
    from gangplan.simulator.rounds import RoundOutcome

    known = asdict(summary(outcome))
    if isinstance(outcome, RoundOutcome):
        return known | {
            "rounds": len(outcome.begins),
            "allocations": outcome.allocations,
            "leases": round(known["jobs"] * (1 + known["interruptions"])),
        }
    return known | {"regret": regret(outcome)}


def policies_of(names: Sequence[str], rounds: bool) -> dict[str, Maker]:
    """Return policies by their labels, in order: of files what makes them."""
    found: dict[str, Maker] = {}
    for name in names:
        if names.count(name) > 1:
            raise InstanceError("policy", f"{name!r} is given {names.count(name)} times")
        if ":" in name:
            found[name.rpartition(":")[2] if name not in found else name] = from_file(name, rounds)
        else:
            found[name] = name if rounds else _named(name)
    return found


def _named(name: str) -> Maker:
    from gangplan.simulator.engine import POLICIES

    if name in ONLINE:
        from gangplan.hybrid.online.engine_policy import SchedulerPolicy

        return partial(SchedulerPolicy, **ONLINE[name])
    if name not in POLICIES:
        names = ", ".join((*POLICIES, *ONLINE))
        raise InstanceError("policy", f"{name!r} is not one of {names}, nor FILE.py:Class")
    return name


def from_file(text: str, rounds: bool) -> Callable[..., Any]:
    """Return what makes the policy of ``FILE.py:Class``, which is made once to see whether it can decide."""
    name = text.rpartition(":")[2]
    try:
        maker: Callable[..., Any] = find_object(text)
        part = None if rounds else maker()
    except InstanceError as error:
        raise InstanceError("policy", error.problem) from None
    except Exception as error:
        raise InstanceError("policy", f"{name}() fails: {type(error).__name__}: {error}") from error
    if hasattr(part, "act"):
        from gangplan.simulator.picking import EnginePick

        return lambda: EnginePick(maker())
    if not rounds:
        _check_methods(part, name)
    return maker


def _check_methods(part: Any, name: str) -> None:
    """Raise if a policy has no method that the engine asks, or one that takes other arguments."""
    from gangplan.simulator.engine.policy import DECISIONS, EnginePolicy

    found = [decision for decision in DECISIONS if hasattr(part, decision)]
    if not found:
        raise InstanceError("policy", f"{name} has none of the methods {', '.join(DECISIONS)}")
    for decision in found:
        wanted = [x for x in inspect.signature(getattr(EnginePolicy, decision)).parameters if x != "self"]
        try:
            signature = inspect.signature(getattr(part, decision))
            signature.bind(*wanted)
        except (TypeError, ValueError) as error:
            raise InstanceError("policy", f"{name}.{decision} must take ({', '.join(wanted)}): {error}") from None


def check_effects(engine: Mapping[str, Any], policies: Mapping[str, Any], failures: bool) -> None:
    """Refuse an option of the engine that changes nothing for any of the policies.

    Args:
        engine: the options by name, None or their defaults where they are not given.
        policies: names, or what makes a policy, by label.
        failures: whether nodes fail.
    """
    parts = [(POLICIES[maker] if isinstance(maker, str) else maker)() for maker in policies.values()]
    stops = [bool(getattr(part, "preemptive", False) or engine["preemptive"]) for part in parts]
    own = "is decided by the policy itself"
    if engine["preemptive"] and all(hasattr(part, "preempt") for part in parts):
        raise InstanceError("preempt", own)
    if set(policies) == {"online"}:
        for name in ("discipline", "consolidate"):
            if engine[name] not in ("head", "easy", "conservative", False):
                raise InstanceError(name, own)
    degrees = engine["degrees"]
    if degrees and min(degrees) > 0 and not any(hasattr(part, "degree") for part in parts):
        raise InstanceError("degrees", "are chosen by none of the policies; optimus and online do")
    for name, given, needs, wanted in (
        ("overhead", engine["overhead"] != 0.1, degrees, "--degrees"),
        ("checkpoint_interval", engine["checkpoint_interval"] is not None, failures, "--mtbf and --mttr"),
        ("preempt_cost", engine["preempt_cost"] > 0, failures or any(stops), "a policy that stops jobs, or --mtbf"),
    ):
        if given and not needs:
            raise InstanceError(name, f"changes nothing without {wanted}")


def check_wanted(workload: Workload, engine: Mapping[str, Any], lasts: Mapping[str, float]) -> None:
    """Refuse an option about something that the trace does not have."""
    for name in lasts:
        if name not in workload.model:
            raise InstanceError("lasts", f"{name!r} is no application of the trace")
    for name, words in (("cpu", "cores"), ("memory", "memory")):
        if engine.get(name) is not None and not np.any(getattr(workload, name)):
            raise InstanceError(f"node_{name}", f"changes nothing: the trace says of no job what {words} it needs")
    if engine.get("per_queue") and len(set(workload.queue)) == 1:
        raise InstanceError("per_queue", "changes nothing: the jobs are all of one queue")
