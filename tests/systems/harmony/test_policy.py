"""Networks score every action, and read every part of the state."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gangplan.learned.training.trainer import start
from gangplan.systems.harmony.observe import actions, width, widths
from gangplan.systems.harmony.policy import FeedForward, policy_network
from gangplan.systems.harmony.recipe import HarmonySettings

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("architecture", ["feedforward", "attention"])
def test_every_part_is_read(architecture: Any) -> None:
    """What is free, a waiting job, its tasks, a running job and the backlog each change the state that they are in."""
    settings = HarmonySettings(architecture=architecture, slots=3, running=4, width=16)
    network, rows = start(lambda: policy_network(settings), 0, None), torch.zeros(2, width(settings))
    servers, waiting, _ = widths(settings)
    rows[:, servers] = rows[:, servers + waiting] = rows[:, servers + waiting + 10] = 1.0  # a job waits, and one runs
    before = network(rows)
    assert before.shape == (2, actions(settings)) and FeedForward(settings, 1)(rows).shape == (2, 1)
    for place in (0, servers + 3, servers + 14, servers + waiting + 15, -3):
        changed = rows.clone()
        changed[1, place] += 1.0
        assert (network(changed) != before).any(dim=1).tolist() == [False, True]
    rows[1, -2:] = 1.0  # what the critic alone is shown
    assert torch.equal(network(rows), before) and FeedForward(settings, 1)(rows).diff(dim=0) != 0


def test_attention_sees_jobs_and_servers() -> None:
    """A job that runs on another server changes the scores; absent jobs change none but their own."""
    settings = HarmonySettings(slots=3, running=4, width=16)
    network, servers, k = start(lambda: policy_network(settings), 0, None), *widths(settings)[:2]
    first, second = torch.zeros(2, 1, width(settings))
    for row, server in ((first, 0), (second, 3)):
        row[:, servers] = 1.0
        row[:, servers + k + 1] = row[:, servers + k + 8 + 2 * server] = 1.0
    assert not torch.allclose(network(first), network(second))
    absent = first.clone()
    absent[:, servers + 2 * 26 + 20] = 3.0  # of a slot without a type
    change = (network(absent) - network(first)).abs()[0]
    assert change[:24].max() < 1e-6 < change[24:36].max()
