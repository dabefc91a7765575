"""The front of the engine: arguments checked, the loop run, the schedule checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import BoolArray, FloatArray, require_choice, require_number
from gangplan.instances.placement import Fleet, SpeedModel
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload

from ..asking import asking
from ..check import assert_sound, check
from ..options import DegreeOptions
from ..outcome import Outcome
from ..trace.simulate import DISCIPLINES as PLAIN
from ..trace.simulate import ORDERS, by_queue
from ..trace.simulate import simulate as simulate_fast
from .failures import Outages
from .loop import Loop
from .policies import POLICIES, Classes
from .policies.orders import in_classes
from .policy import EngineScheduler
from .state import ClusterState
from .told import RESERVES, check_told, told_durations

_AMPLE = 1e15
"""Cores or bytes of a node where they are not counted."""
DISCIPLINE = "head (the first blocks), overtake (who fits starts), easy or conservative (backfill)"
_CONSOLIDATE = "jobs on as few nodes as hold them, or GPUs counted only"
_PREEMPT = "running jobs may be stopped  [default: as the policy would]"
_CHECKPOINT = "after a failure jobs resume from the last checkpoint  [default: from their last start]"
_DEGREES = "numbers of GPUs on offer to every job, for optimus: 1,2,4,8"


def simulate(
    workload: Workload,
    fleet: Fleet,
    scheduler: EngineScheduler,
    *,
    options: DegreeOptions | None = None,
    speeds: SpeedModel | Proximity | None = None,
    outages: Outages | None = None,
    preempt_cost: float = 0.0,
    checkpoint_interval: float | None = None,
    progress: Callable[[float], None] | None = None,
    told: FloatArray | None = None,
) -> Outcome:
    """Run `workload` on `fleet` as `scheduler` decides.

    Of one instant, jobs that are done leave first, then nodes come up, go down, and jobs arrive; then it decides.
    A policy that breaks its contract or leaves jobs waiting for good is an error.

    Args:
        fleet: the nodes. Cores and memory count if jobs name them.
        options: degrees of the jobs; by default each runs on the GPUs it asked for.
        speeds: of the models of the jobs: with it jobs slow one another down on nodes, GPUs and links, and run slower
            on slower GPUs, by the cost model of placement; a duration is then that of a job alone at its best. Or what
            gangs pay for being apart, with GPUs that are not shared. By default every job runs at rate 1, and jobs
            squeezed onto a GPU at the share of it that they have.
        outages: when nodes are down. Jobs there stop, and go on from their last checkpoints.
        preempt_cost: seconds that a job holds its GPUs without getting on whenever it runs again after it was stopped.
        checkpoint_interval: seconds between the checkpoints of a job since it last started; by default progress is
            saved only when it is stopped on purpose.
        progress: called now and then with the share of the jobs that are done.
        told: seconds that policies are told the jobs take, float64 (n,), none less than in truth; by default these.
    """
    loop = prepare(
        workload, fleet, scheduler, options, speeds, outages, preempt_cost, checkpoint_interval, progress, told
    )
    with asking():
        loop.run()
    return conclude(loop, options)


def prepare(
    workload: Workload,
    fleet: Fleet,
    scheduler: EngineScheduler,
    options: DegreeOptions | None = None,
    speeds: SpeedModel | Proximity | None = None,
    outages: Outages | None = None,
    preempt_cost: float = 0.0,
    checkpoint_interval: float | None = None,
    progress: Callable[[float], None] | None = None,
    told: FloatArray | None = None,
) -> Loop:
    """Return what is to be run, for those that go through its instants themselves; see `simulate`."""
    require_number(preempt_cost, "preempt_cost")
    require_number(checkpoint_interval, "checkpoint_interval", optional=True)
    interval = float("inf") if checkpoint_interval is None else float(checkpoint_interval)
    if not fleet.names:
        raise InstanceError("fleet", "has no node")
    if options is not None and options.n_jobs != workload.n_jobs:
        raise InstanceError("options", f"is of {options.n_jobs} jobs where there are {workload.n_jobs}")
    if not scheduler.shared and (np.asarray(workload.share) < 1).any():
        i = int(np.argmax(np.asarray(workload.share) < 1))
        raise InstanceError(f"share[{i}]", f"job {workload.names[i]} asks for a share, and GPUs are not shared")
    if scheduler.shared and isinstance(speeds, Proximity):
        raise InstanceError("speeds", "are of GPUs that are not shared, and the scheduler shares them")
    state = ClusterState(
        workload,
        fleet,
        DegreeOptions.rigid(workload) if options is None else options,
        speeds,
        shared=bool(scheduler.shared),
        consolidate=scheduler.consolidate,
        cost=float(preempt_cost),
        interval=interval,
        told=told,
    )
    if scheduler.part("degree") is None and scheduler.part("admit") is None:
        for job in np.flatnonzero(~_fitting(state))[:1].tolist():
            words = f"job {workload.names[job]} needs {workload.gpus[job]}, which the cluster never has for it"
            raise InstanceError(f"gpus[{job}]", words)
    return Loop(state, scheduler, outages or Outages(), progress)


def conclude(loop: Loop, options: DegreeOptions | None = None) -> Outcome:
    """Return what came of a loop that has been run to its end, checked; `options` as it was given to `prepare`."""
    state = loop.s
    down = np.array(loop.downs, dtype=np.float64).reshape(-1, 3)
    columns: dict[str, Any] = state.log.table()
    outcome = Outcome(
        workload=state.workload,
        room=np.where(np.asarray(state.fleet.usable), state.fleet.gpus, 0).astype(np.int32),
        start=state.started,
        finish=state.finish,
        **columns,
        down_node=down[:, 0].astype(np.int32),
        down_start=down[:, 1],
        down_end=down[:, 2],
        cost=state.cost,
        interval=state.interval,
        options=options,
        beside=np.stack([state.fleet.cpu, state.fleet.memory], axis=1),
    )
    assert_sound(check(outcome))
    return outcome


def _fitting(state: ClusterState) -> BoolArray:
    asked = np.column_stack([state.workload.gpus, np.asarray(state.workload.share), state.kind, state.unit])
    _, sample, alike = np.unique(asked, axis=0, return_index=True, return_inverse=True)
    fits = [state.find(job, int(state.workload.gpus[job])) is not None for job in sample.tolist()]
    return np.array(fits)[alike.ravel()]


@dataclass(frozen=True)
class Rules:
    """How `simulate_named` simulates; of each field the words of `gangplan simulate --help`, then its names there."""

    discipline: Annotated[Any, DISCIPLINE] = "head"
    estimates: Annotated[str, "of durations, told to policies: known, limits (what users asked for) or none"] = "known"
    priorities: Annotated[bool, "jobs of a higher priority first, then the order of the policy"] = False
    consolidate: Annotated[bool, _CONSOLIDATE, "--consolidate/--counted"] = False
    per_queue: Annotated[bool, "a cluster of that shape for each virtual cluster of the trace"] = False
    preemptive: Annotated[bool | None, _PREEMPT, "--preempt/--no-preempt"] = None
    preempt_cost: Annotated[float, "lost whenever a stopped job runs again", "SECONDS"] = 0.0
    checkpoint_interval: Annotated[float | None, _CHECKPOINT, "SECONDS"] = None
    degrees: Annotated[Sequence[int] | None, _DEGREES, "N,N"] = None
    overhead: Annotated[float, "c, if d GPUs take (1 + c (d - 1)) / d times as long as one", "RATIO"] = 0.1
    cpu: Annotated[float | None, "cores of a node  [default: not counted]", "--node-cpu", "CORES"] = None
    memory: Annotated[float | None, "of a node  [default: not counted]", "--node-memory", "BYTES"] = None

    def __post_init__(self) -> None:
        for field in ("cpu", "memory"):
            require_number(getattr(self, field), field, optional=True)
        if self.per_queue and self.degrees:
            raise InstanceError("per_queue", "does not go with degrees")


def fitting(workload: Workload, nodes: int, gpus: int, rules: Rules) -> BoolArray:
    """Return which jobs would fit if they were alone, bool (n,); see `simulate_named`."""
    least = np.minimum(workload.gpus, min(rules.degrees)) if rules.degrees else workload.gpus
    fits: BoolArray = least <= nodes * gpus
    if rules.degrees or (rules.cpu is None and rules.memory is None) or not fits.any():
        return fits
    jobs, consolidate = workload.take(np.flatnonzero(fits)), rules.consolidate
    shared = bool((np.asarray(jobs.share) < 1).any())
    rigid, fleet = DegreeOptions.rigid(jobs), _fleet(nodes, gpus, rules)
    fits[fits] = _fitting(
        ClusterState(jobs, fleet, rigid, None, shared=shared, consolidate=consolidate, cost=0.0, interval=np.inf)
    )
    return fits


def _fleet(nodes: int, gpus: int, rules: Rules, racks: int = 1) -> Fleet:
    """Return equal nodes; what is not counted they have enough of."""
    cpu, memory = (_AMPLE if x is None else x for x in (rules.cpu, rules.memory))
    return Fleet.regular(racks, nodes, gpus, cpu=cpu, memory=memory)


def simulate_named(
    workload: Workload,
    nodes: int,
    gpus: int,
    policy: str | Callable[[], Any] = "fifo",
    *,
    shared: bool | None = None,
    outages: Outages | None = None,
    racks: int | None = None,
    progress: Callable[[float], None] | None = None,
    **rules: Any,
) -> Outcome:
    """Run `workload` on equal nodes by a policy's name.

    Args:
        nodes: how many, of each rack if there are racks.
        policy: a name of `POLICIES`, or what makes a policy.
        shared: whether GPUs may be shared; by default if the policy or the trace would have it.
        racks: how many; gangs that are apart are slower then, as `Proximity` has it, and policies that choose no GPUs
            place them on the closest. By default places are alike.
        rules: fields of `Rules`.
    """
    how = Rules(**rules)
    discipline, consolidate, estimates = how.discipline, how.consolidate, how.estimates
    require_number(racks, "racks", positive=True, whole=True, optional=True)
    if racks and consolidate:
        raise InstanceError("consolidate", "does not go with racks: jobs get the closest GPUs there")
    if racks and discipline not in ("head", "overtake"):
        raise InstanceError("discipline", f"{discipline!r} does not go with racks: head and overtake do")
    if isinstance(policy, str):
        require_choice(policy, "policy", POLICIES)
    for field, value in (("nodes", nodes), ("gpus", gpus)):
        require_number(value, field, positive=True, whole=True)
    check_told(policy, discipline, estimates)
    if how.priorities and policy == "optimus":
        raise InstanceError("priorities", "are not known to optimus, which shares all GPUs out by itself")
    shares = bool((np.asarray(workload.share) < 1).any())
    shared = shared if shared is not None else True if shares else None
    plain = (
        isinstance(policy, str)
        and policy in ORDERS
        and discipline in PLAIN
        and not (how.preemptive or shared or outages or how.degrees or racks)
    )
    if plain and how.cpu is None and how.memory is None and not (discipline in RESERVES and estimates == "limits"):
        name = str(policy)

        def run(jobs: Workload) -> Outcome:
            order, seconds = None, told_durations(jobs, estimates)
            if how.priorities or seconds is not None:
                order = ORDERS[name](jobs if seconds is None else replace(jobs, duration=seconds))
                order = in_classes(np.asarray(jobs.priority), order) if how.priorities else order
            return simulate_fast(
                jobs, nodes, gpus, policy=name, discipline=discipline, consolidate=consolidate, order=order
            )
    else:
        make = POLICIES[policy] if isinstance(policy, str) else policy
        fleet, near = _fleet(nodes, gpus, how, racks or 1), Proximity() if racks else None

        def run(jobs: Workload) -> Outcome:
            from ..gangs.allocate import Close

            decides: Any = make()
            parts: tuple[Any, ...] = (decides, Close()) if racks and not hasattr(decides, "place") else (decides,)
            parts = (Classes(decides), *parts) if how.priorities and not getattr(decides, "classes", False) else parts
            scheduler = EngineScheduler(parts, discipline, consolidate, how.preemptive, shared)
            if racks and scheduler.shared:
                raise InstanceError("policy", f"{policy!r} shares GPUs, and racks do not go with that")
            return simulate(
                jobs,
                fleet,
                scheduler,
                speeds=near,
                options=DegreeOptions.scaling(jobs, how.degrees, how.overhead) if how.degrees else None,
                outages=outages,
                preempt_cost=how.preempt_cost,
                checkpoint_interval=how.checkpoint_interval,
                progress=progress,
                told=told_durations(jobs, estimates),
            )

    return by_queue(workload, run) if how.per_queue else run(workload)
