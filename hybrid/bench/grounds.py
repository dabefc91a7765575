"""The grounds of the online suites: one draw of a ground, what its policies come to, and what none can be better than.

The value is the mean JCT, seconds, of a checked outcome; on PAC-ML's ground the share of the jobs that were blocked or
had not ended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import ceil
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.errors import InstanceError, unknown
from gangplan.instances.generators import generate
from gangplan.instances.workload import Workload
from gangplan.simulator import ground as grounds
from gangplan.simulator.ground import Figure, Maker, refuse
from gangplan.simulator.picking import EnginePick, Picks
from gangplan.systems import ground_of

_GRAIN, _LONGEST = 60.0, 7 * 86400.0
TRACES: dict[str, tuple[tuple[int, float, float, float], ...]] = {
    # Jeon et al., ATC 2019, 82,247 jobs; without the sizes of fewer than 50 jobs
    "philly": (
        *((1, 0.9317, 6.72, 1.97), (2, 0.0221, 4.52, 3.27), (4, 0.0227, 9.11, 2.78)),
        *((8, 0.02, 9.65, 2.79), (16, 0.0024, 9.27, 3.34), (32, 0.0008, 8.83, 2.47)),
    ),
    # Weng et al., ATC 2023, the 6,203 pods with GPUs
    "openb": ((1, 0.9881, 6.56, 1.9), (2, 0.0024, 7.68, 2.45), (4, 0.0024, 5.94, 2.59), (8, 0.0071, 7.51, 2.68)),
}
"""Fitted to published traces: GPUs of a job, share of the jobs, mean and deviation of the logarithm of its seconds."""


def traced_jobs(family: str, jobs: int, gpus: int, rng: np.random.Generator) -> Workload:
    """Draw jobs of a trace's sizes and durations, whole minutes, at 1.2 times what so many GPUs do."""
    menu = np.array([row for row in TRACES[family] if row[0] <= gpus])
    kind = rng.choice(len(menu), jobs, p=menu[:, 1] / menu[:, 1].sum())
    size, seconds = menu[kind, 0].astype(int), np.exp(rng.normal(menu[kind, 2], menu[kind, 3]))
    duration = np.array([_GRAIN * ceil(min(x, _LONGEST) / _GRAIN) for x in seconds])
    between = float((size * duration).mean()) / (1.2 * gpus)
    submit = np.floor(np.cumsum(rng.exponential(between, jobs)) / _GRAIN) * _GRAIN
    return Workload(tuple(map(str, range(jobs))), submit - submit[0], size, duration)


FIRST = 500_000
"""The seeds of the suites begin there: no other table of the project has them, nor training or validation."""
_NODE = 8
_NETWORKS: tuple[tuple[str, dict[str, int]], ...] = (
    ("vgg", {"depth": 11}),
    ("resnet", {"depth": 18}),
    ("gnmt", {"layers": 4}),
    ("bert", {"layers": 4}),
)
_OPTIONS: dict[str, Any] = {"objective": "step", "training": True, "device_type": "P100", "batch": 128}


