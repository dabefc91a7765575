"""Labels say what places are worth in the end, imitation lowers regret, and the policy gradient goes on as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gangplan.instances import InstanceError
from gangplan.learned.placement.batches import prepared, small
from gangplan.learned.placement.decode import Decoder
from gangplan.learned.placement.imitation import Labelled, Validation, labelled, loss_of
from gangplan.learned.placement.network import Network
from gangplan.learned.placement.recipe import RECIPE
from gangplan.learned.placement.reinforce import Reinforce
from gangplan.learned.placement.settings import Settings
from gangplan.learned.policy import train_policy
from gangplan.solvers.placement.prepare import Batch

SETTINGS = Settings(
    width=8, rounds=1, instances=5, decisions=3, completions=2, updates=8, minibatch=4, validation=3, rl_updates=2,
    rl_batch=1, rl_samples=2, rl_nodes=16, passes=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def known() -> list[Labelled]:
    """Return some labelled decisions."""
    torch.set_num_threads(1)
    return labelled(SETTINGS, None, 100, 0)


def test_regrets_begin_at_zero(known: list[Labelled]) -> None:
    """Each decision has several places, the best of them without regret, and figures that are finite."""
    examples = [e for one in known for e in one.decisions]
    assert len(examples) > 5 and any(e.regret.max() > 0 for e in examples)
    for e in examples:
        assert e.regret.min() == 0 and len(e.regret) == len(e.x) > 1
        assert np.isfinite(e.x).all() and e.place.max() < len(e.x)


def test_imitation_lowers_the_loss(known: list[Labelled]) -> None:
    """Some steps on the same decisions bring the scores nearer to what the regrets say."""
    for labels in ("all", "one"):
        settings = replace(SETTINGS, labels=labels)
        torch.manual_seed(0)
        network = Network(8, 1)
        loss, rng = loss_of(network, settings), np.random.default_rng(0)
        optimizer = torch.optim.Adam(network.parameters(), 1e-2)
        before = float(loss(known, rng).detach())
        for _ in range(15):
            optimizer.zero_grad()
            value = loss(known, rng)
            value.backward()
            optimizer.step()
        assert float(loss(known, rng).detach()) < 0.97 * before


def test_the_policy_gradient_goes_on_as_it_was() -> None:
    """A learner that was written down and loaded makes the same update."""
    batch = prepared(small("train", 0))
    assert batch is not None

    def made() -> Reinforce:
        torch.manual_seed(0)
        return Reinforce(Network(8, 1), SETTINGS, Validation([batch], SETTINGS), 0)

    first, second = made(), made()
    first.update(1)
    second.load(*first.state())
    assert first.update(2) == second.update(2)
    assert first.validate() == second.validate()


def test_the_policy_gradient_learns_what_pays() -> None:
    """Places that cost less than the others' mean become more likely: the score of the cheaper of two grows."""
    settings = replace(SETTINGS, rl_samples=8, rl_rate=3e-3)
    batch = prepared(small("train", 1))
    assert batch is not None
    torch.manual_seed(0)
    network = Network(8, 1)
    with torch.no_grad():
        network.steep.fill_(-3.0)  # all places about as likely
    learner = Reinforce(network, settings, Validation([batch], settings), 0)
    before = float(network.steep.detach())
    for step in range(3):
        learner.update(step + 1)
    assert float(network.steep.detach()) > before


def test_the_recipe_trains_and_loads(tmp_path: Path) -> None:
    """A short training by its configuration ends with weights that place a batch."""
    config = tmp_path / "short.toml"
    fields = (
        "width",
        "rounds",
        "instances",
        "decisions",
        "completions",
        "updates",
        "minibatch",
        "validation",
        "passes",
    )
    fields += ("rl_updates", "rl_batch", "rl_samples", "rl_nodes")
    lines = ['policy = "placement"', "validate_every = 4", *(f"{x} = {getattr(SETTINGS, x)}" for x in fields)]
    config.write_text("\n".join(lines))
    done = train_policy(config, tmp_path / "run")
    assert done.weights is not None and done.card is not None and done.card.policy == "placement"
    policy = RECIPE.load(done.weights)
    rows = RECIPE.evaluate(policy, range(2))
    assert all(row["placed"] >= row["learned"] >= row["bound"] * (1 - 1e-9) for row in rows)
    assert Decoder(policy, Batch(small("train", 2))).place() is not None


def test_the_policy_gradient_alone_is_a_setting() -> None:
    """Without passes there is one stage; with nothing to learn from the field is named."""
    alone = replace(SETTINGS, passes=0, rl_updates=3)
    assert [stage.name for stage in RECIPE.stages(alone, "cpu", 0)] == ["rl"]
    with pytest.raises(InstanceError, match="passes"):
        replace(SETTINGS, passes=0, rl_updates=0)
