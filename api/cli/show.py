"""`gangplan show`: what is in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances import OpGraph, RampTopology, TreeTopology, content_hash
from gangplan.instances.documents import from_document
from gangplan.instances.errors import in_file
from gangplan.instances.graph import grouped, heaviest_paths
from gangplan.instances.intake import parse_json, read_text
from gangplan.instances.kinds import objective_of
from gangplan.instances.placement import PlacementProblem
from gangplan.instances.quantities import quantity
from gangplan.instances.readers.models import LOADERS
from gangplan.instances.schedule import Capacity, NodePool, ScheduleProblem, total

from ..units import percent, time_unit, words
from . import options
from .output import Told, facts, table, tell

ROWS = 64
"""Jobs shown; of jobs over time the first that are released."""


def show(file: options.File, given: options.Given) -> Told:
    """Describe the problem, or the plan, in FILE."""
    plan = _plan(file)
    problem: Any = options.problem(file, given) if plan is None else None
    found = problem if plan is None else plan
    kind, _, holds = repr(found).partition("(")
    data = {"file": file, "type": kind, "objective": objective_of(found), "holds": holds[:-1]}
    data |= {"content_hash": content_hash(found), "instance": getattr(plan, "instance", None)}
    describe: dict[str, Any] = {"schedule": _jobs, "placement": _gangs}
    shown = describe.get(problem.objective, _graph) if plan is None else _plan_blocks
    return tell(data, lambda: shown(file, found))


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


def _plan_blocks(file: str, plan: Any) -> list[Any]:
    """Describe a plan without its problem: what it is in a line, then what its devices or stages begin with."""
    rows = [("file", file), ("holds", f"a plan: {repr(plan).partition('(')[2][:-1]}")]
    head = facts([*rows, ("instance", plan.instance or "not stated"), ("content", content_hash(plan))])
    objective = objective_of(plan)
    if objective in ("placement", "schedule"):
        return [head]
    if objective == "stages":
        from .report import stages_of

        return [head, stages_of(plan)]
    stage = getattr(plan, "stage", np.zeros_like(plan.device))
    pairs, count = np.unique(np.stack([stage, plan.device]), axis=1, return_counts=True)
    cells = [
        (f"{s}", f"{device}", f"{n}", plan.ops[int(np.argmax((stage == s) & (plan.device == device)))])
        for (s, device), n in zip(pairs.T.tolist(), count.tolist(), strict=True)
    ]
    staged = int(not hasattr(plan, "stage"))  # without stages that column goes
    names = ("stage", "device", "ops", "the first of them")
    return [head, table(names[staged:], [row[staged:] for row in cells], left=4)]


def _graph(file: str, problem: Any) -> list[Any]:
    graph, unit = problem.graph, time_unit(problem)
    backward = int(graph.backward.sum())
    classes, members = np.unique(graph.colocation[graph.colocation >= 0], return_counts=True)
    fastest = problem.time().min(axis=0)
    stuck = np.flatnonzero(~np.isfinite(fastest))
    fastest[stuck] = 0.0
    path = critical_path(graph, fastest)
    depth = critical_path(graph, np.ones(graph.n_ops))
    sent = f"of {quantity(float(graph.output_bytes().sum()), 'B')} in all"
    sent = sent if unit else f"take {problem.transfer().sum():.4g} in all to transfer"
    head = facts(
        [
            ("file", file),
            ("holds", f"a partition problem: {words(problem)}"),
            ("ops", f"{graph.n_ops}: {graph.n_ops - backward} forward, {backward} backward"),
            ("edges", f"{graph.n_edges}, outputs {sent}"),
            ("memory", quantity(float(graph.memory.sum()), "B")),
            ("parameters", quantity(float(graph.parameter_bytes.sum()), "B")),
            ("colocation", f"{len(classes)} classes of {members.sum()} ops" if len(classes) else "none"),
            ("critical path", f"{quantity(path, unit)} on the fastest devices; the longest chain has {depth:.0f} ops"),
            ("content", content_hash(problem)),
            *([] if unit else [("times", "in the unit of the file")]),
            *([("stuck", f"{len(stuck)} ops run on no device, first {graph.names[stuck[0]]}")] if len(stuck) else []),
        ]
    )
    return [head, _devices(problem, unit), _heaviest(problem, fastest, unit)]


def _devices(problem: Any, unit: str) -> Any:
    cluster, time = problem.cluster, problem.time()
    topology = cluster.topology
    levels = topology.levels if isinstance(topology, TreeTopology) else ()
    link = ", ".join(f"{x.name} {quantity(x.bandwidth, 'B')}/s" for x in levels) if unit else "as the file's costs"
    rows = []
    for i, (kind, count) in enumerate(zip(cluster.device_types, cluster.counts().tolist(), strict=True)):
        runs = np.isfinite(time[i])
        memory = quantity(float("inf") if kind.memory is None else kind.memory, "B")
        flops = "-" if kind.flops is None else f"{kind.flops / 1e12:.4g}"
        row = (f"{kind.name}{' (host)' if kind.host else ''}", f"{count}", f"{runs.sum()}")
        rows.append((*row, quantity(float(time[i][runs].sum()), unit), memory, flops, link or "optical mesh"))
    names = ("device type", "devices", "ops it runs", "they take", "memory each", "TFLOP/s", "link")
    return table(names, rows)


def _heaviest(problem: Any, fastest: Any, unit: str, count: int = 5) -> Any:
    graph = problem.graph
    total = max(float(fastest.sum()), 1e-300)
    rows = [
        (graph.names[i], quantity(float(fastest[i]), unit), f"{fastest[i] / total:.1%}", quantity(graph.memory[i], "B"))
        for i in np.argsort(-fastest, kind="stable")[:count].tolist()
    ]
    return table(("longest ops", "time", "of all", "memory"), rows)


def critical_path(graph: OpGraph, seconds: Any) -> float:
    """Return the length of the longest path through `graph` when op i takes `seconds[i]`."""
    before = grouped(zip(graph.target.tolist(), graph.source.tolist(), strict=True), graph.n_ops)
    return float(max(heaviest_paths(graph.topological_order().tolist(), before, seconds.tolist())[0]))


def _gangs(file: str, problem: PlacementProblem) -> list[Any]:
    fleet, jobs = problem.fleet, problem.jobs
    least = sum(job.gang * job.worker.gpu for job in jobs)
    usable = int(fleet.gpus[np.asarray(fleet.usable)].sum())
    share = f" at least, {percent(least / usable)} of {usable}" if usable else ", of none"
    levels = ", ".join(f"{level.name} {quantity(level.bandwidth, 'B')}/s" for level in fleet.topology.levels)
    head = facts(
        [
            ("file", file),
            ("holds", f"a batch of gangs: {problem.goal}"),
            ("jobs", f"{len(jobs)}, {len(problem.running)} of them running"),
            ("demand", f"{least:g} GPUs{share}"),
            ("nodes", f"{fleet.n_nodes} with {fleet.n_gpus} GPUs: {', '.join(fleet.gpu_types)}"),
            ("links", f"nodes {quantity(float(fleet.link.max()), 'B')}/s, {levels}"),
            ("content", content_hash(problem)),
        ]
    )
    sizes = [" or ".join(map(str, job.workers)) for job in jobs]
    rows = [
        (job.name, job.model, size, f"{job.worker.gpu:g}", job.collective, f"{job.weight:g}")
        for job, size in zip(jobs[:ROWS], sizes, strict=False)
    ]
    blocks: list[Any] = [head, table(("job", "model", "workers", "GPUs each", "collective", "weight"), rows, left=2)]
    return blocks + ([f"{len(jobs) - ROWS} more jobs are not shown"] if len(jobs) > ROWS else [])


def _capacity(capacity: Capacity) -> str:
    if isinstance(capacity, NodePool):
        return f"{capacity.nodes} nodes of {capacity.gpus} GPUs, jobs consolidated"
    if isinstance(capacity, RampTopology):
        sides = f"{capacity.communication_groups} x {capacity.racks} x {capacity.servers}"
        return f"blocks of a RAMP cluster of {sides} servers"
    return f"{total(capacity)} GPUs, counted"


def _jobs(file: str, problem: ScheduleProblem) -> list[Any]:
    jobs = problem.jobs
    work = sum(min(d * p for d, p in zip(job.degrees, job.durations, strict=True)) for job in jobs)
    due, released = sum(job.deadline is not None for job in jobs), [job.release for job in jobs]
    may = sum(problem.price(j) is not None for j in range(len(jobs)))
    head = facts(
        [
            ("file", file),
            ("holds", f"moldable jobs over time: {problem.goal}"),
            ("jobs", f"{len(jobs)}, {due} with a deadline, {may} that may be left out"),
            ("capacity", _capacity(problem.capacity)),
            ("released", f"from {quantity(min(released), 's')} to {quantity(max(released), 's')}"),
            ("least work", f"{quantity(work / total(problem.capacity), 's')} of all GPUs"),
            ("content", content_hash(problem)),
        ]
    )
    shown = sorted(jobs, key=lambda job: job.release)[:ROWS]
    rows = []
    for job in shown:
        times = (f"{x:.6g}" for x in (job.release, job.durations[0], job.durations[-1]))
        last = "-" if job.deadline is None else f"{job.deadline:.6g}"
        rows.append((job.name, " or ".join(map(str, job.degrees)), *times, f"{job.weight:g}", last))
    columns = ("job", "GPUs", "release, s", "longest, s", "shortest, s", "weight", "deadline, s")
    more = [f"{len(jobs) - ROWS} jobs released later are not shown"] if len(jobs) > ROWS else []
    return [head, table(columns, rows, left=2), *more]
