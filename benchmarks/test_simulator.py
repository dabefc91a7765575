"""Time the simulators: the fast one against a plain event loop in the same run, the engine by policy, and memory."""

from __future__ import annotations

import heapq
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances.generators.jobs import arrivals
from gangplan.instances.placement import Fleet
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import POLICIES, EngineScheduler, simulate, simulate_named
from gangplan.simulator.trace import simulate as simulate_fast

pytest.importorskip("pytest_benchmark")
JOBS, NODES, GPUS = 1_000_000, 200, 8
FAST, ENGINE, PHILLY, MEMORY = 50_000, 5_000, 20.0, 2e9
"""Jobs a second, jobs a second, seconds and bytes that are the least, or the most, accepted."""
TRACE = Path(__file__).parents[2] / "shared" / "data" / "philly" / "philly.csv.gz"


def million(jobs: int = JOBS) -> Workload:
    """Return jobs of 1 to 8 GPUs that keep the cluster 95% busy."""
    mean = (1 * 4 + 2 * 2 + 4 + 8) / 8
    rate = 0.95 * NODES * GPUS / (mean * 600.0)
    return arrivals(jobs, rate=rate, gpus="1:4,2:2,4:1,8:1", duration="lognormal", mean=600.0, spread=1.0)


def plain_fifo(jobs: Workload) -> list[float]:
    """Return the start of each job, first in first out on counted GPUs: what one writes without a simulator."""
    submit, gpus, duration = jobs.submit.tolist(), jobs.gpus.tolist(), jobs.duration.tolist()
    start = [0.0] * len(submit)
    queue: deque[int] = deque()
    running: list[tuple[float, int]] = []
    nxt, free = 0, NODES * GPUS
    while nxt < len(submit) or running:
        now = min(submit[nxt] if nxt < len(submit) else np.inf, running[0][0] if running else np.inf)
        while running and running[0][0] <= now:
            free += gpus[heapq.heappop(running)[1]]
        while nxt < len(submit) and submit[nxt] <= now:
            queue.append(nxt)
            nxt += 1
        while queue and gpus[queue[0]] <= free:
            job = queue.popleft()
            free -= gpus[job]
            start[job] = now
            heapq.heappush(running, (now + duration[job], job))
    return start


def plain_nodes(jobs: Workload) -> list[float]:
    """Return the same for jobs no larger than a node, each on the node with the fewest free GPUs that fits."""
    submit, gpus, duration = jobs.submit.tolist(), jobs.gpus.tolist(), jobs.duration.tolist()
    start = [0.0] * len(submit)
    queue: deque[int] = deque()
    running: list[tuple[float, int, int]] = []
    nxt, free = 0, [GPUS] * NODES
    while nxt < len(submit) or running:
        now = min(submit[nxt] if nxt < len(submit) else np.inf, running[0][0] if running else np.inf)
        while running and running[0][0] <= now:
            _, job, node = heapq.heappop(running)
            free[node] += gpus[job]
        while nxt < len(submit) and submit[nxt] <= now:
            queue.append(nxt)
            nxt += 1
        while queue:
            need = gpus[queue[0]]
            _, node = min(((f, n) for n, f in enumerate(free) if f >= need), default=(0, -1))
            if node < 0:
                break
            job = queue.popleft()
            free[node] -= need
            start[job] = now
            heapq.heappush(running, (now + duration[job], job, node))
    return start


def spent(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least processor seconds of three calls, and what the last one returned."""
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        found = run()
        seconds.append(time.process_time() - begin)
    return min(seconds), found


@pytest.mark.parametrize("consolidate", [False, True], ids=["counted", "consolidated"])
def test_million_jobs(benchmark: Any, record_property: Callable[[str, object], None], consolidate: bool) -> None:
    """FIFO of a million jobs, check included, does the jobs a second asked; the plain loop has the same starts."""
    jobs = million()
    simulate_fast(million(1000), NODES, GPUS, consolidate=consolidate)
    benchmark.pedantic(lambda: simulate_fast(jobs, NODES, GPUS, consolidate=consolidate), rounds=1)
    fast, done = spent(lambda: simulate_fast(jobs, NODES, GPUS, consolidate=consolidate))
    slow, plain = spent(lambda: (plain_nodes if consolidate else plain_fifo)(jobs))
    assert done.start.tolist() == plain
    speed = {"jobs_a_second": JOBS / fast, "plain": JOBS / slow, "ratio": slow / fast}
    benchmark.extra_info.update(speed)
    words = "{jobs_a_second:,.0f} jobs/s, plain Python {plain:,.0f}: {ratio:.1f} times".format(**speed)
    record_property("ratio", f"{'consolidated' if consolidate else 'counted':<12} {words}")
    assert JOBS / fast >= FAST


def test_memory() -> None:
    """A process that makes and simulates a million jobs stays below the limit."""
    program = (
        "import resource, sys; from benchmarks.test_simulator import *; simulate_fast(million(), NODES, GPUS);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    )
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    peak = int(done.stdout.split()[-1])
    print(f"\npeak of {peak / 1e9:.2f} GB")
    assert peak < MEMORY


@pytest.fixture(scope="module")
def philly() -> Workload:
    """Return all jobs of the trace."""
    if not TRACE.exists():
        pytest.skip("../shared/data is absent")
    return read_trace(TRACE).workload


@pytest.mark.parametrize("per_queue", [False, True], ids=["one cluster", "15 clusters"])
@pytest.mark.parametrize("policy", ["fifo", "sjf"])
def test_philly(benchmark: Any, philly: Workload, policy: str, per_queue: bool) -> None:
    """All of Philly, consolidated, is simulated in less than the seconds asked."""
    run = {"consolidate": True, "per_queue": per_queue}
    simulate_named(philly.take(np.arange(100)), 20, 8, policy, **run)
    done = benchmark.pedantic(simulate_named, args=(philly, 40, 8, policy), kwargs=run, rounds=3)
    assert done.admitted.all()
    assert benchmark.stats.stats.max < PHILLY


@pytest.mark.parametrize("nodes", [40, 200])
@pytest.mark.parametrize("policy", ["fifo", "sjf", "srtf", "tiresias"])
def test_engine(benchmark: Any, philly: Workload, policy: str, nodes: int) -> None:
    """The engine runs simple policies on all of Philly, crowded or not, at the jobs a second asked."""
    fleet, scheduler = Fleet.regular(1, nodes, 8), EngineScheduler((POLICIES[policy](),), "overtake", True)
    simulate(philly.take(np.arange(300)), fleet, scheduler)
    begin = time.process_time()
    done = benchmark.pedantic(simulate, args=(philly, fleet, scheduler), rounds=1)
    speed = philly.n_jobs / (time.process_time() - begin)
    benchmark.extra_info.update(jobs_a_second=speed)
    print(f"\n{policy} on {nodes} nodes: {speed:,.0f} jobs/s")
    assert done.admitted.all()
    assert speed >= ENGINE
