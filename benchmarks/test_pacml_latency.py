"""Time single decisions of PAC-ML's policy on one core: ``python -m pytest benchmarks/test_pacml_latency.py -s``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from gangplan.instances import RampTopology  # noqa: E402
from gangplan.learned.policy import read_card, shipped  # noqa: E402
from gangplan.systems.pacml.arrivals import arrivals  # noqa: E402
from gangplan.systems.pacml.jobs import (  # noqa: E402
    Blocks,
    JobType,
    read_types,
)
from gangplan.systems.pacml.learned.network import BlockNetwork  # noqa: E402
from gangplan.systems.pacml.learned.policy import RampDecider, RampPolicy  # noqa: E402
from gangplan.systems.pacml.simulate import Acceptance, RampState, simulate  # noqa: E402

from .study import Options  # noqa: E402

SIZES = {32: (4, 4, 2), 128: (8, 8, 2), 512: (8, 8, 8), 4096: (16, 16, 16)}
TARGET = {32: 5.0, 128: 5.0, 512: 20.0, 4096: 20.0}
"""Milliseconds that 99% of the decisions may take at most."""

WARM = 1000
"""Arrivals, and then as many again as there are servers up to `FILL`, until the cluster is as busy as it stays."""
FILL, TIMED = 4096, 2000


@cache
def types(servers: int) -> tuple[JobType, ...]:
    """Return the published models on a cluster."""
    folder = Options().data / "pipedream"
    if not folder.is_dir():
        pytest.skip("there is no PipeDream data")
    return read_types(folder, blocks=Blocks(RampTopology(*SIZES[servers])))


@cache
def policy() -> RampPolicy:
    """Return the first policy that comes with the package, or one with random weights and their usual width."""
    for path in shipped().values():
        if read_card(path).policy == "pacml":
            return RampPolicy.load(path)
    torch.manual_seed(0)
    return RampPolicy(BlockNetwork(96))


class Timed:
    """Decides as another policy does, and keeps what each decision took, in ms of wall-clock and of processor time."""

    def __init__(self, decider: RampDecider) -> None:
        self.decider = decider
        self.took: list[tuple[float, float]] = []

    def decide(self, state: RampState) -> Acceptance | None:
        """Decide, timed."""
        wall, processor = time.perf_counter(), time.thread_time()
        choice = self.decider.decide(state)
        self.took.append((1e3 * (time.perf_counter() - wall), 1e3 * (time.thread_time() - processor)))
        return choice


@pytest.mark.parametrize("servers", SIZES)
def test_latency(record_property: Callable[[str, object], None], servers: int) -> None:
    """Of decisions at the published load, from the state of the cluster to the choice, 99% are within the target."""
    timed, warm = Timed(policy()), WARM + min(2 * servers, FILL)
    simulate(arrivals(types(servers), "A", 0, n=warm + TIMED), timed)
    wall, processor = np.array(timed.took[warm:]).T
    half, most = np.percentile(wall, [50, 99])
    words = f"p50 {half:.2f} ms, p99 {most:.2f} ms, longest {wall.max():.2f} ms"
    busy = np.percentile(processor, 99)
    line = f"{servers:>5} servers  {words}; of processor time p99 {busy:.2f} ms; {os.cpu_count()} cores"
    record_property("ratio", line)
    print(f"\n{line}")
    assert most < TARGET[servers]
