"""PPO on many episodes side by side; a reward for every job accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..training.checkpoint import Tensors
from ..training.ppo import Decisions, PpoLoss, PpoUpdate, advantages
from ..training.segments import segment_log_softmax
from ..training.state import (
    pack_optimizer,
    pack_random,
    pack_torch,
    prefixed,
    under,
    unpack_optimizer,
    unpack_random,
    unpack_torch,
)
from .imitation import gather
from .lanes import Lanes
from .network import Critic, Network
from .settings import Settings
from .validation import Validation

PAID = 0.2
"""For a job accepted: returns are then about 10, whatever the blocking."""

CRITIC_PASSES, MINIBATCH = 3, 1024
"""Over what was seen in an update, and states in a step."""

LEAST = 0.03
"""Of its first value, what the learning rate ends at."""


class Reinforce:
    """Trains a network by PPO, see `gangplan.learned.training.Learner`.

    Args:
        network: is trained.
        lanes: episodes, in one or more worlds.
        validation: judges it.
        settings: of PPO.
        seed: of the choices and the shuffles.
        device: where the network is.
    """

    def __init__(
        self,
        network: Network,
        lanes: Sequence[Lanes],
        validation: Validation,
        settings: Settings,
        seed: int,
        device: str = "cpu",
    ) -> None:
        self.network, self.lanes, self.validation, self.settings = network.to(device), list(lanes), validation, settings
        self.device = device
        self.critic = Critic(settings.width).to(device)
        with torch.no_grad():
            self.critic.layers[-1].bias.fill_(0.8 * PAID / (1 - settings.gamma))
        self._rng = np.random.default_rng(seed)
        self._torch = torch.Generator().manual_seed(seed)
        self.optimizer = torch.optim.Adam(network.parameters(), settings.rl_rate)
        # the critic has an optimizer of its own: its gradients are large, and must not shorten the policy's steps
        self._critic_optimizer = torch.optim.Adam(self.critic.parameters(), settings.critic_rate)
        loss = PpoLoss(entropy=settings.entropy, critic=0.0)
        decisions = settings.steps * sum(x.count for x in lanes)
        self._ppo = PpoUpdate(
            self.optimizer, loss, self._torch, passes=settings.passes, minibatch=-(-decisions // 6), most_norm=1.0
        )
        self._graphs = [x.world.graphs for x in self.lanes]
        self._start = list(accumulate((g.count for g in self._graphs), initial=0))

    def update(self, step: int) -> dict[str, float]:
        """Play some steps in all lanes, then improve on them."""
        share = max(1 - (step - 1) / self.settings.rl_updates, LEAST)
        warm = step <= self.settings.warm
        self.optimizer.param_groups[0]["lr"] = self.settings.rl_rate * share
        self._critic_optimizer.param_groups[0]["lr"] = self.settings.critic_rate * max(share, 0.1)
        seen = _Seen(self)
        for _ in range(self.settings.steps):
            seen.step()
        decisions, reward = seen.decisions()
        rows, first, kind = seen.all()
        error = self._fit_critic(rows[first[:-1][: len(decisions.target)]], decisions.target)
        figures = {"accepted": reward / PAID, "critic": error}
        if warm:
            return figures

        def evaluate(chosen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            chosen = chosen.cpu()
            at, index = gather(first, chosen.numpy())
            picked, index = rows[at].to(self.device), index.to(self.device)
            offsets = self._offsets()[kind[chosen]]
            value = torch.zeros(len(chosen), device=self.device)
            return self.network(picked, offsets[index]), index, value

        return self._ppo(evaluate, decisions) | figures

    def validate(self) -> dict[str, float]:
        """Return blocking rates on the validation seeds."""
        return self.validation(self.network)

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return all that the next update depends on."""
        found = prefixed("policy", self.network.state_dict()) | prefixed("critic", self.critic.state_dict())
        plain = {}
        for name, optimizer in self._optimizers.items():
            tensors, plain[name] = pack_optimizer(optimizer)
            found |= prefixed(name, tensors)
        found["torch"] = pack_torch(self._torch)
        for i, x in enumerate(self.lanes):
            found |= prefixed(f"lanes{i}", {name: torch.from_numpy(a.copy()) for name, a in x.state().items()})
        random = [pack_random(x.rng) for x in self.lanes]
        return found, {"optimizers": plain, "random": pack_random(self._rng), "lanes": random}

    def load(self, tensors: Tensors, plain: Mapping[str, Any]) -> None:
        """Go back to what `state` returned."""
        self.network.load_state_dict(under("policy", tensors))
        self.critic.load_state_dict(under("critic", tensors))
        for name, optimizer in self._optimizers.items():
            unpack_optimizer(optimizer, under(name, tensors), plain["optimizers"][name])
        unpack_torch(self._torch, tensors["torch"])
        unpack_random(self._rng, plain["random"])
        for i, x in enumerate(self.lanes):
            x.load({name: a.numpy() for name, a in under(f"lanes{i}", tensors).items()})
            unpack_random(x.rng, plain["lanes"][i])

    @property
    def _optimizers(self) -> dict[str, torch.optim.Optimizer]:
        return {"optimizer": self.optimizer, "critic_optimizer": self._critic_optimizer}

    def _fit_critic(self, rows: Tensor, target: Tensor) -> float:
        """Fit the critic to the targets, and return the last pass's mean squared error."""
        error = 0.0
        for _ in range(CRITIC_PASSES):
            order = torch.randperm(len(target), generator=self._torch)
            error = 0.0
            for chosen in order.split(MINIBATCH):
                loss = (self.critic(rows[chosen].to(self.device)) - target[chosen.to(target.device)]).square().mean()
                self._critic_optimizer.zero_grad()
                loss.backward()
                self._critic_optimizer.step()
                error += float(loss.detach()) * len(chosen) / len(target)
        return error

    def _offsets(self) -> Tensor:
        return torch.cat([self.network.offsets(graphs) for graphs in self._graphs])