@dataclass(frozen=True)
class Queue(grounds.Ground):
    """`Scheduler`'s ground: jobs of a trace's sizes and durations, which may be stopped, on nodes of eight GPUs."""

    figures: ClassVar[Mapping[str, Figure]] = {"mean_jct": Figure("mean JCT", "s")}
    sees = ("gpus", "seconds", "waited")
    usual = ("scheduler", "scheduler-untold", "fifo", "sjf", "srtf", "tiresias")

    trace: str
    jobs: int
    gpus: int

    @property
    def case(self) -> str:  # type: ignore[override]
        """The trace."""
        return self.trace

    def draw(self, seed: int) -> Workload:
        """See `Ground`."""
        rng = np.random.default_rng([*self.trace.encode(), seed, self.jobs, self.gpus])
        return traced_jobs(self.trace, self.jobs, self.gpus, rng)

    def arrays(self, drawn: Workload) -> Sequence[NDArray[Any]]:
        """See `Ground`."""
        return drawn.submit, drawn.gpus, drawn.duration

    def policy(self, name: str) -> Maker:
        """See `Ground`."""
        from gangplan.simulator.engine.policies import POLICIES

        from ..online.engine_policy import SchedulerPolicy

        if name.startswith("scheduler"):
            return lambda drawn, seed: lambda: SchedulerPolicy(told=name == "scheduler", price=0.0)
        if name not in POLICIES:
            raise InstanceError("methods", unknown(name, ("scheduler", "scheduler-untold", *POLICIES)))
        return lambda drawn, seed: name

    def native(self, policy: Picks) -> Any:
        """See `Ground`."""
        return lambda: EnginePick(policy)

    def play(self, policy: Any, drawn: Workload) -> Mapping[str, float]:
        """See `Ground`."""
        from gangplan.simulator.check import check
        from gangplan.simulator.engine import simulate_named

        outcome = simulate_named(drawn, self.gpus // _NODE, _NODE, policy, discipline="overtake")
        refuse(check(outcome))
        return {"mean_jct": float((outcome.finish - outcome.workload.submit).mean())}

    def bound(self, drawn: Workload, time_limit: float) -> float:
        """See `Ground`; jobs may be stopped, so that only relaxations hold."""
        from gangplan.solvers.schedule.clairvoyant import mean_jct_bound

        return mean_jct_bound(drawn, self.gpus)


@dataclass(frozen=True)
class Ground:
    """One draw of a ground, an instance of GapBench."""

    objective: ClassVar[str] = "online"

    label: str
    on: grounds.Ground
    seed: int
    usual: tuple[str, ...]

    @cached_property
    def case(self) -> Any:
        """What was drawn: what a policy of somebody else's is made for."""
        return self.on.draw(FIRST + self.seed)

    def drawn(self) -> Sequence[NDArray[Any]]:
        """Return what was drawn, first when jobs arrive, (n,)."""
        return self.on.arrays(self.case)

    def named(self, name: str, seed: int) -> Any:
        """Return the policy of a name, which draws by a seed."""
        return self.on.policy(name)(self.case, seed)

    def play(self, policy: Any) -> float:
        """Let a policy decide, check the outcome, and return its value."""
        return self.on.play(policy, self.case)[next(iter(self.on.figures))]

    def bound(self, time_limit: float) -> float:
        """Return what no policy is below, whatever it knows of the future."""
        return self.on.bound(self.case, time_limit)

    @property
    def hash(self) -> str:
        """SHA-256 of what was drawn."""
        text = repr([self.label, *(x.tolist() for x in self.drawn())])
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@cache
def _types() -> tuple[Any, ...]:
    """Return what arrives on PAC-ML's ground: four networks of ours."""
    from gangplan.systems.pacml.jobs import JobType

    return tuple(JobType.of(generate(kind, devices=2, **_OPTIONS, **size).graph, name=kind) for kind, size in _NETWORKS)


def _of(label: str, usual: tuple[str, ...], make: Callable[..., grounds.Ground]) -> Callable[..., Ground]:
    return lambda seed=0, **settings: Ground(label, make(**settings), seed, usual)


USUAL: dict[str, tuple[str, ...]] = {
    "queue": Queue.usual,
    "proximity": ("least_work", "sjf", "fcfs", "tetris", "rollout", "patient"),
    "interference": ("lif", "tetris", "lb", "lif-near", "alone-joint"),
    "agents": ("market-packed", "agents-lif", "agents-alone", "lif-near"),
    "ramp": ("constant-4", "constant-8", "constant-16", "smallest+best", "plans"),
}
"""Policies of a run that names none."""
_TOPDRL: Any = ground_of("topdrl")
_PACML: Any = ground_of("pacml")
GROUNDS: dict[str, Callable[..., Ground]] = {
    "queue": _of("Queue", USUAL["queue"], Queue),
    "proximity": _of("Proximity", USUAL["proximity"], lambda **x: _TOPDRL(**x, draws=None)),
    "interference": _of("Interference", USUAL["interference"], ground_of("harmony")),
    "agents": _of("Agents", USUAL["agents"], ground_of("marl")),
    "ramp": _of("Ramp", USUAL["ramp"], lambda **x: _PACML(profiles=_types(), **x)),
}
"""By the name that suite.toml has for it: makes the ground of settings and a seed."""
