"""Decisions, episodes, futures, labels and guards are to the bit those of numba's kernels, and of the plain source."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances.placement import Fleet
from gangplan.learned.graph import compiled
from gangplan.learned.online import candidates, episodes, features, graph, rollouts
from gangplan.learned.online.guard import Guard, known
from gangplan.learned.online.policy import GnnPolicy
from gangplan.learned.online.schema import CANDIDATE
from gangplan.learned.online.settings import GnnSettings
from gangplan.learned.policy.weights import find
from gangplan.learned.training.online.labels import label_episode
from gangplan.simulator.gangs import allocate, arrays, formula, listing, step
from gangplan.simulator.gangs.formula import EVOLVED, PATIENT
from gangplan.simulator.gangs.traffic import TRAIN
from gangplan.solvers import native
from gangplan.solvers.placement.online import closest

from ...solvers.uncompiled import uncompiled
from ..conftest import CORRECTED, UNEQUAL, World, drawn

GOLDEN = json.loads(Path(__file__).with_suffix(".json").read_text())
"""What numba's kernels of commit feefd4b9 made of `worlds`; networks' scores had other last bits, decisions not."""
FLEETS = {
    "2x4x4": Fleet.regular(2, 4, 4), "4x8x8": Fleet.regular(4, 8, 8), "unequal": UNEQUAL,
    "70 nodes": Fleet.regular(7, 10, 4), "520 nodes": Fleet.regular(130, 4, 8),
}  # fmt: skip
MIXES: dict[str, dict[str, Any]] = {
    "": {}, "crowded": {"jobs": 300, "arrival": 1.0}, "wide": {"gpus": 16}, "long": {"length": 200},
    "crush": {"jobs": 300, "length": 200},
}  # fmt: skip
NAMES = [f"{size} {mix}".strip() for size in FLEETS for mix in MIXES if mix != "crush" or size == "2x4x4"]
SOURCES = (
    native, closest, arrays, step, allocate, listing, formula, compiled, candidates, features, graph, episodes,
)  # fmt: skip

NARROW = GnnSettings(width=8, rounds=1)

Make = Callable[..., World]


def digest(*every: Any) -> str:
    """Return what tells arrays apart, to the bit."""
    rows = (np.asarray(x) for x in every)
    wide = (x.astype(np.float64 if x.dtype.kind == "f" else np.int64) for x in rows)
    return hashlib.sha256(b"".join(x.tobytes() for x in wide)).hexdigest()[:12]


def world_of(make: Make, name: str) -> World:
    """Return a world before the first job arrives; in a crush all do at once."""
    size = next(x for x in FLEETS if name.startswith(x))
    mix = name.removeprefix(size).strip()
    world = make([*FLEETS].index(size), arrived=0, fleet=FLEETS[size], **MIXES[mix])
    return world.again(world.jobs.replace(submit=world.jobs.submit * (mix != "crush")))


def observed(world: World) -> str:
    """Return what a decision is: candidates, the jobs listed and held up, what ends, the features and the edges."""
    k, s, g = world.observe(), world.s, world.graph
    if k == 0:
        return "0"
    nodes, edges = int(g.kind[-1]), int(g.relation[-1])
    about = (s.mean, s.mean_work, s.mean_gpus, s.deviation, s.load, s.dearness, s.node_size, s.rack_size, s.surprise)
    scratch = (s.place[:k], s.of[:k], s.take[:k], s.cost[:k], about, s.score[:k], (s.odd, s.at_once))
    ahead = s.ends[: s.soon], s.idle, s.last
    queue = s.listed[: s.fit], s.key[: s.fit], s.blocked[: s.not_fit], s.least[: s.not_fit], s.group
    whole = g.x[:nodes], g.kind, g.source[:edges], g.target[:edges], g.weight[:edges], g.relation
    return f"{k} {digest(*scratch, *ahead, *queue)} {digest(*whole)}"


def played(world: World) -> Iterator[str]:
    """Yield the episodes of rules, of drawn networks, and of the one that comes with the package."""
    nets = drawn(1), drawn(2, 0.5, GnnSettings(width=21, rounds=3)), GnnPolicy.load(find("gnn"))
    for policy, rule in (*((None, rule) for rule in range(len(CORRECTED))), *((net, 0) for net in nets)):
        now = world.again()
        decisions, x = now.play(policy or drawn(0), rule, learned=policy is not None), now.state
        yield f"{decisions} {digest(x.clock, x.count, x.free, x.holder, x.held, x.start, x.finish, x.cost)}"


def decided(world: World) -> Iterator[str]:
    """Yield some decisions on the way, and the values of candidates in futures, of the rule and of networks."""
    n = len(world.jobs.submit)
    for arrived in (n // 4, n // 2, 3 * n // 4):
        world.play(drawn(0, 0.0), learned=False, until=arrived)
        yield observed(world)
        if world.observe() < 2:
            continue
        of = world.jobs, world.cluster, world.state
        ours, then = rollouts.imagined(*of, world.jobs, 12, arrived, 2)
        queue, running = then.queue[: then.count[1]], then.running[: then.count[2]]
        place = then.clock, then.count, then.free, then.holder, then.held
        times = then.start, then.finish, then.cost, then.urgency
        yield digest(*ours.arrays().values(), *place, *times, queue, running)
        tried = np.arange(min(world.observe(), 6))
        for rule in (PATIENT, EVOLVED):
            value = np.zeros((len(tried), 3))
            rollouts.weigh(*of, world.jobs, world.s, rule, tried, 10, arrived, value)
            yield digest(value)


@pytest.mark.parametrize("name", NAMES)
def test_decisions_are_those_recorded(make_world: Make, name: str) -> None:
    """Candidates, features, edges, futures and episodes, by rules and by networks, are what numba's kernels made."""
    world = world_of(make_world, name)
    assert [*played(world), *decided(world)] == GOLDEN[name]


