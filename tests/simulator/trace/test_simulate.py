"""Traces on a cluster: against published figures, a plain simulator, and laws that hold for every schedule."""

from __future__ import annotations

from bisect import insort
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.workload import Workload
from gangplan.simulator.metrics import summary
from gangplan.simulator.trace import DISCIPLINES, ORDERS, DegreeOptions, check, simulate


def work(*jobs: tuple[float, int, float]) -> Workload:
    """Build a workload of (submit, GPUs, duration)."""
    submit, gpus, duration = zip(*jobs, strict=True)
    return Workload(tuple(map(str, range(len(jobs)))), np.array(submit, float), list(gpus), np.array(duration, float))


def random_work(seed: int, jobs: int = 40, most: int = 12) -> Workload:
    """Make jobs that often tie, queue and block one another."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most + 1, jobs)
    return work(*zip(rng.integers(0, 60, jobs), sizes.tolist(), rng.integers(0, 20, jobs), strict=True))


class Plain:
    """The same rules, written to be read: lists, no cleverness."""

    def __init__(self, workload: Workload, nodes: int, gpus: int, consolidate: bool) -> None:
        self.w, self.gpus, self.consolidate = workload, gpus, consolidate
        self.free = [gpus] * nodes if consolidate else [nodes * gpus]

    def place(self, need: int, free: list[int]) -> list[tuple[int, int]] | None:
        """Return (node, GPUs) pairs, None if it does not fit."""
        if not self.consolidate:
            return [(0, need)] if free[0] >= need else None
        if need <= self.gpus:
            fit = [(f, n) for n, f in enumerate(free) if f >= need]
            return [(min(fit)[1], need)] if fit else None
        empty = [n for n, f in enumerate(free) if f == self.gpus][: -(-need // self.gpus)]
        if len(empty) * self.gpus < need:
            return None
        return [(n, min(self.gpus, need - i * self.gpus)) for i, n in enumerate(empty)]

    def run(self, policy: str, discipline: str) -> list[float]:
        """Return the start of each job."""
        w = self.w
        key = [(k, s, i) for i, (k, s) in enumerate(zip(ORDERS[policy](w).tolist(), w.submit.tolist(), strict=True))]
        todo = sorted(range(w.n_jobs), key=lambda j: (w.submit[j], j))
        queue: list[Any] = []
        running: list[tuple[float, int, list[tuple[int, int]]]] = []
        start = [np.inf] * w.n_jobs
        while todo or running:
            now = min([*(w.submit[j] for j in todo[:1]), *(end for end, _, _ in running[:1])])
            while running and running[0][0] == now:
                for n, k in running.pop(0)[2]:
                    self.free[n] += k
            while todo and w.submit[todo[0]] == now:
                insort(queue, key[todo.pop(0)])
            reserved: Any = None
            left = []
            for entry in queue:
                j = entry[2]
                spot = self.place(int(w.gpus[j]), self.free)
                if reserved and (
                    discipline == "head" or not spot or not self.spares(spot, now + w.duration[j], reserved)
                ):
                    spot = None
                if spot is None:
                    left.append(entry)
                    if reserved is None and discipline != "overtake":
                        reserved = self.reserve(int(w.gpus[j]), running)
                    continue
                for n, k in spot:
                    self.free[n] -= k
                    if reserved and now + w.duration[j] > reserved[0]:
                        reserved[1][n] -= k
                start[j] = now
                insort(running, (now + w.duration[j], j, spot))
            queue = left
        return start

    def reserve(self, need: int, running: list[Any]) -> tuple[float, list[int], int]:
        """Return when `need` GPUs fit if nothing else starts, what is free then, and `need`."""
        free = list(self.free)
        ends = sorted({end for end, _, _ in running})
        for end in ends:
            for done, _, spot in running:
                if done == end:
                    for n, k in spot:
                        free[n] += k
            if self.place(need, free):
                return end, free, need
        raise AssertionError("a job that fits an empty cluster fits in the end")

    def spares(self, spot: list[tuple[int, int]], end: float, reserved: tuple[float, list[int], int]) -> bool:
        """Return whether the reservation stands if `spot` is held until `end`."""
        shadow, free, need = reserved
        if end <= shadow:
            return True
        then = list(free)
        for n, k in spot:
            then[n] -= k
        return min(then) >= 0 and self.place(need, then) is not None


@pytest.mark.parametrize("consolidate", [False, True])
@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("policy", ["fifo", "sjf"])
def test_against_plain(policy: str, discipline: str, consolidate: bool) -> None:
    """Every start is that of the plain simulator, ties and blocked queues included."""
    for seed in range(30):
        workload = random_work(seed)
        found = simulate(workload, 3, 4, policy=policy, discipline=discipline, consolidate=consolidate)
        wanted = Plain(workload, 3, 4, consolidate).run(policy, discipline)
        assert found.start.tolist() == wanted, seed
    workload = random_work(31, jobs=300, most=40)  # more sizes than GPUs of a node, more nodes than a word has bits
    found = simulate(workload, 70, 6, policy=policy, discipline=discipline, consolidate=consolidate)
    assert found.start.tolist() == Plain(workload, 70, 6, consolidate).run(policy, discipline)


# ../shared/data/README.md, "Simulator cross-check": from independent simulators
@pytest.mark.parametrize(
    ("file", "cluster", "discipline", "consolidate", "mean_jct", "makespan"),
    [
        ("crosscheck/philly_ee9e8c_1000.csv", (20, 8), "head", False, 322384.017, 5927208),
        ("crosscheck/philly_ee9e8c_1000.csv", (20, 8), "overtake", False, 235388.852, 5648108),
        ("crosscheck/philly_ee9e8c_1000.csv", (20, 8), "head", True, 339850.756, 5970714),
        ("tiresias/60_job.csv", (4, 4), "head", False, 200.8167, 3335),
        ("tiresias/60_job.csv", (4, 4), "overtake", False, 190.6833, 3271),
    ],
)
def test_cross_check(
    data: Path,
    file: str,
    cluster: tuple[int, int],
    discipline: str,
    consolidate: bool,
    mean_jct: float,
    makespan: float,
) -> None:
    """The figures of independent simulators, to every digit they give."""
    workload = read_trace(data / file).workload
    found = summary(simulate(workload, *cluster, discipline=discipline, consolidate=consolidate))
    assert round(found.mean_jct, 3 if mean_jct > 1e3 else 4) == mean_jct
    assert found.makespan == makespan


def test_head_blocks_and_others_overtake() -> None:
    """Two GPUs: b (2) waits for a (1) and blocks c (1), which overtakes if it may, and backfills if it is short."""
    jobs = work((0, 1, 10), (1, 2, 5), (2, 1, 9))
    assert simulate(jobs, 1, 2).start.tolist() == [0, 10, 15]
    assert simulate(jobs, 1, 2, discipline="overtake").start.tolist() == [0, 11, 2]
    assert simulate(jobs, 1, 2, discipline="easy").start.tolist() == [0, 10, 15]
    short = work((0, 1, 10), (1, 2, 5), (2, 1, 8))
    assert simulate(short, 1, 2, discipline="easy").start.tolist() == [0, 10, 2]


def test_ends_come_before_arrivals() -> None:
    """A job that arrives when another ends finds its GPUs free."""
    assert simulate(work((0, 2, 5), (5, 2, 1)), 1, 2).start.tolist() == [0, 5]


def test_consolidation_takes_the_fullest_node() -> None:
    """With 3 and 1 GPUs free, a job of 1 goes to the second node; of 5 GPUs, it takes two whole nodes."""
    found = simulate(work((0, 1, 9), (0, 3, 9), (1, 1, 5), (2, 5, 5)), 2, 4, consolidate=True)
    rows = sorted(zip(found.row_job.tolist(), found.row_node.tolist(), found.row_gpus.tolist(), strict=True))
    assert rows == [(0, 0, 1), (1, 0, 3), (2, 1, 1), (3, 0, 4), (3, 1, 1)]
    assert found.start.tolist() == [0, 0, 1, 9]


@pytest.mark.parametrize("seed", range(20))
def test_laws(seed: int) -> None:
    """No GPU is held twice, Little's law holds to the digit, and starting the clock elsewhere changes nothing."""
    workload = random_work(seed, jobs=60)
    found = simulate(workload, 4, 3, policy="sjf", discipline="overtake", consolidate=True)
    assert check(found) == []
    # Little's law over the whole run: the area under the number of jobs present is the sum of their stays
    time = np.concatenate([workload.submit, found.finish])
    order = np.argsort(time)
    present = np.cumsum(np.concatenate([np.ones(60), -np.ones(60)])[order])
    area = float((present[:-1] * np.diff(time[order])).sum())
    assert area == pytest.approx(60 * summary(found).mean_jct)
    later = replace(workload, submit=workload.submit + 1e6)
    assert simulate(later, 4, 3, policy="sjf", discipline="overtake", consolidate=True).start.tolist() == [
        s + 1e6 for s in found.start.tolist()
    ]


