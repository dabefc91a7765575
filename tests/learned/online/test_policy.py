"""The selector keeps the contract of learned policies, makes checked schedules, and loads what it wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gangplan.instances import InstanceError
from gangplan.learned import Case, check_policy
from gangplan.learned.policy import read_card, shipped
from gangplan.learned.policy.recipe import train_policy
from gangplan.learned.training.perceptron import Perceptron
from gangplan.simulator.gangs.arrays import begin
from gangplan.simulator.gangs.mixes import Mix
from gangplan.systems.topdrl.rules import rule
from gangplan.systems.topdrl.select.features import WIDTH
from gangplan.systems.topdrl.select.policy import Observation, SelectPolicy
from gangplan.systems.topdrl.simulate import simulate
from gangplan.systems.topdrl.suites import VALIDATION, suite

SHIPPED = sorted(name for name, path in shipped().items() if read_card(path).policy == "select")


def policy() -> SelectPolicy:
    """Return a policy with random weights."""
    torch.manual_seed(3)
    return SelectPolicy(Perceptron(WIDTH, 16))


def test_policy_keeps_the_contract(make_world: Callable[..., Any]) -> None:
    """Scores, choices, files and orders of candidates are as every learned policy's, on larger clusters, too."""
    made, cases, rng = policy(), [], np.random.default_rng(0)
    for seed, racks in ((0, 2), (1, 2), (2, 6)):
        jobs, cluster, state, _ = make_world(seed, racks=racks, arrival=0.6 * racks / 6 + 0.4, jobs=200, arrived=150)
        seen = made.observe(jobs, cluster, state)
        assert seen is not None
        n = len(seen.rows)
        order = rng.permutation(n)
        other = Observation(seen.rows[order], seen.place[order], seen.take[order])
        cases.append(Case(f"{racks} racks", seen, np.ones(n, bool), [(other, np.argsort(order))], racks > 2))
    check_policy(made, cases)


@pytest.mark.parametrize("guarded", [False, True])
def test_schedules_are_checked(guarded: bool) -> None:
    """A policy with random weights, guarded or not, makes a schedule that holds, twice the same."""
    fleet = suite("small").fleet
    found = [simulate(Mix(jobs=80).draw(1), fleet, SelectPolicy(policy().network, guarded=guarded)) for _ in range(2)]
    assert (found[0].finish == found[1].finish).all()


def test_training_from_a_configuration(tmp_path: Path) -> None:
    """A short training writes weights that load and finish a workload; a wrong setting is named."""
    config = tmp_path / "few.toml"
    text = "labels = 150\nfutures = 2\nupdates = 20\nvalidate_every = 10\n"
    config.write_text(f'policy = "select"\nwidth = 8\nvalidation_seeds = 1\n{text}')
    done = train_policy(config, tmp_path / "run")
    assert done.weights is not None
    assert done.card is not None
    assert done.card.validation["score"] > 0
    made = SelectPolicy.load(done.weights)
    work = Mix(jobs=30).draw(5)
    assert np.isfinite(simulate(work, suite("small").fleet, made).finish).all()
    config.write_text('policy = "select"\nwidth = 0\n')
    with pytest.raises(InstanceError, match="width"):
        train_policy(config, tmp_path / "other")


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("of", ["small", "expensive", "loaded"])
def test_shipped_weights_are_ahead_of_rules(name: str, of: str) -> None:
    """On validation workloads the mean JCT is at least 5% below that of the best of the rules."""
    made, loaded = suite(of), SelectPolicy.load(shipped()[name])
    found: dict[str, list[float]] = {}
    for seed in range(VALIDATION, VALIDATION + 6):
        work, told = made.draw(seed)
        for label, one in (("learned", loaded), ("least_work", rule("least_work")), ("linear", rule("linear"))):
            outcome = simulate(work, made.fleet, one, made.proximity, expected=told)
            found.setdefault(label, []).append(float((outcome.finish - work.submit).mean()))
    mean = {label: np.mean(values) for label, values in found.items()}
    assert mean.pop("learned") < 0.95 * min(mean.values())


def test_without_anything_to_decide(make_world: Callable[..., Any]) -> None:
    """Before the first arrival there is nothing to decide."""
    jobs, cluster, _, _ = make_world(0)
    assert policy().observe(jobs, cluster, begin(jobs, cluster)) is None
