"""The PAC-ML policy keeps the contract, on clusters of other sizes too; weights load."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gangplan.instances import InstanceError
from gangplan.learned import Case, check_policy
from gangplan.learned.policy import Card, read_card, shipped
from gangplan.learned.policy.weights import LIMIT, save
from gangplan.systems.pacml.arrivals import arrivals
from gangplan.systems.pacml.learned.network import BlockNetwork
from gangplan.systems.pacml.learned.policy import RampObservation, RampPolicy
from gangplan.systems.pacml.learned.recipe import RECIPE, PacmlSettings
from gangplan.systems.pacml.learned.values import Scenario
from gangplan.systems.pacml.simulate import simulate

SHIPPED = sorted(name for name, path in shipped().items() if read_card(path).policy == "pacml")


def policy(**settings: Any) -> RampPolicy:
    """Return a policy with random weights."""
    torch.manual_seed(3)
    return RampPolicy(BlockNetwork(24), PacmlSettings(**settings))


@pytest.fixture(scope="module")
def large(make_scenario: Callable[..., Scenario]) -> Scenario:
    """Return two made networks on 512 servers, 16 times as many as those of the published cluster."""
    return make_scenario((8, 8, 8), 2)


def observed(scenario: Scenario, made: RampPolicy, count: int) -> list[RampObservation]:
    """Return what the policy sees of the last jobs of a case it plays."""
    seen: list[RampObservation] = []

    class Watched(RampPolicy):
        def choose(self, observation: RampObservation, seed: int | None = None) -> int:
            seen.append(observation)
            return super().choose(observation, seed)

    simulate(arrivals(scenario.types, "D", 0, n=40), Watched(made.network, made.settings))
    return sorted(seen, key=lambda x: len(x.rows))[-count:]


def case(name: str, seen: RampObservation, larger: bool) -> Case:
    """Return a decision, and the same with other names of servers, which change the order of rows."""
    rng = np.random.default_rng(len(seen.rows))
    order = rng.permutation(len(seen.rows))  # row i becomes row order[i]
    back = np.argsort(order)
    rows = RampObservation(seen.rows[back], seen.block[back], seen.part[back])
    return Case(name, seen, np.ones(len(order), dtype=bool), [(rows, order)], larger)


def test_contract(scenario: Scenario, large: Scenario) -> None:
    """Names of servers, seeds, saving and clusters of 512 servers: all as the contract says."""
    made = policy()
    cases = [case(f"32 servers, {i}", x, False) for i, x in enumerate(observed(scenario, made, 3))]
    cases += [case(f"512 servers, {i}", x, True) for i, x in enumerate(observed(large, made, 2))]
    assert all(len(x.allowed) > 3 for x in cases)
    check_policy(made, cases)


def test_saved(tmp_path: Path) -> None:
    """Width and whether it chooses blocks come back; weights of another policy or width are refused."""
    made = policy(blocks=False, units=("physical",))
    made.save(tmp_path / "mine")
    again = RampPolicy.load(tmp_path / "mine")
    assert again.settings == PacmlSettings(blocks=False, width=24)
    tensors = made.network.state_dict()
    for card, words in (
        (Card("x", "another"), "policy: 'another' is not pacml"),
        (Card("x", "pacml", settings={"width": 32}), "tensors"),
        (Card("x", "pacml", settings={"width": -1}), "settings.width: -1 is not positive"),
        (Card("x", "pacml", settings={"widht": 24}), "settings.widht: is unknown"),
    ):
        save(tmp_path / "other", tensors, card)
        with pytest.raises(InstanceError, match=words):
            RampPolicy.load(tmp_path / "other")


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped(name: str, data: Path) -> None:
    """Shipped weights are small, and on a seed block no more than the best rule on any distribution they are for."""
    path = shipped()[name]
    assert path.stat().st_size < LIMIT
    card = read_card(path)
    for units in card.settings.get("units", PacmlSettings().units):
        rows = RECIPE.evaluate(RECIPE.load(path), [0], profiles=str(data / "pipedream"), units=units)
        for distribution in "ABCD":
            here = {x["policy"]: x["blocked_or_running"] for x in rows if x["case"] == distribution}
            mine = here.pop("learned")
            assert mine <= min(here.values()), (units, distribution)
