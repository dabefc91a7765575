"""The policy keeps the contract of learned policies, makes checked schedules, and loads what it wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.learned import Case, check_policy
from gangplan.learned.graph.compiled import Graph, shapes
from gangplan.learned.online.policy import GnnPolicy, Observation
from gangplan.learned.online.schema import SCHEMA
from gangplan.learned.online.settings import GnnSettings
from gangplan.simulator.gangs.mixes import Mix
from gangplan.systems.topdrl.simulate import simulate

from ..conftest import SMALL, drawn


def renamed(seen: Observation, rng: np.random.Generator) -> tuple[Observation, np.ndarray]:
    """Return a decision with the nodes of each kind, and the edges of each relation, in another order."""
    graph, n = seen.graph, int(seen.graph.kind[-1])
    order = np.concatenate([a + rng.permutation(b - a) for a, b in zip(graph.kind[:-1], graph.kind[1:], strict=True)])
    edges = np.concatenate(
        [a + rng.permutation(b - a) for a, b in zip(graph.relation[:-1], graph.relation[1:], strict=True)]
    )
    back, first = np.argsort(order), order[: len(seen.place)]
    other = Graph(
        graph.x[:n][order], graph.kind, back[graph.source[edges]], back[graph.target[edges]], graph.weight[edges],
        graph.relation,
    )  # fmt: skip
    return Observation(other, seen.place[first], seen.take[first], seen.at_once), back[: len(seen.place)]


@pytest.mark.parametrize("messages", [True, False])
def test_policy_keeps_the_contract(make_world: Callable[..., Any], messages: bool) -> None:
    """Scores, choices, files and names are as every learned policy's, on larger clusters, too."""
    policy, cases = drawn(3, settings=GnnSettings(width=8, rounds=2, messages=messages)), []
    rng = np.random.default_rng(0)
    for seed, shape in ((0, (2, 4, 4)), (1, (2, 4, 4)), (2, (4, 8, 8)), (3, (7, 10, 4))):
        world = make_world(seed, fleet=Fleet.regular(*shape), jobs=200, arrived=150)
        seen = policy.observe(world.jobs, world.cluster, world.state)
        assert seen is not None
        allowed = np.ones(len(seen.place), bool)
        cases.append(Case(str(shape), seen, allowed, [renamed(seen, rng) for _ in range(2)], shape[0] > 2))
    check_policy(policy, cases)


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("shape", [(2, 4, 4), (4, 8, 8)])
def test_schedules_are_checked(guarded: bool, shape: tuple[int, int, int]) -> None:
    """A policy with random weights, guarded or not, makes a schedule that holds, twice the same."""
    fleet = Fleet.regular(*shape)
    work = Mix(jobs=80, gpus=fleet.n_gpus).draw(1)
    outcomes = [simulate(work, fleet, drawn(3, guarded=guarded)) for _ in range(2)]
    assert np.isfinite(outcomes[0].finish).all()
    assert (outcomes[0].finish == outcomes[1].finish).all()


def test_without_anything_to_decide(make_world: Callable[..., Any]) -> None:
    """Before the first arrival there is nothing to decide."""
    world = make_world(0, arrived=0)
    assert drawn(0).observe(world.jobs, world.cluster, world.state) is None


def test_an_observation_stays_as_it_is(make_world: Callable[..., Any]) -> None:
    """It has room of its own: what is decided or observed later does not change it."""
    world, policy = make_world(0), drawn(0)
    seen = policy.observe(world.jobs, world.cluster, world.state)
    scores, place = policy.score(seen), seen.place.copy()
    world.play(policy, until=50)
    policy.observe(world.jobs, world.cluster, world.state)
    assert np.array_equal(policy.score(seen), scores) and np.array_equal(seen.place, place)


def test_files(tmp_path: Path) -> None:
    """Numbers and settings come back, options are those of the class, and the card says what they are."""
    policy = drawn(1)
    policy.save(tmp_path / "mine")
    loaded = GnnPolicy.load(tmp_path / "mine.safetensors", guarded=False)
    assert loaded.settings == SMALL and not loaded.guarded
    assert all(np.array_equal(loaded.tensors[name], x) for name, x in policy.tensors.items())
    card = json.loads((tmp_path / "mine.json").read_text())
    assert (card["policy"], card["settings"]["width"]) == ("gnn", 8)


def edit(path: Path, **changes: Any) -> None:
    """Change a card."""
    path.with_suffix(".json").write_text(json.dumps(json.loads(path.with_suffix(".json").read_text()) | changes))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: edit(path, policy="topdrl"), "policy: 'topdrl' is not gnn"),
        (lambda path: edit(path, settings={"width": 8, "rounds": -1}), r"settings\.rounds: -1"),
        (lambda path: edit(path, settings={"width": 8, "depths": 2}), r"settings\.depths"),
        (lambda path: edit(path, settings={"width": 9, "rounds": 2}), r"tensors\['head.weight'\]: has shape \(8, 8\)"),
        (lambda path: edit(path, settings={"width": 8, "rounds": 3}), r"tensors\['own.2.candidate.weight'\]: is miss"),
        (lambda path: edit(path, settings={"width": 8, "rounds": 2, "messages": False}), "is none of the network's"),
        (lambda path: edit(path, sha256="no"), "sha256: the tensors are not those"),
        (lambda path: path.with_suffix(".json").write_text("{"), "mine.json"),
        (lambda path: path.write_bytes(path.read_bytes()[:1000]), "tensors: are broken or cut off"),
        (lambda path: path.write_bytes(b""), "tensors: are broken or cut off"),
        (lambda path: path.unlink(), "mine.safetensors"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, damage: Callable[[Path], None], words: str) -> None:
    """They are refused with their name and what is wrong."""
    path = tmp_path / "mine.safetensors"
    drawn(1).save(path)
    damage(path)
    with pytest.raises(InstanceError, match=words) as error:
        GnnPolicy.load(path)
    assert "mine" in str(error.value)


def test_what_is_not_finite_is_not_written(tmp_path: Path) -> None:
    """Nor is a file left behind."""
    policy = drawn(1)
    policy.tensors["head.bias"][0] = np.inf
    with pytest.raises(InstanceError, match=r"tensors\['head.bias'\]: holds a number that is not finite"):
        policy.save(tmp_path / "mine")
    assert not [*tmp_path.iterdir()]


def test_the_network_of_a_file_has_its_shapes() -> None:
    """Those of the settings, with which the policy was trained."""
    assert {name: x.shape for name, x in drawn(0).tensors.items()} == shapes(SCHEMA, 8, 2, ranged=True)
