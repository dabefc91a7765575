"""The grounds of the online suites: one draw of a ground, what its policies come to, and what none can be better than.

The value is the mean JCT, seconds, of a checked outcome; on PAC-ML's ground the share of the jobs that were blocked or
had not ended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
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

from .traces import traced_jobs

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
        from gangplan.solvers.schedule.workload_bounds import mean_jct_bound

        return mean_jct_bound(drawn, self.gpus)


@dataclass(frozen=True)
class Ground:
    """One draw of a ground, an instance of GapBench.

    Attributes:
        label: of its kind, in the hash.
        on: the ground.
        seed: of the draw.
        usual: policies of a run that names none.
    """

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
        """Return the policy of a name, which draws by a seed.

        Raises:
            InstanceError: if there is none.
        """
        return self.on.policy(name)(self.case, seed)

    def play(self, policy: Any) -> float:
        """Let a policy decide, check the outcome, and return its value.

        Raises:
            RuntimeError: if the outcome does not hold.
        """
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


class Near(_TOPDRL):  # type: ignore[misc]
    """TopDRL's ground, where `Scheduler` decides too, by the names of `SCHEDULERS`."""

    def policy(self, name: str) -> Maker:
        """See `Ground`; it is told what TopDRL's own policies are told."""
        from gangplan.simulator.engine import Scheduler as Engine

        from ..online.engine_policy import SchedulerPolicy

        if name not in SCHEDULERS:
            return super().policy(name)  # type: ignore[no-any-return]

        def make(drawn: Any, seed: int) -> Engine:
            return Engine((SchedulerPolicy(True if drawn[1] is None else drawn[1], **SCHEDULERS[name]),), "overtake")

        return make


SCHEDULERS: dict[str, dict[str, Any]] = {
    "scheduler-far": {"speeds": None},
    "scheduler": {},
    "scheduler-patient": {"policy": "patient"},
}
"""Arguments of `Scheduler` on TopDRL's ground; `scheduler-far` does not know that places differ."""
_PACML: Any = ground_of("pacml")
GROUNDS: dict[str, Callable[..., Ground]] = {
    "queue": _of("Queue", USUAL["queue"], Queue),
    "proximity": _of("Proximity", USUAL["proximity"], lambda **x: Near(**x, draws=None)),
    "interference": _of("Interference", USUAL["interference"], ground_of("harmony")),
    "agents": _of("Agents", USUAL["agents"], ground_of("marl")),
    "ramp": _of("Ramp", USUAL["ramp"], lambda **x: _PACML(profiles=_types(), **x)),
}
"""By the name that suite.toml has for it: makes the ground of settings and a seed."""