@pytest.mark.parametrize("number", range(16))
def test_guards_are_those_recorded(make_world: Make, number: int) -> None:
    """By how much networks and rules are ahead is what numba's kernels found, and so is who leads."""
    names = [name for name in NAMES if "crush" not in name and "520" not in name]
    world, found = world_of(make_world, names[number]), list[str]()
    world.play(drawn(0), learned=False, until=60)
    arrived = int(world.state.count[0])
    for policy in (drawn(0, 0.0), drawn(1), GnnPolicy.load(find("gnn"))):
        guard = Guard(world.cluster, policy.net)
        guard.watch(world.jobs, world.state, known(world.jobs, world.state, arrived), arrived)
        guard.advance()
        found += [digest(np.array(guard.ahead)), str(guard.leader)]
    assert " ".join(found) == GOLDEN["guard"][number]


@pytest.mark.parametrize(("at", "number", "exact"), [(0, 0, 0.0), (1, 8, 1.0)])
def test_labels_are_those_recorded(at: int, number: int, exact: float) -> None:
    """By rollouts and by CP-SAT labels are what numba's kernels led to."""
    given, settings = TRAIN[number].episode(7 + number, 30), GnnSettings(exact=exact, tries=5, futures=4)
    labels = [*label_episode(given, settings, drawn(number).net, number)]
    rows = [y for x in labels for y in (x.tried, x.regret, x.graph.x, x.graph.source, x.graph.weight)]
    assert f"{len(labels)} {digest(*rows)}" == GOLDEN["labels"][at]


def test_the_rules_score_is_where_it_is_said() -> None:
    """Compiled code knows features by number."""
    assert (CANDIDATE.index("by_rule"), len(CANDIDATE)) == (features.BY_RULE, features.FEATURES)