def test_check_on_a_late_clock() -> None:
    """At Unix times too a job that runs for half a second less than its second is told."""
    good = simulate(work((1.7e9, 1, 1.0), (1.7e9, 1, 1.0)), 1, 1)
    assert check(good) == []
    short = good.finish - 0.5
    assert check(replace(good, finish=short, row_end=short))[0] == "job 0 does not run for its duration"


def test_check_finds_faults() -> None:
    """Schedules that cannot be are told apart from those that can."""
    good = simulate(work((0, 4, 5), (1, 4, 5)), 1, 4, consolidate=True)
    assert check(good) == []

    def moved(start: list[float], finish: list[float]) -> list[str]:
        first, last = np.array(start), np.array(finish)
        return check(replace(good, start=first, row_start=first, finish=last, row_end=last))

    assert moved([-1.0, 5.0], [4.0, 10.0]) == ["job 0 starts before it is submitted"]
    assert moved([0.0, 1.0], [5.0, 6.0]) == ["node 0 holds 8 GPUs at 1 s, it has 4"]
    assert moved([0.0, 5.0], [5.0, 11.0]) == ["job 1 does not run for its duration"]
    assert moved([0.0, 5.0], [5.0, 4.0]) == ["job 1 ends before it starts"]
    one = np.ones(2)
    assert check(replace(good, row_gpus=np.array([4, 3]))) == ["job 1 holds 3 GPUs, it needs 4"]
    assert check(replace(good, row_rate=one / 2))[0] == "job 0 does not run for its duration"
    assert check(replace(good, row_share=2 * one))[0] == "job 0 holds no share of a GPU"
    assert check(replace(good, row_node=np.array([0, 1])))[0] == "job 1 is on a node beyond the 1 there are"
    assert check(replace(good, row_node=np.array([0, -1]))) == ["some rows name a node and others do not"]
    assert check(replace(good, row_gpu=np.array([0, 4])))[0] == "job 1 holds a GPU that its node does not have"
    assert check(replace(good, finish=good.finish + 1))[0] == "job 0 does not end when it is said to"
    assert check(replace(good, start=good.start + 1))[0] == "job 0 does not start when it is said to"
    assert check(replace(good, finish=np.full(2, np.inf)))[0].startswith("job 0 ran though it was rejected")
    down = {"down_node": np.array([0]), "down_start": np.array([2.0]), "down_end": np.array([3.0])}
    assert check(replace(good, **down)) == ["job 0 runs on node 0 while it is down from 2 s on"]
    assert check(replace(good, options=DegreeOptions([0, 1, 2], [4, 2], [5.0, 9.0]))) == [
        "job 1 holds a number of GPUs that is none of its options"
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"policy": "lifo"}, "policy: 'lifo' is not one of fifo, sjf"),
        ({"discipline": "none"}, "discipline: 'none' is not one of head, overtake, easy"),
        ({"nodes": 0}, "nodes: 0 is not positive"),
        ({"gpus": 2}, r"gpus\[1\]: job 1 needs 3, the cluster has 2"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], words: str) -> None:
    """A wrong argument is named with its value; a job that never fits too."""
    with pytest.raises(InstanceError, match=words):
        simulate(**{"workload": work((0, 1, 1), (0, 3, 1)), "nodes": 1, "gpus": 4} | arguments)
