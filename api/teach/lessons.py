"""Tiny instances whose optimum is argued by hand, one for each objective and for what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gangplan.instances import Cluster, DeviceType, InstanceError, OpGraph
from gangplan.instances.generators import generate
from gangplan.instances.layout import GpuPool, LayoutProblem, Link, MeasuredLayers
from gangplan.instances.partition import LatencyProblem, PartitionProblem, StagesProblem, StepProblem
from gangplan.instances.placement import Fleet, GangJob, PlacementProblem, SpeedModel
from gangplan.instances.schedule import MoldableJob, NodePool, Pool, ScheduleProblem


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """An instance that can be solved by hand.

    Attributes:
        problem: the instance.
        optimum: its least objective, in the unit of the problem.
        why: the argument that no plan is better and one is as good, in a few sentences.
    """

    problem: Any
    optimum: float
    why: str


def two_jobs() -> Lesson:
    """Return two jobs on two GPUs that cannot run together: the order is Smith's (1956)."""
    jobs = (MoldableJob("long", (2,), (4.0,), weight=2.0), MoldableJob("short", (2,), (1.0,), weight=1.0))
    why = (
        "Each job needs both GPUs, so one waits for the other. Short first costs 1 + 2 (1 + 4) = 11, long first "
        "2 * 4 + (4 + 1) = 13. Smith's rule says so: seconds a weight are 1 of the short job and 2 of the long one."
    )
    return Lesson(ScheduleProblem(jobs, Pool(2)), 11.0, why)


def graham(m: int = 3) -> Lesson:
    """Return Graham's worst case of list scheduling (1966): in the order given, 2 - 1/m times the optimum.

    Args:
        m: GPUs, 2 or more.

    Raises:
        InstanceError: if `m` is less than 2.
    """
    if not isinstance(m, int) or m < 2:
        raise InstanceError("m", f"{m!r} is not a whole number of 2 or more")
    jobs = [MoldableJob(f"short{i}", (1,), (1.0,)) for i in range(m * (m - 1))]
    jobs.append(MoldableJob("long", (1,), (float(m),)))
    why = (
        f"The long job takes {m} s, so no schedule is shorter. It is done by then if it starts at once on one GPU and "
        f"the {m * (m - 1)} short jobs fill the other {m - 1}. In the order given the short jobs fill all GPUs up to "
        f"{m - 1} s and the long one ends at {2 * m - 1} s, which is 2 - 1/{m} times as late."
    )
    return Lesson(ScheduleProblem(tuple(jobs), Pool(m), "makespan"), float(m), why)


def moldable() -> Lesson:
    """Return two moldable jobs on four GPUs: the degree at which each is fastest is not best for both."""
    times = (8.0, 4.5, 3.0)
    jobs = tuple(MoldableJob(name, (1, 2, 4), times) for name in ("a", "b"))
    why = (
        "With all four GPUs a job takes 3 s, so both one after the other take 6 s. Side by side, with two GPUs each, "
        "both end at 4.5 s. A job that ends before 4.5 s has four GPUs for 3 s, and the other has to wait for it."
    )
    return Lesson(ScheduleProblem(jobs, NodePool(1, 4), "makespan"), 4.5, why)


def greedy_trap() -> Lesson:
    """Return six gangs that fill two nodes of eight GPUs; first fit, the largest first, has to split the last one."""
    fleet = Fleet.regular(racks=1, nodes=2, gpus=8, nic=1e9)
    one, none = np.ones((1, 1)), np.zeros((1, 1))
    speeds = SpeedModel(("net",), ("A100",), one, np.array([2e9]), np.ones(1), none, none)
    jobs = tuple(GangJob(f"gang{i}", "net", (size,)) for i, size in enumerate((4, 3, 3, 2, 2, 2)))
    why = (
        "No gang is faster than on one node, so each slowdown is 1 or more, and six gangs cost 6 at least. Sizes 4, 2, "
        "2 fill one node and 3, 3, 2 the other: 6 it is. First fit puts 4 and 3 on the first node and 3, 2, 2 on the "
        "second; the last gang of two gets one GPU on each, where it takes twice as long: 7."
    )
    return Lesson(PlacementProblem(fleet, jobs, speeds), 6.0, why)


def symmetric() -> Lesson:
    """Return seven equal ops on three equal devices: thousands of plans that are one."""
    why = (
        "Some device has three of the seven ops, since 7 / 3 is more than 2: 3 s. Three, two and two ops do it. Of the "
        "3^7 = 2187 assignments 1050 are best, and up to names these are two: 3, 2, 2 and 3, 3, 1."
    )
    return Lesson(PartitionProblem(_graph([1.0] * 7), _gpus(3), "free"), 3.0, why)


def lp_gap() -> Lesson:
    """Return three equal ops on two devices: the linear programme halves one, and nobody can."""
    why = (
        "Three ops of 1 s on two devices: one device has two of them, which is 2 s, and the other one. The linear "
        "programme puts half of each op on each device and says 1.5 s: a quarter of the optimum is missing."
    )
    return Lesson(PartitionProblem(_graph([1.0] * 3), _gpus(2), "free"), 2.0, why)


