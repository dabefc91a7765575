"""Policies compared on a cluster that fills with tasks that never leave: the protocol of Weng et al. (ATC 2023)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import product
from multiprocessing import get_context

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require_number
from gangplan.instances.placement.fleet import Fleet
from gangplan.instances.placement.job import Task
from gangplan.solvers.placement.online import FreeState, TaskMix, make_policy
from gangplan.solvers.placement.online.policy import TaskPolicy
from gangplan.solvers.placement.online.state import GPU, need

from .asking import asking
from .ceiling import ceiling
from .metrics.compare import half_width

MARKS = (1.0, 1.3)


@dataclass(frozen=True, slots=True, eq=False)
class Saturation:
    """How full a cluster got.

    Attributes:
        marks: requested GPUs as shares of the cluster's, ascending.
        ratio: allocated GPUs as a share of the cluster's when so much has arrived, float64 (len(marks),).
        dropped: those that fitted nowhere.
    """

    marks: tuple[float, ...]
    ratio: FloatArray
    arrived: int
    dropped: int
    seconds: float
    state: FreeState


def arrivals(tasks: Sequence[Task], capacity: int, load: float, seed: int) -> list[Task]:
    """Return tasks of a list in random order, then samples, until they request `load` times `capacity`, in 1/`GPU`."""
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
    policy: TaskPolicy,
    *,
    seed: int = 0,
    marks: tuple[float, ...] = MARKS,
    progress: Callable[[float], None] | None = None,
) -> Saturation:
    """Let tasks of a list arrive one by one at an empty cluster, and place each, or drop it for good; see `arrivals`.

    The nodes of the cluster are put in random order, as the authors' simulator names them anew: of nodes that are
    equally good policies take the first, and in the order of a published list those are nodes of one kind.

    Args:
        policy: places them. It sees the cluster and one task at a time.
        seed: of the order of the nodes and of the tasks that arrive, which are the same for all policies.
        marks: shares of the cluster's GPUs; how much is allocated is noted when so much has been requested, and the
            last ends the replay.
        progress: called now and then with the share of the replay that is done.
    """
    for i, mark in enumerate(marks):
        require_number(mark, f"marks[{i}]", positive=True)
        if i and mark <= marks[i - 1]:
            raise InstanceError(f"marks[{i}]", f"{mark!r} does not ascend")
    started = time.perf_counter()
    order = np.random.default_rng((seed, 1)).permutation(fleet.n_nodes).tolist()
    state = FreeState(fleet.at(order), kinds=getattr(policy, "kinds", False))
    if not state.capacity:
        raise InstanceError("fleet", "no usable node has a GPU")
    drawn = arrivals(tasks, state.capacity, marks[-1], seed)
    ratio: list[float] = []
    requested = dropped = 0
    for i, task in enumerate(drawn):
        requested += need(task).gpu
        with asking():
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


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """How full one policy got a cluster, over seeds.

    Attributes:
        marks: requested GPUs as shares of the cluster's.
        ratio: allocated GPUs as a share of the cluster's at each mark, float64 (seeds, len(marks)).
        dropped: tasks that fitted nowhere, of all that arrived, float64 (seeds,).
    """

    policy: str
    marks: tuple[float, ...]
    ratio: FloatArray
    dropped: FloatArray
    seconds: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Return the mean ratio at each mark, float64 (len(marks),)."""
        return np.asarray(self.ratio.mean(axis=0))

    @property
    def margin(self) -> FloatArray | None:
        """Return half the width of the 95% interval of the mean at each mark, by Student's t; None with one seed."""
        return half_width(self.ratio)


def replay(
    fleet: Fleet,
    tasks: Sequence[Task],
    policies: Sequence[str],
    *,
    seeds: Sequence[int] = range(10),
    marks: tuple[float, ...] = MARKS,
    workers: int = 1,
    progress: Callable[[float], None] | None = None,
) -> list[Replay]:
    """Replay every policy on the same samples; see `saturate`.

    Args:
        tasks: the list; each policy that wants to know what to expect is given its mix.
        policies: names of `gangplan.solvers.placement.online.TASK_POLICIES`.
        marks: shares of the cluster's GPUs at which the ratio is noted.
    """
    require_number(len(policies), "policies", positive=True)
    require_number(len(seeds), "seeds", positive=True)
    require_number(workers, "workers", positive=True, whole=True)
    mix = TaskMix.of(tasks)
    for name in policies:
        make_policy(name, mix)
    one, rows = partial(_one, fleet, tuple(tasks), mix, marks), list[list[float]]()
    cases = list(product(policies, seeds))
    # threads of the caller, of a solver or a progress bar, must not be forked
    many = nullcontext() if workers == 1 else ProcessPoolExecutor(min(workers, len(cases)), get_context("spawn"))
    with many as pool:
        for row in (map if pool is None else pool.map)(one, *zip(*cases, strict=True)):
            rows.append(row)
            if progress is not None:
                progress(len(rows) / len(cases))
    found = np.array(rows).reshape(len(policies), len(seeds), -1)
    return [
        Replay(name, marks, row[:, : len(marks)], row[:, -2], row[:, -1])
        for name, row in zip(policies, found, strict=True)
    ]


def ceilings(
    fleet: Fleet, tasks: Sequence[Task], *, seeds: Sequence[int] = range(10), load: float = MARKS[-1]
) -> FloatArray:
    """Return what no policy exceeds at `load` on the sample of each seed, float64 (len(seeds),); see `ceiling`."""
    capacity = FreeState(fleet).capacity
    drawn = (arrivals(tasks, capacity, load, seed) for seed in seeds)
    return np.array([ceiling(sample, capacity // GPU) for sample in drawn])


def misfits(fleet: Fleet, tasks: Sequence[Task]) -> dict[int, str]:
    """Return the positions of the tasks that fit no node even when it is empty, and why, in words."""
    state = FreeState(fleet)
    nodes = np.unique(state.slot_of[state.slot_of >= 0])
    held = {fleet.gpu_types[i] for i in np.unique(fleet.gpu_type[fleet.gpus > 0]).tolist()}
    found: dict[int, str] = {}
    known: dict[Task, str] = {}
    for i, task in enumerate(tasks):
        if task not in known:
            strange = task.demand.grants and task.gpu_types and not held & {*task.gpu_types}
            words = f"no node has a GPU of type {' or '.join(task.gpu_types)}" if strange else "no node has so much"
            known[task] = "" if state.fits(need(task), nodes).any() else words
        if known[task]:
            found[i] = known[task]
    return found


def _one(
    fleet: Fleet, tasks: tuple[Task, ...], mix: TaskMix, marks: tuple[float, ...], name: str, seed: int
) -> list[float]:
    done = saturate(fleet, tasks, make_policy(name, mix, seed), seed=seed, marks=marks)
    return [*done.ratio.tolist(), done.dropped / done.arrived, done.seconds]
