"""Compiled decisions, episodes, futures and guards are to the bit those that numba's kernels made before them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances.placement import Fleet
from gangplan.learned.online.episodes import look
from gangplan.learned.online.guard import Guard, known
from gangplan.learned.online.policy import GnnPolicy
from gangplan.learned.online.rollouts import imagined, weigh
from gangplan.learned.online.settings import GnnSettings
from gangplan.learned.policy.weights import find
from gangplan.learned.training.online.labels import label_episode
from gangplan.simulator.gangs.formula import EVOLVED, PATIENT
from gangplan.simulator.gangs.traffic import TRAIN

from ..conftest import CORRECTED, UNEQUAL, World, drawn

GOLDEN = Path(__file__).with_suffix(".json")
"""What numba's kernels of commit feefd4b9 made of `worlds`."""
FLEETS = {
    "2x4x4": Fleet.regular(2, 4, 4), "4x8x8": Fleet.regular(4, 8, 8), "unequal": UNEQUAL,
    "70 nodes": Fleet.regular(7, 10, 4), "520 nodes": Fleet.regular(130, 4, 8),
}  # fmt: skip
MIXES: dict[str, dict[str, Any]] = {
    "": {}, "crowded": {"jobs": 300, "arrival": 1.0}, "wide": {"gpus": 16}, "long": {"length": 200},
    "crush": {"jobs": 300, "length": 200},
}  # fmt: skip
OF_SCRATCH = ("place", "of", "cost", "stats", "score")
"""As many as there are candidates, or all."""

Make = Callable[..., World]


def digest(*arrays: Any) -> str:
    """Return what tells arrays apart, to the bit."""
    kinds = {"f": np.float64, "i": np.int64, "b": np.int64, "u": np.int64}
    every = [np.asarray(x) for x in arrays]
    return hashlib.sha256(b"".join(x.astype(kinds[x.dtype.kind]).tobytes() for x in every)).hexdigest()[:12]


def worlds(make: Make) -> Iterator[tuple[str, World]]:
    """Yield worlds by name: small and large fleets, few and many jobs, before any arrives."""
    for i, (size, fleet) in enumerate(FLEETS.items()):
        for mix, more in MIXES.items():
            if mix != "crush" or size == "2x4x4":
                world = make(i, arrived=0, fleet=fleet, **more)
                jobs = world.jobs.replace(submit=world.jobs.submit * (mix != "crush"))
                yield f"{size} {mix}".strip(), world.again(jobs)


def observed(world: World) -> str:
    """Return what a decision is: candidates, the jobs listed and held up, what ends, the features and the edges."""
    k, s, g = world.observe(), world.s, world.graph
    if k == 0:
        return "0"
    listed, held, nodes, edges = s.fit, s.not_fit, int(g.kind[-1]), int(g.relation[-1])
    seen = (s.mean, s.mean_work, s.mean_gpus, s.deviation, s.load, s.dearness, s.node_size, s.rack_size, s.surprise)
    scratch = (s.place[:k], s.of[:k], s.take[:k], s.cost[:k], seen, s.score[:k], (s.odd, s.at_once), s.ends[: s.soon], s.idle, s.last)
    queue = s.listed[:listed], s.key[:listed], s.blocked[:held], s.least[:held], s.group
    graph = g.x[:nodes], g.kind, g.source[:edges], g.target[:edges], g.weight[:edges], g.relation
    return f"{k} {digest(*scratch, *queue)} {digest(*graph)}"


def played(world: World) -> Iterator[str]:
    """Yield the episodes of rules, of drawn networks, and of the one that comes with the package."""
    for rule in range(len(CORRECTED)):
        now = world.again()
        yield f"{now.play(drawn(0), rule, learned=False)} {ended(now)}"
    for net in (drawn(1), drawn(2, 0.5, GnnSettings(width=21, rounds=3)), GnnPolicy.load(find("gnn"))):
        now = world.again()
        yield f"{now.play(net)} {ended(now)}"


def ended(world: World) -> str:
    """Return what tells how a world is."""
    x = world.state
    return digest(x.clock, x.count, x.free, x.holder, x.held, x.start, x.finish, x.cost)


def decided(world: World) -> Iterator[str]:
    """Yield some decisions on the way, and the values of candidates in futures, of the rule and of networks."""
    n = len(world.jobs.submit)
    for arrived in (n // 4, n // 2, 3 * n // 4):
        world.play(drawn(0, 0.0), learned=False, until=arrived)
        look(world.jobs, world.cluster, world.state, world.s)
        yield observed(world)
        if world.observe() < 2:
            continue
        of = world.jobs, world.cluster, world.state
        ours, then = imagined(world.jobs, world.cluster, world.state, world.jobs, 12, arrived, 2)
        rows = int(ours.first[-1])
        yield digest(*ours.arrays().values(), then.clock, then.count, then.free, then.holder, then.held[:rows], then.start, then.finish, then.cost, then.urgency,
                     then.queue[: then.count[1]], then.running[: then.count[2]])  # fmt: skip
        other, tried = world.again(), np.arange(min(world.observe(), 6))
        for net, rule, depth in ((drawn(0), PATIENT, 0), (drawn(0), EVOLVED, 0), (drawn(3), PATIENT, 10)):
            value = np.zeros((len(tried), 3))
            weigh(*of, world.jobs, world.s, other.s, net.net, rule, tried, 10, depth, arrived, value)
            yield digest(value)


def guarded(world: World) -> str:
    """Return by how much each was ahead of the rule, and who led."""
    now = world.again()
    now.play(drawn(0), learned=False, until=60)
    arrived, found = int(now.state.count[0]), []
    for net in (drawn(0, 0.0), drawn(1), GnnPolicy.load(find("gnn"))):
        guard = Guard(now.cluster, net.net)
        guard.watch(now.jobs, now.state, known(now.jobs, now.state, arrived), arrived)
        guard.advance()
        found += [digest(np.array(guard.ahead)), str(guard.leader)]
    return " ".join(found)


def labelled() -> list[str]:
    """Return labels of episodes, by rollouts, by those of a network, and by CP-SAT."""
    found = []
    for number, depth, exact in ((0, 0, 0.0), (1, 8, 0.0), (8, 0, 1.0)):
        given = TRAIN[number].episode(7 + number, 30)
        labels = label_episode(given, GnnSettings(exact=exact, tries=5, futures=4), drawn(number).net, number, depth)
        made = [(x.tried, x.regret, x.graph.x, x.graph.source, x.graph.weight) for x in labels]
        found.append(f"{len(made)} {digest(*(y for x in made for y in x))}")
    return found


def test_record(make_world: Make) -> None:
    found = {name: [*played(world.again()), *decided(world.again())] for name, world in worlds(make_world)}
    found["guard"] = [guarded(world) for name, world in worlds(make_world) if "crush" not in name and "520" not in name]
    found["labels"] = labelled()
    Path("/tmp/new.json").write_text(json.dumps(found, indent=0))