def one_call() -> Lesson:
    """Return a chain of three ops for the objective latency: an accelerator runs all its ops in one call."""
    cluster = Cluster.flat((DeviceType("gpu"), 1), (DeviceType("cpu", host=True), 1), bandwidth=1.0)
    graph = _graph([[1.0, 9.0, 1.0], [5.0, 1.0, 5.0]], [(0, 1, 1.0), (1, 2, 1.0)], ("gpu", "cpu"))
    why = (
        "The first and the last op want the GPU, the one between them the CPU. But the GPU has one call, which would "
        "wait for its own result. So only one of the two is on the GPU: 1 s, a transfer of 1 s, then 1 + 5 s on the "
        "CPU, 8 s in all. With the middle op on the GPU it is 9 s or more, and all on the CPU take 11 s."
    )
    return Lesson(LatencyProblem(graph, cluster), 8.0, why)


def fork() -> Lesson:
    """Return a fork of two ops for the objective step: a second device is worth its transfers, or not."""
    graph = _graph([1.0, 4.0, 4.0, 1.0], [(0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)])
    why = (
        "On one device all is done at 1 + 4 + 4 + 1 = 10 s, and both branches on one device take 1 + 8 + 1 s or more. "
        "On different devices one branch gets its input by a transfer and ends at 1 + 1 + 4 = 6 s or later; the last "
        "op ends at 7 s. That is reached where the late branch is: the result of the other one is there at 6 s too."
    )
    return Lesson(StepProblem(graph, _gpus(2)), 7.0, why)


def replicas() -> Lesson:
    """Return a short and a long op on three devices for the objective stages: the long one is replicated."""
    graph = _graph([2.0, 4.0], [(0, 1, 0.0)])
    why = (
        "All work is 6 s, and three devices share it: 2 s a sample at best. The first op alone on a device takes 2 s; "
        "the second, on the other two in turn, 4 / 2 = 2 s. Without replicas the second op alone takes 4 s."
    )
    return Lesson(StagesProblem(graph, _gpus(3)), 2.0, why)


def zero_bubble() -> Lesson:
    """Return two micro-batches through two devices: gradients of weights fill the time in which one would be idle."""
    why = (
        "The last device starts when the first has run a forward pass, at 1 s, and is busy for 6 s. So no step is "
        "shorter than 7 s, and one of 7 s leaves its gradients of weights to the end. Together with backward passes, "
        "the first device would wait for them up to the end, which is at 9 s."
    )
    return Lesson(generate("micro_batches", devices=2, micro_batches=2, memory=2), 7.0, why)


def too_large() -> Lesson:
    """Return a model of two blocks that fits on no GPU whole: replicas would be faster than stages."""
    one, two, none = [[1.0, 1.0]], [[2.0, 2.0]], [[0.0, 0.0]]
    sizes: Any = {"gpu": ("gpu",), "micro_batch": [1], "tensor": [1], "forward": one, "backward": two, "update": none}
    model = MeasuredLayers("two", ("a", "b"), **sizes, weights=[[1e9, 1e9]], kept=none, sent=none)  # type: ignore[arg-type]
    pool = GpuPool("gpu", 2, memory=20e9, memory_bandwidth=1e12, flops=1e12, levels=(Link(2),))
    why = (
        "A replica of both blocks has 12 GB of weights and gradients on its GPU and half of the optimizer's 24 GB, 4 "
        "GB too much; else it would take 2 * 6 = 12 s. A block alone needs 18 GB. In two stages four micro-batches "
        "take 3 s each on the slower one, and the first of them 3 s on the other: 15 s."
    )
    return Lesson(LayoutProblem(model, (pool,), 4, 1, reserve=0.0), 15.0, why)


_ALL = (two_jobs, graham, moldable, greedy_trap, symmetric, lp_gap, one_call, fork, replicas, zero_bubble, too_large)
LESSONS: Mapping[str, Callable[[], Lesson]] = {lesson.__name__: lesson for lesson in _ALL}
"""All of them by name."""


def _gpus(count: int) -> Cluster:
    return Cluster.flat((DeviceType("gpu"), count), bandwidth=1.0)


def _graph(times: Any, edges: Sequence[tuple[int, int, float]] = (), types: tuple[str, ...] = ("gpu",)) -> OpGraph:
    """Return a graph with ops ``a``, ``b``, ...: seconds by type and op, edges (from, to, bytes)."""
    time = np.atleast_2d(np.array(times, dtype=float))
    n = time.shape[1]
    zero, names = np.zeros(n), tuple("abcdefghijklmnopqrstuvwxyz"[:n])
    ends = np.array([edge[:2] for edge in edges], dtype=np.int32).reshape(-1, 2)
    size = np.array([edge[2] for edge in edges])
    return OpGraph(names, types, time, zero, zero, zero, ends[:, 0], ends[:, 1], size)
