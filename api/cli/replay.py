"""`gangplan replay`: how full online policies get a cluster, on a published list of pods."""

from __future__ import annotations

from typing import Annotated, Any

from gangplan.instances.readers.openb import read_nodes, read_pods
from gangplan.simulator.replay import ceilings, misfits
from gangplan.simulator.replay import replay as run_replay
from gangplan.solvers.placement.online import TASK_POLICIES

from ..units import plus_minus
from . import options
from .output import Told, progress, table, tell

DEFAULT = ("random", "dot_prod", "gpu_clustering", "gpu_packing", "best_fit", "fgd", "stranding")
_POLICY = f"one of {', '.join(TASK_POLICIES)}; may be repeated  [default: seven of them]"


def replay(
    nodes: Annotated[str, "node list of Alibaba's OpenB, .csv", "NODES"],
    pods: Annotated[str, "pod list of Alibaba's OpenB, .csv", "PODS"],
    policy: Annotated[list[str] | None, _POLICY] = None,
    seeds: Annotated[int, "samples of the pods", (1, 10_000)] = 10,
    first_seed: options.FirstSeed = 0,
    load: Annotated[float, "what arrives, as a share of the cluster's GPUs", "RATIO"] = 1.3,
    workers: Annotated[int, "processes"] = 1,
    ceiling: Annotated[bool, "also bound what any policy could get allocated"] = False,
    skip_bad: Annotated[bool, "leave out rows that are wrong, and count them"] = False,
) -> Told:
    """Let PODS arrive one by one on NODES and stay, then samples of them, and report the GPUs allocated.

    The protocol is that of Weng et al. (USENIX ATC 2023). All policies see the same samples.
    """
    options.require_positive(load=load)
    drawn = range(first_seed, first_seed + seeds)
    fleet, listed = read_nodes(nodes, skip_bad=skip_bad), read_pods(pods, skip_bad=skip_bad)
    marks = (1.0, load) if load > 1 else (load,)
    lost = misfits(fleet, listed.tasks)
    with progress("replaying") as bar:
        how: dict[str, Any] = {"seeds": drawn, "marks": marks, "workers": workers}
        found = run_replay(fleet, listed.tasks, policy or DEFAULT, **how, progress=bar)
    most = ceilings(fleet, listed.tasks, seeds=drawn, load=load) if ceiling else None
    about: dict[str, Any] = {"nodes": fleet.n_nodes, "gpus": fleet.n_gpus, "pods": len(listed.tasks)}
    about |= {"skipped": listed.skipped, "misfits": {listed.names[i]: why for i, why in lost.items()}}
    about |= {} if most is None else {"ceiling": most.tolist()}
    about["policies"], rows = [], []
    for one in found:
        arrays = ((name, getattr(one, name)) for name in ("mean", "margin", "ratio", "dropped", "seconds"))
        known: dict[str, Any] = {name: None if values is None else values.tolist() for name, values in arrays}
        about["policies"].append({"policy": one.policy, "marks": list(one.marks), **known})
        means = zip(known["mean"], known["margin"] or [None] * len(marks), strict=True)
        ratios = (plus_minus(100 * mean, x and 100 * x) for mean, x in means)
        rows.append((one.policy, *ratios, f"{one.dropped.mean():.1%}", f"{one.seconds.mean():.2f}"))
    lines = [f"{fleet.n_gpus} GPUs on {fleet.n_nodes} nodes, {len(listed.tasks)} pods listed, {seeds} seeds"]
    lines += [f"{listed.skipped} rows of the pods are wrong and left out"] * (listed.skipped > 0)
    for i, why in [*lost.items()][:1]:
        never = "of the pods fit no node even when it is empty and are dropped whenever they come"
        lines.append(f"{len(lost)} {never}; the first is {listed.names[i]}: {why}")
    if most is not None:
        share = f"{most.mean():.2%} allocated at {load:.0%}"
        lines.append(f"no policy gets more than {share}, on average of these samples")
    columns = ("policy", *(f"allocated at {mark:.0%}" for mark in marks), "dropped", "seconds")
    return tell(about, "\n".join(lines), table(columns, rows))
