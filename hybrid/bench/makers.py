"""What makes the instances of GapBench: functions of plain arguments, the same problem for the same arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gangplan.instances.cluster import Level, RampTopology, TreeTopology
from gangplan.instances.generators import generate
from gangplan.instances.generators.families import GPUS, GRAPHS, make, make_large, pick, seed_of, tight_cluster
from gangplan.instances.kinds import GRAPHS as GRAPHS_OF
from gangplan.instances.kinds import with_objective
from gangplan.instances.readers import read
from gangplan.instances.schedule import Pool, ScheduleProblem
from gangplan.instances.verify import Problem

from .grounds import GROUNDS, TRACES, Ground, traced_jobs

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


def random_graph(
    objective: str,
    family: str,
    *,
    kind: str,
    ops: int,
    seed: int = 0,
    tree: Sequence[int] = (),
    ramp: Sequence[int] = (),
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
    changed: Problem = with_objective(replace(made, cluster=cluster), objective)
    return changed


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
    made: Problem = generate(
        "gangs", jobs=int(0.9 * 8 * nodes / mean), racks=max(1, nodes // 16), nodes=min(nodes, 16), gpus=8, load=0.95,
        sizes=sizes, shares=_SHARED[family], seed=seed_of("test", _FIRST + seed),
    )  # fmt: skip
    return made


def queue(objective: str, family: str, *, jobs: int, seed: int = 0) -> Problem:
    """Make up to so many moldable jobs over time."""
    build = make_large if jobs >= _LARGE["queue"] else make
    made: Problem = build("schedule", "moldable", seed_of("test", _FIRST + seed), jobs)
    return made


def ramp_queue(objective: str, family: str, *, jobs: int, gpus: int, seed: int = 0) -> Problem:
    """Make moldable jobs for blocks of a RAMP cluster of two racks with `gpus` servers in all a group, two groups."""
    at = seed_of("test", _FIRST + seed)
    made: Problem = generate("moldable", jobs=jobs, nodes=2, gpus=gpus // 2, load=1.2, capacity="ramp", seed=at)
    return made


def traced_queue(objective: str, family: str, *, jobs: int, gpus: int, seed: int = 0) -> Problem:
    """Make rigid jobs of a trace's sizes and durations, whole minutes, at 1.2 times what the pool of GPUs does."""
    at = seed_of("test", _FIRST + seed)
    rng = np.random.default_rng([*family.encode(), at, jobs, gpus])
    workload = traced_jobs(family, jobs, gpus, rng)
    return ScheduleProblem.of(workload, Pool(gpus), pick(rng, "mean_jct", "weighted_completion"))


def online(objective: str, family: str, *, ground: str, **arguments: Any) -> Ground:
    """Make jobs that arrive on a ground, see `gangplan.hybrid.bench.grounds`."""
    return GROUNDS[ground](**arguments)
