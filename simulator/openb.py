"""Policies compared on one list of tasks: many seeds of `saturate`, in processes, with mean and interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import sqrt
from multiprocessing import get_context

import numpy as np

from gangplan.instances.arrays import FloatArray, require_number
from gangplan.instances.placement.fleet import Fleet
from gangplan.instances.placement.task import Task
from gangplan.solvers.placement.online import Mix, State, make_policy
from gangplan.solvers.placement.online.units import GPU, need

from .ceiling import ceiling
from .saturate import MARKS, arrivals, saturate

STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131)
STUDENT_BEYOND = (2.131, 2.0)
"""97.5% quantiles of Student's t for 1 to 15 degrees of freedom; beyond, on the safe side, those of 15 and of 60."""


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """How full one policy got a cluster, over seeds.

    Attributes:
        policy: its name.
        marks: requested GPUs as shares of the cluster's.
        ratio: allocated GPUs as a share of the cluster's at each mark, float64 (seeds, len(marks)).
        dropped: tasks that fitted nowhere, of all that arrived, float64 (seeds,).
        seconds: of each replay, float64 (seeds,).
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
        n = len(self.ratio)
        if n < 2:
            return None
        t = STUDENT[n - 2] if n - 2 < len(STUDENT) else STUDENT_BEYOND[n > 60]
        return np.asarray(t * self.ratio.std(axis=0, ddof=1) / sqrt(n))


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
        fleet: the cluster.
        tasks: the list; each policy that wants to know what to expect is given its mix.
        policies: names of `gangplan.solvers.placement.online.POLICIES`.
        seeds: one sample each.
        marks: shares of the cluster's GPUs at which the ratio is noted.
        workers: processes.
        progress: called with the share of the replays that are done.

    Raises:
        InstanceError: if an argument is wrong.
    """
    require_number(len(policies), "policies", positive=True)
    require_number(len(seeds), "seeds", positive=True)
    require_number(workers, "workers", positive=True, whole=True)
    mix = Mix.of(tasks)
    for name in policies:
        make_policy(name, mix)
    one = partial(_one, fleet, tuple(tasks), mix, marks)
    cases = list(product(range(len(policies)), range(len(seeds))))
    found = np.zeros((len(policies), len(seeds), len(marks) + 2))

    def note(done: int) -> None:
        if progress is not None:
            progress(done / len(cases))

    if workers == 1:
        for done, (i, j) in enumerate(cases, start=1):
            found[i, j] = one(policies[i], seeds[j])
            note(done)
    else:
        # threads of the caller, of a solver or a progress bar, must not be forked
        with ProcessPoolExecutor(min(workers, len(cases)), mp_context=get_context("spawn")) as pool:
            futures = {pool.submit(one, policies[i], seeds[j]): (i, j) for i, j in cases}
            for done, future in enumerate(as_completed(futures), start=1):
                found[futures[future]] = future.result()
                note(done)
    return [
        Replay(name, marks, row[:, : len(marks)], row[:, -2], row[:, -1])
        for name, row in zip(policies, found, strict=True)
    ]


def ceilings(
    fleet: Fleet, tasks: Sequence[Task], *, seeds: Sequence[int] = range(10), load: float = MARKS[-1]
) -> FloatArray:
    """Return what no policy exceeds at `load` on the sample of each seed, float64 (len(seeds),); see `ceiling`."""
    capacity = State(fleet).capacity
    drawn = (arrivals(tasks, capacity, load, seed) for seed in seeds)
    return np.array([ceiling(sample, capacity // GPU) for sample in drawn])


def misfits(fleet: Fleet, tasks: Sequence[Task]) -> dict[int, str]:
    """Return the positions of the tasks that fit no node even when it is empty, and why, in words."""
    state = State(fleet)
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
    fleet: Fleet, tasks: tuple[Task, ...], mix: Mix, marks: tuple[float, ...], name: str, seed: int
) -> list[float]:
    done = saturate(fleet, tasks, make_policy(name, mix, seed), seed=seed, marks=marks)
    return [*done.ratio.tolist(), done.dropped / done.arrived, done.seconds]