class _Seen:
    """What is seen and done in some steps: in the order of steps, worlds and lanes."""

    def __init__(self, learner: Reinforce) -> None:
        self._of = learner
        self._rows: list[Tensor] = []
        self._length: list[Any] = []
        self._kind: list[Any] = []
        self._place: list[Any] = []
        self._reward: list[Any] = []
        self._over: list[Any] = []
        self._log: list[Tensor] = []
        with torch.no_grad():
            self._offsets = learner._offsets()

    def step(self) -> None:
        """Decide once in every lane."""
        of = self._of
        found = [x.look() for x in of.lanes]
        rows = torch.from_numpy(np.concatenate([x.rows for x in found]))
        length = np.concatenate([np.diff(x.first) for x in found])
        kind = np.concatenate([x.kind + start for x, start in zip(found, of._start, strict=False)])
        n = len(length)
        index = torch.from_numpy(np.repeat(np.arange(n), length))
        with torch.no_grad():
            offsets = self._offsets[torch.from_numpy(kind)][index.to(of.device)]
            scores = of.network(rows.to(of.device), offsets).cpu()
            log = segment_log_softmax(scores, index, n)
        first = np.cumsum(length) - length
        # the largest of log-probabilities with Gumbel noise is a draw from them
        noisy = log.double().numpy() + of._rng.gumbel(size=len(log))
        top = np.maximum.reduceat(noisy, first)
        hit = np.flatnonzero(noisy == top[index.numpy()])
        place = hit[np.searchsorted(hit, first)] - first
        self._log.append(log[torch.from_numpy(first + place)])
        start, reward = 0, []
        for x in of.lanes:
            reward.append(x.act(place[start : start + x.count]))
            start += x.count
        for found_list, value in (
            (self._rows, rows), (self._length, length), (self._kind, kind), (self._place, place),
            (self._reward, np.concatenate(reward) * PAID), (self._over, np.concatenate([x.over for x in found])),
        ):  # fmt: skip
            found_list.append(value)

    def all(self) -> tuple[Tensor, Any, Tensor]:
        """Return all rows, where each decision's begin, and the jobs' types; the last step is not among them."""
        length = np.concatenate(self._length)
        first = np.concatenate([[0], np.cumsum(length)])
        return torch.cat(self._rows), first, torch.from_numpy(np.concatenate(self._kind))

    def decisions(self) -> tuple[Decisions, float]:
        """Return what was decided in all steps but the last, whose values end the estimates, and the mean reward."""
        rows, first, _ = self.all()
        reward = torch.from_numpy(np.stack(self._reward)).float()
        with torch.no_grad():
            value = self._of.critic(rows[first[:-1]].to(self._of.device)).cpu().reshape(reward.shape)
        # an episode that begins at step t + 1 ended with step t
        done = torch.from_numpy(np.stack(self._over))[1:]
        settings = self._of.settings
        advantage, target = advantages(
            reward[:-1], value[:-1], done, gamma=settings.gamma, lam=settings.lam, last=value[-1]
        )
        steps = len(self._place) - 1
        device = self._of.device
        flat = [
            torch.from_numpy(np.concatenate(self._place[:steps])), torch.cat(self._log[:steps]), advantage.flatten(),
            target.flatten(),
        ]  # fmt: skip
        return Decisions(*(x.to(device) for x in flat)), float(reward.mean())
