"""`gangplan show`: what is in a file."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances import OpGraph, RampTopology, TreeTopology, content_hash
from gangplan.instances.documents import from_document
from gangplan.instances.errors import in_file
from gangplan.instances.graph import grouped, heaviest_paths
from gangplan.instances.intake import parse_json, read_text
from gangplan.instances.kinds import objective_of
from gangplan.instances.pipeline import PipelineProblem
from gangplan.instances.placement import PlacementProblem
from gangplan.instances.quantities import quantity
from gangplan.instances.readers.models import LOADERS
from gangplan.instances.schedule import NodePool, ScheduleProblem, total

from ..units import in_unit, percent, time_unit, words
from . import options
from .output import Told, facts, table, table_of, tell
from .report import ranges

ROWS = 64
"""Jobs shown; of jobs over time the first that are released."""


Shown = tuple[str, list[tuple[str, str]], list[Any]]
"""What a file holds, facts about it, and tables."""


def show(file: options.File, given: options.Given) -> Told:
    """Describe the problem, or the plan, in FILE."""
    plan = _plan(file)
    found: Any = options.problem(file, given) if plan is None else plan
    describe: dict[str, Any] = {"schedule": _jobs, "placement": _gangs, "layout": _layout, "pipeline": _passes}
    kind, _, holds = repr(found).partition("(")
    data = {"file": file, "type": kind, "objective": objective_of(found), "holds": holds[:-1]}
    data |= {"content_hash": content_hash(found), "instance": getattr(plan, "instance", None)}

    def blocks() -> list[Any]:
        holds, rows, tables = _of_plan(plan) if plan else describe.get(found.objective, _graph)(found)
        return [facts([("file", file), ("holds", holds), *rows, ("content", content_hash(found))]), *tables]

    return tell(data, blocks)


def _plan(file: str) -> Any:
    """Return the plan in `file`, None if it is something else, right or wrong."""
    # a pipe can be read once only: it is taken for a problem, as a model is
    text = read_text(file) if Path(file).is_file() and Path(file).suffix.lower() not in LOADERS else ""
    if '_plan"' not in text:
        return None
    with in_file(file):
        data = parse_json(text)
        kind = data.get("kind") if isinstance(data, dict) else None
        return from_document(data) if isinstance(kind, str) and kind.endswith("_plan") else None


def _of_plan(plan: Any) -> Shown:
    """Describe a plan without its problem: what it is in a line, then what its devices or stages begin with."""
    objective, blocks = objective_of(plan), []
    if objective == "stages":
        every = range(len(plan.degree))
        columns = {
            "stage": [f"{s}" for s in every],
            "devices": [ranges(np.flatnonzero(plan.serves == s).tolist()) for s in every],
            "the first of its ops": [plan.ops[int(np.argmax(plan.stage == s))] for s in every],
            "ops": [f"{(plan.stage == s).sum()}" for s in every],
            "share ops": [f"{degree}" for degree in plan.degree],
        }
        blocks = [table_of(columns, left=3)]
    elif objective == "layout":
        chunks = [", ".join(map(str, x)) for x in plan.blocks.reshape(plan.virtual, -1).T.tolist()]
        rows = [*zip(plan.pool.tolist(), plan.tensor.tolist(), chunks, plan.selective, plan.full, strict=True)]
        runs = groupby(range(len(rows)), rows.__getitem__)
        heads = ("stages", "pool", "share layers", "blocks of each chunk", "norms again", "all again")
        blocks = [table(heads, [[ranges(same), *map(str, row)] for row, same in runs])]
    elif objective not in ("placement", "schedule", "pipeline"):
        stage = getattr(plan, "stage", np.zeros_like(plan.device))
        pairs, count = np.unique(np.stack([stage, plan.device]), axis=1, return_counts=True)
        firsts = [int(np.argmax((stage == s) & (plan.device == d))) for s, d in pairs.T.tolist()]
        columns = {
            "stage": [f"{s}" for s in pairs[0]] * hasattr(plan, "stage"),
            "device": [f"{d}" for d in pairs[1]],
            "ops": [f"{n}" for n in count],
            "the first of them": [plan.ops[i] for i in firsts],
        }
        blocks = [table_of(columns, left=4)]
    return f"a plan: {repr(plan).partition('(')[2][:-1]}", [("instance", plan.instance or "not stated")], blocks


def _layout(problem: Any) -> Shown:
    model = problem.model
    rows = [
        ("model", f"{model.name}, {len(model.chain())} blocks"),
        ("parameters", f"{model.parameters / 1e9:.4g}B" if hasattr(model, "parameters") else ""),
        ("batch", f"{problem.batch} x {problem.sequence} tokens, {problem.precision}, {problem.optimizer}"),
    ]
    pools = {
        "GPU": [pool.gpu for pool in problem.pools],
        "GPUs": [f"{pool.count}" for pool in problem.pools],
        "memory each": [quantity(pool.memory, "B") for pool in problem.pools],
        "TFLOP/s": [f"{pool.flops / 1e12:.4g}" for pool in problem.pools],
        "links": [", ".join(f"{x.span}: {quantity(x.bandwidth, 'B')}/s" for x in p.levels) for p in problem.pools],
    }
    return "the layout of a model's training", rows, [table_of(pools)]


def _graph(problem: Any) -> Shown:
    graph, unit, time = problem.graph, time_unit(problem), problem.time()
    backward = int(graph.backward.sum())
    classes, members = np.unique(graph.colocation[graph.colocation >= 0], return_counts=True)
    fastest = time.min(axis=0)
    stuck = np.flatnonzero(~np.isfinite(fastest))
    fastest[stuck] = 0.0
    path, depth = critical_path(graph, fastest), critical_path(graph, np.ones(graph.n_ops))
    sent = f"of {quantity(float(graph.output_bytes().sum()), 'B')} in all"
    sent = sent if unit else f"take {problem.transfer().sum():.4g} in all to transfer"
    rows = [
        ("ops", f"{graph.n_ops}: {graph.n_ops - backward} forward, {backward} backward"),
        ("edges", f"{graph.n_edges}, outputs {sent}"),
        ("memory", quantity(float(graph.memory.sum()), "B")),
        ("parameters", quantity(float(graph.parameter_bytes.sum()), "B")),
        ("colocation", f"{len(classes)} classes of {members.sum()} ops" if len(classes) else "none"),
        ("critical path", f"{quantity(path, unit)} on the fastest devices; the longest chain has {depth:.0f} ops"),
        ("times", "" if unit else "in the unit of the file"),
        ("stuck", f"{len(stuck)} ops run on no device, first {graph.names[stuck[0]]}" if len(stuck) else ""),
    ]
    cluster = problem.cluster
    kinds, runs = cluster.device_types, np.isfinite(time)
    levels = cluster.topology.levels if isinstance(cluster.topology, TreeTopology) else ()
    link = ", ".join(f"{x.name} {quantity(x.bandwidth, 'B')}/s" for x in levels) if unit else "as the file's costs"
    devices = {
        "device type": [f"{x.name}{' (host)' if x.host else ''}" for x in kinds],
        "devices": [f"{count}" for count in cluster.counts()],
        "ops it runs": [f"{x.sum()}" for x in runs],
        "they take": [quantity(float(x[y].sum()), unit) for x, y in zip(time, runs, strict=True)],
        "memory each": [quantity(float("inf") if x.memory is None else x.memory, "B") for x in kinds],
        "TFLOP/s": ["-" if x.flops is None else f"{x.flops / 1e12:.4g}" for x in kinds],
        "link": [link or "optical mesh"] * len(kinds),
    }
    longest, total = np.argsort(-fastest, kind="stable")[:5].tolist(), max(float(fastest.sum()), 1e-300)
    ops = {
        "longest ops": [graph.names[i] for i in longest],
        "time": [quantity(float(fastest[i]), unit) for i in longest],
        "of all": [f"{fastest[i] / total:.1%}" for i in longest],
        "memory": [quantity(graph.memory[i], "B") for i in longest],
    }
    return f"a partition problem: {words(problem)}", rows, [table_of(devices), table_of(ops)]


def critical_path(graph: OpGraph, seconds: Any) -> float:
    """Return the length of the longest path through `graph` when op i takes `seconds[i]`."""
    before = grouped(zip(graph.target.tolist(), graph.source.tolist(), strict=True), graph.n_ops)
    return float(max(heaviest_paths(graph.topological_order().tolist(), before, seconds.tolist())[0]))


def _gangs(problem: PlacementProblem) -> Shown:
    fleet, jobs = problem.fleet, problem.jobs
    least = sum(job.gang * job.worker.gpu for job in jobs)
    usable = int(fleet.gpus[np.asarray(fleet.usable)].sum())
    share = f" at least, {percent(least / usable)} of {usable}" if usable else ", of none"
    levels = ", ".join(f"{level.name} {quantity(level.bandwidth, 'B')}/s" for level in fleet.topology.levels)
    rows = [
        ("jobs", f"{len(jobs)}, {len(problem.running)} of them running"),
        ("demand", f"{least:g} GPUs{share}"),
        ("nodes", f"{fleet.n_nodes} with {fleet.n_gpus} GPUs: {', '.join(fleet.gpu_types)}"),
        ("links", f"nodes {quantity(float(fleet.link.max()), 'B')}/s, {levels}"),
    ]
    lines = [
        (x.name, x.model, " or ".join(map(str, x.workers)), f"{x.worker.gpu:g}", x.collective, f"{x.weight:g}")
        for x in jobs[:ROWS]
    ]
    heads = ("job", "model", "workers", "GPUs each", "collective", "weight")
    more = f"{len(jobs) - ROWS} more jobs are not shown" * (len(jobs) > ROWS)
    return f"a batch of gangs: {problem.goal}", rows, [table(heads, lines, left=2), more]


def _passes(problem: PipelineProblem) -> Shown:
    rows = [
        ("step", f"{problem.micro_batches} micro-batches" + ", a barrier behind it" * problem.barrier),
        ("weights", "their gradients may wait" if problem.split else "their gradients are part of backward passes"),
        ("busy", f"{quantity(float(problem.load().max()), 's')} the busiest device, of any order"),
    ]
    room = [quantity(x, problem.unit) for x in problem.capacity.tolist()] or ["unlimited"] * problem.devices
    times = {"forward": problem.forward, "backward": problem.backward, "weights": problem.weight}
    columns = {
        "stage": [f"{s}" for s in range(problem.stages)],
        "device": [f"{d}" for d in problem.device],
        **in_unit({**times, "transfer": problem.transfer}, "s", max(float(x.max()) for x in times.values())),
        **in_unit({"holds": problem.activation, "keeps": problem.kept}, problem.unit, float(problem.activation.max())),
        "room": [room[d] for d in problem.device],
    }
    return f"a pipeline: {problem.words}", rows, [table_of(columns, left=2)]


def _jobs(problem: ScheduleProblem) -> Shown:
    jobs, capacity = problem.jobs, problem.capacity
    work = sum(min(d * p for d, p in zip(job.degrees, job.durations, strict=True)) for job in jobs)
    due, released = sum(job.deadline is not None for job in jobs), [job.release for job in jobs]
    may = sum(problem.price(j) is not None for j in range(len(jobs)))
    holds = f"{total(capacity)} GPUs, counted"
    if isinstance(capacity, NodePool):
        holds = f"{capacity.nodes} nodes of {capacity.gpus} GPUs, jobs consolidated"
    elif isinstance(capacity, RampTopology):
        sides = f"{capacity.communication_groups} x {capacity.racks} x {capacity.servers}"
        holds = f"blocks of a RAMP cluster of {sides} servers"
    rows = [
        ("jobs", f"{len(jobs)}, {due} with a deadline, {may} that may be left out"),
        ("capacity", holds),
        ("released", f"from {quantity(min(released), 's')} to {quantity(max(released), 's')}"),
        ("least work", f"{quantity(work / total(capacity), 's')} of all GPUs"),
    ]
    lines = []
    for job in sorted(jobs, key=lambda job: job.release)[:ROWS]:
        times = (f"{x:.6g}" for x in (job.release, job.durations[0], job.durations[-1]))
        last = "-" if job.deadline is None else f"{job.deadline:.6g}"
        lines.append((job.name, " or ".join(map(str, job.degrees)), *times, f"{job.weight:g}", last))
    heads = ("job", "GPUs", "release, s", "longest, s", "shortest, s", "weight", "deadline, s")
    more = f"{len(jobs) - ROWS} jobs released later are not shown" * (len(jobs) > ROWS)
    return f"moldable jobs over time: {problem.goal}", rows, [table(heads, lines, left=2), more]