@pytest.mark.parametrize(("name", "until"), [("2x4x4 crowded", 150), ("unequal crowded", 100)])
def test_the_source_does_what_is_compiled(make_world: Make, name: str, until: int) -> None:
    """Run from the source as plain Python a decision, and what candidates come to in a future, are the same."""
    world, policy = world_of(make_world, name), drawn(1)
    world.play(policy, until=until)
    source, found = vars(uncompiled(*SOURCES, rollouts)) | vars(uncompiled(*SOURCES)), list[tuple[Any, ...]]()
    fast = {name: x for module in (*SOURCES, rollouts) for name, x in vars(module).items()}
    for of in (fast, source):
        kinds = {"Jobs": world.jobs, "GpuRacks": world.cluster, "State": world.state, "CompiledNetwork": policy.net}
        *at, net = (of[kind](*x.copy().arrays().values()) for kind, x in kinds.items())
        s, value = of["CandidateScratch"](at[1]), np.zeros((3, 1))
        k = of["observe"](*at, s, net, PATIENT, False)
        of["weigh"](*at, at[0], s, EVOLVED, np.arange(3), 3, 5, value)
        found.append((k, digest(s.place[:k], s.take[:k], s.score[:k], s.graph.x[: s.graph.kind[-1]]), digest(value)))
    assert found[0] == found[1] and found[0][0] > 2


@pytest.mark.parametrize("shape", [(9, 8, 4), (66, 1, 2)])
def test_no_index_leaves_its_array(make_world: Make, shape: tuple[int, int, int]) -> None:
    """On more nodes and racks than are told apart plain Python, which looks at bounds, decides the same."""
    world, net = make_world(0, arrived=20, fleet=Fleet.regular(*shape), jobs=40), drawn(1, settings=NARROW).net
    plain = vars(uncompiled(*SOURCES))
    kinds = {"Jobs": world.jobs, "GpuRacks": world.cluster, "State": world.state, "CompiledNetwork": net}
    *at, slow = (plain[kind](*x.copy().arrays().values()) for kind, x in kinds.items())
    s, k = plain["CandidateScratch"](at[1]), episodes.observe(*world, net, PATIENT, False)
    assert plain["observe"](*at, s, slow, PATIENT, False) == k > 1
    assert digest(s.take[:k]) == digest(world.s.take[:k])
    np.testing.assert_allclose(s.score[:k], world.s.score[:k], rtol=1e-5)  # Python sums up in 64 bits


def test_sizes_that_do_not_fit_are_refused(make_world: Make) -> None:
    """What is of another cluster, network or decision is not read or written beyond its end."""
    world, large, policy = make_world(0), make_world(0, fleet=FLEETS["4x8x8"]), drawn(0)
    jobs, cluster, state, s = world
    world.observe()
    value, tried = np.zeros((2, 3)), np.arange(2)
    weighed = (jobs, cluster, state, jobs, s, PATIENT)
    wide, full = jobs.replace(gpus=jobs.gpus + 32), state.copy()
    full.free[:] = 0
    for call in (
        lambda: episodes.observe(jobs, cluster, state, large.s, policy.net, PATIENT, False),
        lambda: episodes.observe(jobs, cluster, large.state, s, policy.net, PATIENT, False),
        lambda: episodes.play(wide, cluster, state, s, policy.net, PATIENT, True, 99, 99),
        lambda: episodes.look(jobs, large.cluster, state, s),
        lambda: rollouts.weigh(*weighed, tried, 3, 0, value[:1]),
        lambda: rollouts.weigh(*weighed, tried + 999, 3, 0, value),
        lambda: rollouts.weigh(jobs, cluster, full, *weighed[3:], tried, 3, 0, value),
        lambda: rollouts.weigh(*weighed, tried, -1, 0, value),
        lambda: rollouts.imagined(jobs, cluster, state, jobs.replace(gpus=-jobs.gpus), 3, 0, 0),
    ):
        with pytest.raises(ValueError, match=r" (not|no|none) "):
            call()
