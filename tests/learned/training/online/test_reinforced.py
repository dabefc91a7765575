"""Evolution strategies of the graph policy: opposites play the same arrivals, and the better one is gone towards."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gangplan.learned.online.schema import SCHEMA
from gangplan.learned.online.settings import GnnSettings
from gangplan.learned.training.network import GraphNetwork
from gangplan.learned.training.online import reinforced
from gangplan.learned.training.online.reinforced import Reinforced, pays
from gangplan.simulator.gangs.formula import FORMULAS
from gangplan.simulator.gangs.traffic import episode

from ...conftest import short

pytestmark = pytest.mark.usefixtures("one_thread")
SETTINGS = GnnSettings(width=8, rounds=1, rl_updates=8, rl_rate=1.5, rl_pairs=6, rl_jobs=240, rl_spread=2.0)


def network(spread: float = 0.3) -> GraphNetwork:
    """Return a network that is the rule, or one whose every number is drawn."""
    torch.manual_seed(0)
    made = GraphNetwork(SCHEMA, SETTINGS.width, SETTINGS.rounds, ranged=True)
    for x in made.parameters() if spread else ():
        torch.nn.init.normal_(x, std=spread)
    if spread:
        torch.nn.init.normal_(made.last.weight)
    return made


def learner(of: GraphNetwork) -> Reinforced:
    """Return what trains it; nobody judges."""
    return Reinforced(of, lambda x: {}, SETTINGS, short, rate=SETTINGS.rl_rate, updates=8, seed=0, average=0.5)


def behind(of: torch.nn.Module) -> float:
    """Return by how much it is behind the rule on runs of other seeds."""
    runs = [short(5000 + i, 360) for i in range(12)]
    rule, net, none = SETTINGS.rule, of.compiled(), network(0.0).compiled()
    return float(np.mean([pays(x, net, rule) - pays(x, none, rule) for x in runs]))


def test_an_untrained_network_pays_what_the_rule_does() -> None:
    """On grounds of 256 to 1,024 GPUs."""
    run = episode(0, 60, 2_000_000, gpus=reinforced.GPUS)
    assert pays(run, network(0.0).compiled(), "patient") == pytest.approx(np.log(run.by(FORMULAS["patient"])))
    assert run.cluster.first[-1] in reinforced.GPUS


def test_the_same_curve() -> None:
    """What was saved after an update goes on as if it had not been, with the average of the weights."""
    first, second = (learner(network()) for _ in range(2))
    first.update(1)
    tensors, plain = first.state()
    tensors = {name: x.clone() for name, x in tensors.items()}
    second.load(tensors, plain)
    assert first.update(2) == second.update(2)
    kept = [x.state()[0] for x in (first, second)]
    assert all(torch.equal(kept[0][name], kept[1][name]) for name in kept[0])
    assert not torch.equal(kept[0]["policy.last.weight"], tensors["policy.last.weight"])


@pytest.mark.parametrize("sign", [1, -1])
def test_updates_go_where_it_pays(monkeypatch: pytest.MonkeyPatch, sign: int) -> None:
    """A network whose numbers were drawn loses less to the rule on other runs; by updates of the wrong sign, more."""
    monkeypatch.setattr(reinforced, "RUNS", 2)
    monkeypatch.setattr(reinforced, "pays", lambda *x: sign * pays(*x))
    of = network()
    before, trained = behind(of), learner(of)
    for step in range(1, SETTINGS.rl_updates + 1):
        trained.update(step)
    assert before > 0.15 and sign * (behind(trained.networks["policy"]) - before) < -0.1
