"""The network reads images: its scores are one an action, and change with what the images show."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gangplan.systems.topdrl.published.network import Critic, Network
from gangplan.systems.topdrl.published.recipe import Settings

SMALL: dict[str, Any] = {"slots": 6, "channels": 4, "width": 16}


def rows(settings: Settings) -> torch.Tensor:
    """Return three states in which nothing runs or waits."""
    return torch.zeros(3, settings.rows * (settings.gpus + settings.slots * settings.widest) + 6, dtype=torch.float16)


@pytest.mark.parametrize("head", ["shared", "dense"])
@pytest.mark.parametrize("branches", ["several", "one"])
@pytest.mark.parametrize(("decides", "slots", "actions"), [("job", 6, 7), ("gpus", 1, 32)])
def test_shapes(decides: Any, slots: int, actions: int, branches: Any, head: Any) -> None:
    """There is a score an action and a value a state, whichever branches and head there are."""
    settings = Settings(decides=decides, branches=branches, head=head, **SMALL | {"slots": slots})
    assert Network(settings)(rows(settings)).shape == (3, actions)
    assert Critic(settings)(rows(settings)).shape == (3,)


@pytest.mark.parametrize("branches", ["several", "one"])
def test_every_part_is_read(branches: Any) -> None:
    """A busy GPU, a job in the last slot and a backlog each change the scores of the state that they are in alone."""
    settings = Settings(branches=branches, **SMALL)
    torch.manual_seed(0)
    network = Network(settings)
    before = network(rows(settings))
    last = settings.rows * (settings.gpus + settings.slots * settings.widest)
    for place in (settings.gpus - 1, last - 1, last):
        state = rows(settings)
        state[1, place] = 1.0
        changed = (network(state) != before).any(dim=1)
        assert changed.tolist() == [False, True, False]


def test_slots_share_weights() -> None:
    """The same job has the same score in any slot, beside the common part, with a shared head."""
    settings = Settings(**SMALL)
    torch.manual_seed(0)
    network, state = Network(settings), rows(settings)
    queue = state[:, settings.rows * settings.gpus : -6].reshape(3, settings.slots, settings.rows, settings.widest)
    queue[1, 2, :7, :3] = queue[1, 5, :7, :3] = 1.0
    state[:, settings.rows * settings.gpus : -6] = queue.reshape(3, -1)
    scores = network(state)[1].detach()
    assert scores[2] == pytest.approx(scores[5].item(), rel=1e-5) and scores[2] != pytest.approx(scores[4].item())
