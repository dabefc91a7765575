"""The grounds of the online suites: jobs that arrive, who decides when they do, and what nobody can be better than.

A ground is made of plain arguments and plays a policy: by name, or one that somebody else wrote. The value is the mean
JCT, seconds, of a checked outcome; on PAC-ML's ground the share of the jobs that were blocked or had not ended.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.errors import InstanceError, unknown
from gangplan.instances.generators import generate
from gangplan.instances.workload import Workload
from gangplan.simulator.outcome import Outcome

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


class Ground(ABC):
    """Jobs that arrive on a cluster.

    Attributes:
        objective: ``online``.
        usual: policies of a run that names none.
        case: what a policy of somebody else's is made for.
    """

    objective = "online"
    usual: tuple[str, ...]
    case: Any

    @abstractmethod
    def drawn(self) -> Sequence[NDArray[Any]]:
        """Return what was drawn, first when jobs arrive, (n,)."""

    @abstractmethod
    def named(self, name: str, seed: int) -> Any:
        """Return the policy of a name.

        Raises:
            InstanceError: if there is none.
        """

    @abstractmethod
    def play(self, policy: Any) -> float:
        """Let a policy decide, check the outcome, and return its value.

        Raises:
            RuntimeError: if the outcome does not hold.
        """

    @abstractmethod
    def bound(self, time_limit: float) -> float:
        """Return what no policy is below, whatever it knows of the future."""

    @property
    def hash(self) -> str:
        """SHA-256 of what was drawn."""
        text = repr([type(self).__name__, *(x.tolist() for x in self.drawn())])
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


class Queue(Ground):
    """`Scheduler`'s ground: jobs of a trace's sizes and durations, which may be stopped, on nodes of eight GPUs."""

    usual = ("scheduler", "scheduler-untold", "fifo", "sjf", "srtf", "tiresias")

    def __init__(self, *, trace: str, jobs: int, gpus: int, seed: int = 0) -> None:
        rng = np.random.default_rng([*trace.encode(), FIRST + seed, jobs, gpus])
        self.case: Workload = traced_jobs(trace, jobs, gpus, rng)
        self._gpus = gpus

    def drawn(self) -> Sequence[NDArray[Any]]:
        """See `Ground`."""
        return self.case.submit, self.case.gpus, self.case.duration

    def named(self, name: str, seed: int) -> Any:
        """See `Ground`."""
        from gangplan.simulator.engine.policies import POLICIES

        from ..online.engine_policy import SchedulerPolicy

        if name.startswith("scheduler"):
            return lambda: SchedulerPolicy(told=name == "scheduler", price=0.0)
        if name not in POLICIES:
            raise InstanceError("methods", unknown(name, ("scheduler", "scheduler-untold", *POLICIES)))
        return name

    def play(self, policy: Any) -> float:
        """See `Ground`."""
        from gangplan.simulator.check import check
        from gangplan.simulator.engine import simulate_named

        outcome = simulate_named(self.case, self._gpus // _NODE, _NODE, policy, discipline="overtake")
        return _mean_jct(outcome, check(outcome))

    def bound(self, time_limit: float) -> float:
        """See `Ground`; jobs may be stopped, so that only relaxations hold."""
        from gangplan.solvers.schedule.clairvoyant import mean_jct_bound

        return mean_jct_bound(self.case, self._gpus)


class Proximity(Ground):
    """TopDRL's ground: gangs that are faster the closer their GPUs are."""

    usual = ("least_work", "sjf", "fcfs", "tetris", "rollout", "patient")

    def __init__(self, *, suite: str, seed: int = 0) -> None:
        from gangplan.systems.topdrl.suites import suite as suite_of

        self._suite = suite_of(suite)
        self.case = self._suite.draw(FIRST + seed)

    def drawn(self) -> Sequence[NDArray[Any]]:
        """See `Ground`."""
        return self.case[0].submit, self.case[0].gpus, self.case[0].duration

    def named(self, name: str, seed: int) -> Any:
        """See `Ground`."""
        from gangplan.systems.topdrl.policies import make_policy

        return make_policy(name, seed, self._suite)

    def play(self, policy: Any) -> float:
        """See `Ground`."""
        from gangplan.simulator.check import check
        from gangplan.systems.topdrl.evaluate import run_policy

        outcome = run_policy(policy, self._suite, *self.case)[0]
        return _mean_jct(outcome, check(outcome))

    def bound(self, time_limit: float) -> float:
        """See `Ground`."""
        from gangplan.systems.topdrl.bound import bound

        return bound(self.case[0], self._suite.fleet, self._suite.proximity)


