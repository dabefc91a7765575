"""Fill a cluster with tasks that never leave: the protocol of Weng et al. (ATC 2023) for GPU allocation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require_number
from gangplan.instances.placement.fleet import Fleet
from gangplan.instances.placement.task import Task
from gangplan.solvers.placement.online.policy import Policy
from gangplan.solvers.placement.online.state import State
from gangplan.solvers.placement.online.units import need

from .held import Held

MARKS = (1.0, 1.3)


@dataclass(frozen=True, slots=True, eq=False)
class Saturation:
    """How full a cluster got.

    Attributes:
        marks: requested GPUs as shares of the cluster's, ascending.
        ratio: allocated GPUs as a share of the cluster's when so much has arrived, float64 (len(marks),).
        arrived: tasks that came.
        dropped: those that fitted nowhere.
        seconds: of the whole replay.
        state: the cluster at the end.
    """

    marks: tuple[float, ...]
    ratio: FloatArray
    arrived: int
    dropped: int
    seconds: float
    state: State


def arrivals(tasks: Sequence[Task], capacity: int, load: float, seed: int) -> list[Task]:
    """Return the tasks of a list in random order, and then samples of it, until they request `load` times `capacity`.

    Args:
        tasks: the list.
        capacity: GPUs of the cluster, in units of 1/`units.GPU`.
        load: a share of the capacity.
        seed: of order and samples.

    Raises:
        InstanceError: if no task of the list asks for a GPU.
    """
    if not any(task.demand.gpu for task in tasks):
        raise InstanceError("tasks", "no task asks for a GPU")
    rng = np.random.default_rng(seed)
    drawn: list[Task] = []
    requested = 0
    batch = rng.permutation(len(tasks))
    while requested < load * capacity:
        for i in batch.tolist():
            drawn.append(tasks[i])
            requested += need(tasks[i]).gpu
            if requested >= load * capacity:
                break
        batch = rng.integers(len(tasks), size=1024)
    return drawn


def saturate(
    fleet: Fleet,
    tasks: Sequence[Task],
    policy: Policy,
    *,
    seed: int = 0,
    marks: tuple[float, ...] = MARKS,
    progress: Callable[[float], None] | None = None,
) -> Saturation:
    """Let tasks of a list arrive one by one at an empty cluster, and place each, or drop it for good; see `arrivals`.

    The nodes of the cluster are put in random order, as the authors' simulator names them anew: of nodes that are
    equally good policies take the first, and in the order of a published list those are nodes of one kind.

    Args:
        fleet: the cluster.
        tasks: the list.
        policy: places them. It sees the cluster and one task at a time.
        seed: of the order of the nodes and of the tasks that arrive, which are the same for all policies.
        marks: shares of the cluster's GPUs; how much is allocated is noted when so much has been requested, and the
            last ends the replay.
        progress: called now and then with the share of the replay that is done.

    Raises:
        InstanceError: if an argument is wrong.
    """
    for i, mark in enumerate(marks):
        require_number(mark, f"marks[{i}]", positive=True)
        if i and mark <= marks[i - 1]:
            raise InstanceError(f"marks[{i}]", f"{mark!r} does not ascend")
    started = time.perf_counter()
    order = np.random.default_rng((seed, 1)).permutation(fleet.n_nodes).tolist()
    state = State(fleet.at(order), kinds=getattr(policy, "kinds", False))
    if not state.capacity:
        raise InstanceError("fleet", "no usable node has a GPU")
    drawn = arrivals(tasks, state.capacity, marks[-1], seed)
    ratio: list[float] = []
    requested = dropped = 0
    held = Held()
    for i, task in enumerate(drawn):
        requested += need(task).gpu
        with held:
            choice = policy.choose(state, task)
        if choice is None:
            dropped += 1
        else:
            state.add(choice[0], task, choice[1])
        while len(ratio) < len(marks) and requested >= marks[len(ratio)] * state.capacity:
            ratio.append(state.allocated / state.capacity)
        if progress is not None and i % 256 == 0:
            progress(i / len(drawn))
    return Saturation(marks, np.array(ratio), len(drawn), dropped, time.perf_counter() - started, state)
