"""What makes the instances of GapBench, the same for the same arguments: problems, and draws of online grounds.

The value of an online instance is the mean JCT, seconds, of a checked outcome; on PAC-ML's ground the share of the jobs
that were blocked or had not ended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import ceil
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.cluster import Level, RampTopology, TreeTopology
from gangplan.instances.errors import InstanceError, unknown
from gangplan.instances.generators import defaults, generate
from gangplan.instances.generators.families import GPUS, GRAPHS, make, make_large, pick, seed_of, tight_cluster
from gangplan.instances.kinds import GRAPHS as GRAPHS_OF
from gangplan.instances.kinds import with_objective
from gangplan.instances.readers import read
from gangplan.instances.schedule import Pool, ScheduleProblem
from gangplan.instances.verify import Problem
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
class QueueDraw(grounds.Ground):
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
        """See `GroundDraw`."""
        rng = np.random.default_rng([*self.trace.encode(), seed, self.jobs, self.gpus])
        return traced_jobs(self.trace, self.jobs, self.gpus, rng)

    def arrays(self, drawn: Workload) -> Sequence[NDArray[Any]]:
        """See `GroundDraw`."""
        return drawn.submit, drawn.gpus, drawn.duration

    def policy(self, name: str) -> Maker:
        """See `GroundDraw`."""
        from gangplan.scheduler.policies.engine_policy import SchedulerPolicy
        from gangplan.simulator.engine.policies import POLICIES

        if name.startswith("scheduler"):
            return lambda drawn, seed: lambda: SchedulerPolicy(told=name == "scheduler", price=0.0)
        if name not in POLICIES:
            raise InstanceError("methods", unknown(name, ("scheduler", "scheduler-untold", *POLICIES)))
        return lambda drawn, seed: name

    def native(self, policy: Picks) -> Any:
        """See `GroundDraw`."""
        return lambda: EnginePick(policy)

    def play(self, policy: Any, drawn: Workload) -> Mapping[str, float]:
        """See `GroundDraw`."""
        from gangplan.simulator.check import check
        from gangplan.simulator.engine import simulate_named

        outcome = simulate_named(drawn, self.gpus // _NODE, _NODE, policy, discipline="overtake")
        refuse(check(outcome))
        return {"mean_jct": float((outcome.finish - outcome.workload.submit).mean())}

    def bound(self, drawn: Workload, time_limit: float) -> float:
        """See `GroundDraw`; jobs may be stopped, so that only relaxations hold."""
        from gangplan.solvers.schedule.workload_bounds import mean_jct_bound

        return mean_jct_bound(drawn, self.gpus)


@dataclass(frozen=True)
class GroundDraw:
    """One draw of a ground, an instance of GapBench."""

    objective: ClassVar[str] = "online"

    label: str
    on: grounds.Ground
    seed: int

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
        return f"sha256:{hashlib.sha256(repr([self.label, *(x.tolist() for x in self.drawn())]).encode()).hexdigest()}"


@cache
def _types() -> tuple[Any, ...]:
    """Return what arrives on PAC-ML's ground: four networks of ours."""
    from gangplan.systems.pacml.jobs import JobType

    return tuple(JobType.of(generate(kind, devices=2, **_OPTIONS, **size).graph, name=kind) for kind, size in _NETWORKS)