class Interference(Ground):
    """Harmony's ground: jobs that slow one another down, placed every 20 minutes and never moved."""

    usual: tuple[str, ...] = ("lif", "tetris", "lb", "lif-near", "alone-joint")

    def __init__(self, *, case: str, jobs: int, seed: int = 0) -> None:
        from gangplan.systems.interference.cases import CASES

        self._name, self.case = case, CASES[case](FIRST + seed, jobs=jobs)

    def drawn(self) -> Sequence[NDArray[Any]]:
        """See `Ground`."""
        jobs, hidden = self.case.jobs, self.case.truth.hidden
        return (
            jobs.submit,
            jobs.kind,
            jobs.workers,
            jobs.servers,
            jobs.epochs,
            hidden.host,
            hidden.socket,
            hidden.quality,
        )

    def named(self, name: str, seed: int) -> Any:
        """See `Ground`."""
        from gangplan.systems.interference.policies import make_policy

        return make_policy(name, self._name)(self.case)

    def play(self, policy: Any) -> float:
        """See `Ground`."""
        from gangplan.systems.interference.baselines import run
        from gangplan.systems.interference.outcome import check

        outcome = run(self.case, policy).outcome()
        _refuse(check(outcome))
        return float(outcome.jct.mean())

    def bound(self, time_limit: float) -> float:
        """See `Ground`: alone, without synchronisation, on GPUs that are counted, from the next interval on."""
        from gangplan.solvers.schedule.clairvoyant import clairvoyant

        jobs, hidden, n = self.case.jobs, self.case.truth.hidden, len(self.case.jobs)
        submit = np.ceil(jobs.submit / self.case.interval) * self.case.interval
        seconds = jobs.epochs * (hidden.step * hidden.batches)[jobs.kind] / jobs.workers
        fastest = Workload(tuple(map(str, range(n))), submit, jobs.workers, seconds)
        found = clairvoyant(fastest, self.case.fleet.n_gpus, time_limit=time_limit).bound
        return float((submit - jobs.submit).mean()) + found


class Agents(Interference):
    """MARL's ground: the same in a data centre, whose racks are owned by agents."""

    usual = ("market-packed", "agents-lif", "agents-alone", "lif-near")


class Ramp(Ground):
    """PAC-ML's ground: jobs that a RAMP cluster of 4 x 4 x 2 servers accepts at once, or blocks.

    The bound is that of policies that keep a job in one block; published first fit may let it spill out.
    """

    usual = ("constant-4", "constant-8", "constant-16", "smallest+best", "plans")

    def __init__(self, *, distribution: str, jobs: int, seed: int = 0) -> None:
        from gangplan.systems.pacml.arrivals import arrivals

        self.case = arrivals(_types(), distribution, FIRST + seed, n=jobs)

    def drawn(self) -> Sequence[NDArray[Any]]:
        """See `Ground`."""
        return self.case.submit, self.case.model, self.case.limit

    def named(self, name: str, seed: int) -> Any:
        """See `Ground`."""
        from gangplan.systems.pacml.learned.policies import make_policy

        return make_policy(name)(seed)

    def play(self, policy: Any) -> float:
        """See `Ground`."""
        from gangplan.systems.pacml.check import Checker
        from gangplan.systems.pacml.simulate import simulate

        outcome = simulate(self.case, policy)
        _refuse(Checker().check(outcome))
        return float(outcome.blocked_or_running)

    def bound(self, time_limit: float) -> float:
        """See `Ground`."""
        from gangplan.systems.pacml.plans import clairvoyant

        return clairvoyant(self.case, time_limit=time_limit, width=1, by_horizon=True).bound


@cache
def _types() -> tuple[Any, ...]:
    """Return what arrives on PAC-ML's ground: four networks of ours."""
    from gangplan.systems.pacml.jobs import JobType

    return tuple(JobType.of(generate(kind, devices=2, **_OPTIONS, **size).graph, name=kind) for kind, size in _NETWORKS)


def _refuse(faults: Sequence[str]) -> None:
    if faults:
        raise RuntimeError("; ".join(faults))


def _mean_jct(outcome: Outcome, faults: Sequence[str]) -> float:
    _refuse(faults)
    return float((outcome.finish - outcome.workload.submit).mean())


GROUNDS: dict[str, type[Ground]] = {
    "queue": Queue,
    "proximity": Proximity,
    "interference": Interference,
    "agents": Agents,
    "ramp": Ramp,
}
"""By the name that suite.toml has for it."""
