"""List scheduling step by step: jobs over time, and the ops of a graph on devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from gangplan.instances import InstanceError, OpGraph, StepPlan, StepProblem
from gangplan.instances.errors import unknown
from gangplan.instances.schedule import MoldableJob, ScheduleProblem
from gangplan.solvers import Run

from .step import Recorder, Step, begin

GIVEN = "given"


def list_scheduling(problem: ScheduleProblem | StepProblem, order: str | Sequence[str] = GIVEN) -> Iterator[Step]:
    """Yield a step for each job, or op, that list scheduling places.

    Of a `ScheduleProblem` these are those of the library's decoder: each job of the list in turn starts as early as it
    fits beside those before it, at the degree that costs least (Graham 1966 where all jobs have one GPU). Of a
    `StepProblem` they are those of HEFT (Topcuoglu, Hariri, Wu 2002): the op with the most work behind it goes where
    it ends first. A `LatencyProblem` has no list schedule, since a device runs all its ops in one call.

    Args:
        problem: the jobs, or the graph and its devices.
        order: of jobs: ``given``, as the problem has them, one of the orders of `solvers.schedule.classic.ORDERS`, or
            the names of all jobs. Ops have the order of HEFT.

    Raises:
        InstanceError: if the order is none, the problem of another kind, or there is no plan.
    """
    run, prepared = begin(problem, (ScheduleProblem, StepProblem), "list scheduling")
    if isinstance(problem, StepProblem):
        if order != GIVEN:
            raise InstanceError("order", f"{order!r} is for jobs: ops have the order of HEFT")
        return _ops(run, problem, prepared)
    return _jobs(run, problem, prepared, _order(problem, prepared, order))


def list_cost(problem: ScheduleProblem) -> Callable[[Sequence[str]], float]:
    """Return a function that says what the list schedule of an order costs, for searches over orders.

    The function takes the names of all jobs in an order and returns the objective of the last step of
    `list_scheduling`; inf if a job that must run is late.

    Raises:
        InstanceError: if the problem is of another kind, there is no plan, or an order does not name each job once.
    """
    from gangplan.solvers.schedule.decode import Decoder

    run, prepared = begin(problem, (ScheduleProblem,), "list scheduling")
    decoder = Decoder(prepared)

    def cost(order: Sequence[str]) -> float:
        return decoder.decode(_order(problem, prepared, list(order))) + run.zero

    return cost


def _order(problem: ScheduleProblem, prepared: Any, order: str | Sequence[str]) -> list[int]:
    from gangplan.solvers.schedule.classic import ORDERS, keys_of

    names = [job.name for job in problem.jobs]
    if isinstance(order, str):
        if order == GIVEN:
            return list(range(len(names)))
        if order not in ORDERS:
            raise InstanceError("order", unknown(order, [GIVEN, *ORDERS]))
        return [int(j) for j in np.argsort(keys_of(prepared, order, prepared.seconds), kind="stable")]
    place = {name: j for j, name in enumerate(names)}
    count_of = Counter(order)
    for name in dict.fromkeys([*order, *names]):
        if name not in place:
            raise InstanceError("order", f"{name!r} is no job of the problem")
        if count_of[name] != 1:
            raise InstanceError("order", f"{name!r} is there {count_of[name]} times, not once")
    return [place[name] for name in order]


def _jobs(run: Run, problem: ScheduleProblem, prepared: Any, order: list[int]) -> Iterator[Step]:
    from gangplan.solvers.schedule.decode import Decoder

    decoder, recorder, placed = Decoder(prepared), Recorder("List scheduling"), list[int]()
    words = ", ".join(problem.jobs[j].name for j in order)
    plan = prepared.plan(np.full(prepared.n, -1), np.zeros(prepared.n), decoder.made.rows[:, :0])
    yield recorder.step(f"The list is {words}; nothing is placed yet", _part(problem, placed), plan, run.bound)
    for cost in decoder.parts(order):
        j = order[len(placed)]
        placed.append(j)
        job, option, start = problem.jobs[j], int(decoder.made.option[j]), float(decoder.made.start[j])
        if cost == np.inf:
            words = f"{job.name} finds no time before its deadline: this list fails"
            yield recorder.step(words, problem, None, run.bound)
            return
        text = f"{job.name} is left out: that costs less than running it, or it would be late"
        if option >= 0:
            gpus, seconds, at = int(prepared.gpus[option]), float(prepared.seconds[option]), start + prepared.zero
            text = f"{job.name} takes {gpus} GPU{'s' * (gpus > 1)} for {seconds:g} s: it fits at {at:g}"
            text += f" and ends at {at + seconds:g}"
        inside = np.isin(np.arange(prepared.n), placed)
        options = np.where(inside, decoder.made.option, -1)
        plan = prepared.plan(options, decoder.made.start, decoder.made.rows[:, : decoder.used])
        yield recorder.step(text, _part(problem, placed), plan, run.bound)


def _part(problem: ScheduleProblem, placed: list[int]) -> ScheduleProblem:
    """Return the problem in which jobs that are not placed may be left out at no cost."""
    if len(placed) == len(problem.jobs):
        return problem

    def free(job: MoldableJob) -> MoldableJob:
        return replace(job, value=0.0, weight=0.0 if problem.goal == "throughput" else job.weight)

    return replace(problem, jobs=tuple(job if j in placed else free(job) for j, job in enumerate(problem.jobs)))


def _ops(run: Run, problem: StepProblem, prepared: Any) -> Iterator[Step]:
    from gangplan.solvers.partition.step.list_scheduler import ListState, build
    from gangplan.solvers.partition.step.settings import HEFT, prices_of
    from gangplan.solvers.partition.step.timing import Workroom, placed

    room, recorder, names = Workroom(prepared), Recorder("List scheduling (HEFT)"), problem.graph.names
    state, rank = ListState(room, prepared.arrays, prices_of(prepared.basis, HEFT)), np.asarray(prepared.arrays.rank)
    build(state, False)
    where = np.array(state.where)
    order = sorted(prepared.order.tolist(), key=rank.__getitem__, reverse=True)
    # what is placed does not move: each part of the plan is what was there at that time
    plan = placed(prepared, room, where.clip(min=0), np.array(order))
    seconds = problem.time()[problem.cluster.type_of[plan.device], np.arange(len(names))]
    first = ", ".join(f"{names[v]} ({rank[v]:.3g} s)" for v in order[:6]) + ", ..." * (len(order) > 6)
    yield recorder.step(f"Ops by the longest way to the end: {first}", problem, None, run.bound)
    for i, v in enumerate(order):
        if where[prepared.group_of[v]] < 0:
            yield recorder.step(f"No device has memory left for {names[v]}", problem, None, run.bound)
            return
        d, at = int(plan.device[v]), float(plan.start[v])
        kind = problem.cluster.device_types[problem.cluster.type_of[d]].name
        text = f"{names[v]} ends first on device {d} ({kind}): from {at:.4g} to {at + seconds[v]:.4g} s"
        inside = sorted(order[: i + 1])
        part = replace(problem, graph=_subgraph(problem.graph, inside)) if len(inside) < len(names) else problem
        yield recorder.step(text, part, _part_of(plan, problem.graph, inside), run.bound)


def _subgraph(graph: OpGraph, ops: list[int]) -> OpGraph:
    """Return the graph of some ops and the edges between them."""
    place = np.full(graph.n_ops, -1)
    place[ops] = range(len(ops))
    kept = (place[graph.source] >= 0) & (place[graph.target] >= 0)
    twin = np.where(graph.twin[ops] >= 0, place[graph.twin[ops]], -1)
    columns: dict[str, Any] = {f.name: getattr(graph, f.name)[ops] for f in fields(graph) if f.name in _OF_OPS}
    columns |= {"names": tuple(graph.names[v] for v in ops), "time": graph.time[:, ops], "twin": twin}
    columns |= {"source": place[graph.source[kept]], "target": place[graph.target[kept]]}
    return replace(graph, **columns, edge_bytes=graph.edge_bytes[kept])


_OF_OPS = ("memory", "parameter_bytes", "activation_bytes", "colocation", "backward")


def _part_of(plan: StepPlan, graph: OpGraph, ops: list[int]) -> StepPlan:
    """Return the plan of some ops; what is sent is sent between these."""
    place, inside = np.full(graph.n_ops, -1, dtype=np.int32), np.isin(graph.target, ops)
    place[ops] = range(len(ops))
    read = set(zip(graph.source[inside].tolist(), plan.device[graph.target[inside]].tolist(), strict=True))
    sent = [i for i, pair in enumerate(zip(plan.sent.tolist(), plan.receiver.tolist(), strict=True)) if pair in read]
    names = tuple(plan.ops[v] for v in ops)
    return StepPlan(
        names, plan.device[ops], plan.start[ops], place[plan.sent[sent]], plan.receiver[sent], plan.sent_at[sent]
    )