USUAL: dict[str, tuple[str, ...]] = {
    "queue": QueueDraw.usual,
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
        """See `GroundDraw`; it is told what TopDRL's own policies are told."""
        from gangplan.scheduler.policies.engine_policy import SchedulerPolicy
        from gangplan.simulator.engine import EngineScheduler

        if name not in SCHEDULERS:
            return super().policy(name)  # type: ignore[no-any-return]

        def make(drawn: Any, seed: int) -> EngineScheduler:
            told = True if drawn[1] is None else drawn[1]
            return EngineScheduler((SchedulerPolicy(told, **SCHEDULERS[name]),), "overtake")

        return make


SCHEDULERS: dict[str, dict[str, Any]] = {
    "scheduler-far": {"speeds": None},
    "scheduler": {},
    "scheduler-patient": {"policy": "patient"},
    "scheduler-evolved": {"policy": "evolved"},
    "scheduler-gnn": {"policy": "gnn"},
    "scheduler-gnn-unguarded": {"policy": "gnn-unguarded"},
}
"""Arguments of `Scheduler` on TopDRL's ground; `scheduler-far` does not know that places differ."""
_PACML: Any = ground_of("pacml")
GROUNDS: dict[str, Callable[..., grounds.Ground]] = {
    "queue": QueueDraw,
    "proximity": lambda **x: Near(**x, draws=None),
    "interference": ground_of("harmony"),
    "agents": ground_of("marl"),
    "ramp": lambda **x: _PACML(profiles=_types(), **x),
}
"""By the name that suite.toml has for it: makes the ground of settings."""


_FIRST = 1 << 20
"""Of the test split the index where the seeds of GapBench begin: no other table of the project reaches it."""
_NETWORK = (("server", 300e9, 0.0), ("rack", 25e9, 5e-6), ("pod", 12.5e9, 10e-6))
"""Levels of a fat tree: NVLink, 200 Gb/s, and 100 Gb/s a device between racks, oversubscribed 2 to 1."""
_LARGE = {"gangs": 200, "queue": 200}
"""From so many nodes or jobs on the generator of large instances is asked."""

_SHARED = {"philly": 0.0, "openb": 0.415}
"""Share of the jobs of one GPU that hold a part of it."""


def read_file(objective: str, family: str, *, path: str) -> Problem:
    """Read a problem; an objective applies to op graphs."""
    made: Problem = read(path, objective=objective if objective in GRAPHS_OF else None)
    return made


def graph(objective: str, family: str, *, kind: str, devices: int, seed: int = 0, **options: Any) -> Problem:
    """Make a network's op graph on A100s behind one switch; forward and backward pass, for latency forward."""
    made: Problem = generate(kind, objective=objective, devices=devices, **options)
    return made


Sizes = Sequence[int]


def random_graph(
    objective: str, family: str, *, kind: str, ops: int, seed: int = 0, tree: Sizes = (), ramp: Sizes = ()
) -> Problem:
    """Make a random graph of at most `ops` ops on two to eight devices, on a fat tree, or on a RAMP cluster.

    Args:
        objective: of the problem.
        family: of the instance; it is part of the seed.
        kind: of the graph.
        ops: backward ones among them.
        seed: of all that is drawn.
        tree: fan-outs of a fat tree, the inner one first.
        ramp: communication groups, racks and servers of a rack.
    """
    rng = np.random.default_rng([*objective.encode(), *family.encode(), *kind.encode(), ops, seed])
    training = objective != "latency" and bool(rng.random() < 0.5)
    options = GRAPHS[kind](rng, max(2, ops // (2 if training else 1)))
    options["intensity"] = float(np.exp(rng.uniform(np.log(300), np.log(10000)))) * (10 if kind == "pipeline" else 1)
    drawn = pick(rng, 2, 4, 8) if ops < 1000 else pick(rng, 16, 32, 64)
    devices = int(np.prod(tree or ramp)) if tree or ramp else drawn
    gpu, tight, room = pick(rng, *GPUS), rng.random() < 0.5, float(rng.uniform(1.2, 2.0))
    tight &= objective != "stages"  # replicas hold what that room does not count
    made = generate(kind, training=training, devices=devices, device_type=gpu, seed=seed, **options)
    cluster = tight_cluster(made, room) if tight else made.cluster
    if tree:
        levels = tuple(Level(*level) for level in _NETWORK[: len(tree)])
        cluster = replace(cluster, topology=TreeTopology.regular(levels, tuple(tree)))
    elif ramp:
        cluster = replace(cluster, topology=RampTopology(*ramp))
    return with_objective(replace(made, cluster=cluster), objective)


def gangs(objective: str, family: str, *, nodes: int, seed: int = 0) -> Problem:
    """Make a batch of gangs for up to so many nodes in racks."""
    build, name = (make_large, "racks") if nodes >= _LARGE["gangs"] else (make, "gangs")
    made: Problem = build("placement", name, seed_of("test", _FIRST + seed), nodes)
    return made


def traced_gangs(objective: str, family: str, *, nodes: int, seed: int = 0) -> Problem:
    """Make a batch of gangs of a trace's sizes, as many as fill nine tenths of so many nodes of eight GPUs."""
    menu = TRACES[family]
    mean = sum(size * share for size, share, _, _ in menu) / sum(share for _, share, _, _ in menu)
    sizes = ",".join(f"{size}:{share}" for size, share, _, _ in menu if size <= 4 * nodes)
    return generate(
        "gangs", jobs=int(0.9 * 8 * nodes / mean), racks=max(1, nodes // 16), nodes=min(nodes, 16), gpus=8, load=0.95,
        sizes=sizes, shares=_SHARED[family], seed=seed_of("test", _FIRST + seed),
    )  # fmt: skip


def queue(objective: str, family: str, *, jobs: int, seed: int = 0) -> Problem:
    """Make up to so many moldable jobs over time."""
    build = make_large if jobs >= _LARGE["queue"] else make
    made: Problem = build("schedule", "moldable", seed_of("test", _FIRST + seed), jobs)
    return made


def ramp_queue(objective: str, family: str, *, jobs: int, gpus: int, seed: int = 0) -> Problem:
    """Make moldable jobs for blocks of a RAMP cluster of two racks with `gpus` servers in all a group, two groups."""
    at = seed_of("test", _FIRST + seed)
    return generate("moldable", jobs=jobs, nodes=2, gpus=gpus // 2, load=1.2, capacity="ramp", seed=at)


def traced_queue(objective: str, family: str, *, jobs: int, gpus: int, seed: int = 0) -> Problem:
    """Make rigid jobs of a trace's sizes and durations, whole minutes, at 1.2 times what the pool of GPUs does."""
    at = seed_of("test", _FIRST + seed)
    rng = np.random.default_rng([*family.encode(), at, jobs, gpus])
    workload = traced_jobs(family, jobs, gpus, rng)
    return ScheduleProblem.of(workload, Pool(gpus), pick(rng, "mean_jct", "weighted_completion"))


_PIPELINES: dict[str, dict[str, Any]] = {
    "even": {},
    "uneven": {"forward": 1.0, "backward": 1.1, "weight": 0.9, "spread": 0.3, "transfer": 0.1},
    "turns": {"chunks": 2},
    "vee": {"chunks": 2, "shape": "v"},
}
"""What pipelines of a family are, see `gangplan.instances.generators.pipelines`."""


def pipeline(objective: str, family: str, **arguments: Any) -> Problem:
    """Make a pipeline of micro-batches."""
    seed = seed_of("test", _FIRST + arguments.pop("seed", 0))
    made: Problem = generate("micro_batches", **_PIPELINES[family], **arguments, seed=seed)
    return made


def redrawn(generator: str, arguments: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Draw arguments of a fresh instance like another: a seed, a network's batch and layers, a pipeline's seconds."""
    drawn = {**arguments, "seed": int(rng.integers(_FIRST, 1 << 28))}
    if generator == "graph":
        usual = defaults(arguments["kind"])["batch"]
        drawn["batch"] = int(rng.integers(usual // 2, 2 * usual))
        if "layers" in drawn:
            drawn["layers"] = max(1, round(drawn["layers"] * float(rng.uniform(0.75, 1.25))))
    elif generator == "pipeline" and "seed" not in arguments:
        drawn |= {name: round(float(rng.uniform(0.5, 1.5)), 2) for name in ("forward", "backward", "weight")}
    return drawn


def online(objective: str, family: str, *, ground: str, seed: int = 0, **settings: Any) -> GroundDraw:
    """Make jobs that arrive on a ground, see `gangplan.hybrid.bench.makers`."""
    return GroundDraw(ground.capitalize(), GROUNDS[ground](**settings), seed)
