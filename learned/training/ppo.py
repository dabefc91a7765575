"""Proximal policy optimisation over ragged sets of allowed actions, in many episodes side by side.

Schulman et al., "Proximal Policy Optimization Algorithms", arXiv 1707.06347. Loss and advantages are by TorchRL. Where
all states have the same actions, of which some are masked, those allowed are such a set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gangplan.instances.arrays import FloatArray

from ..policy.settings import PpoSettings
from .checkpoint import Tensors, pack_random, prefixed, under, unpack_random
from .learner import NetworkLearner
from .ragged import rows_of, segment_log_softmax

CLIP = 0.2
"""How far a probability ratio counts."""
CRITIC_PASSES, CRITIC_MINIBATCH = 3, 1024
"""Over what was seen in an update, and states in a step."""
MINIBATCHES = 6
"""Of a pass over what was decided."""
LEAST, CRITIC_LEAST = 0.03, 0.1
"""What the learning rates end at, as shares of the first."""


def advantages(
    reward: Tensor, value: Tensor, done: Tensor, *, gamma: float, lam: float, last: Tensor
) -> tuple[Tensor, Tensor]:
    """Return advantages and value targets by generalised advantage estimation (arXiv 1506.02438), (T, B) each.

    Args:
        reward: of T decisions in B runs side by side, (T, B). Episodes follow one another.
        value: of the states decided in, alike.
        done: whether an episode ended with that decision, bool, alike.
        gamma, lam: the discounts of rewards and of the estimator.
        last: the values of the states after the last decisions, (B,).
    """
    from torchrl.objectives.value.functional import vec_generalized_advantage_estimate

    following = torch.cat([value[1:], last[None]])
    # TorchRL wants (runs, time, 1)
    runs = [x.T.unsqueeze(-1) for x in (value, following, reward, done.bool())]
    with torch.no_grad():
        advantage, target = vec_generalized_advantage_estimate(gamma, lam, *runs)
    return advantage.squeeze(-1).T, target.squeeze(-1).T


class Decisions(NamedTuple):
    """What was decided, N times.

    Attributes:
        action: the place of the action taken among the allowed ones, int64 (N,).
        log_probability: of that action when it was taken, (N,).
        advantage, target: of it, (N,), see `advantages`.
    """

    action: Tensor
    log_probability: Tensor
    advantage: Tensor
    target: Tensor


def clipped_loss(
    scores: Tensor, index: Tensor, decisions: Decisions, *, entropy: float
) -> tuple[Tensor, dict[str, float]]:
    """Return minus the clipped surrogate and `entropy` times the entropy, and the figures to log.

    Args:
        scores: of the allowed actions, (A,).
        index: the decision of each, int64 (A,), ascending.
        decisions: what was decided in the D states.
        entropy: its weight.
    """
    from tensordict import TensorDict

    n = len(decisions.action)
    first = torch.searchsorted(index, torch.arange(n, device=index.device))
    place = torch.arange(len(index), device=index.device) - first[index]
    logits = scores.new_full((n, int(place.max()) + 1), float("-inf")).index_put((index, place), scores)
    known = {
        "logits": logits, "action": decisions.action, "action_log_prob": decisions.log_probability,
        "advantage": decisions.advantage.unsqueeze(-1),
    }  # fmt: skip
    found = _torchrl(entropy)(TensorDict(known, [n]))
    figures = {name: float(found[name].detach()) for name in ("entropy", "clip_fraction", "kl_approx")}
    return found["loss_objective"] + found["loss_entropy"], figures


@cache
def _torchrl(entropy: float) -> Any:
    """Return TorchRL's clipped loss of what has its logits already."""
    from tensordict.nn import ProbabilisticTensorDictModule, ProbabilisticTensorDictSequential
    from torchrl.objectives import ClipPPOLoss

    draw = ProbabilisticTensorDictModule(
        ["logits"], ["action"], distribution_class=torch.distributions.Categorical, return_log_prob=True
    )
    actor, given = ProbabilisticTensorDictSequential(draw), {"clip_epsilon": CLIP, "entropy_coeff": entropy}
    return ClipPPOLoss(actor, None, **given, critic_coeff=None, functional=False)


class Observed(NamedTuple):
    """The decisions in B episodes; A rows.

    Attributes:
        rows: features of the allowed actions, float32 (A, features).
        first: the rows of episode i are those from ``first[i]`` to before ``first[i + 1]``, int64 (B + 1,).
        kind: which of the vectors of `Ppo` each decision is about, int64 (B,).
        over: whether an episode ended before this decision, bool (B,).
        mask: where the actions are the same in all states, which are allowed, bool (B, actions), at least one; then a
            decision has one row, of any type, and the network returns a score an action, (B, actions).
    """

    rows: NDArray[Any]
    first: NDArray[np.int64]
    kind: NDArray[np.int64]
    over: NDArray[np.bool_]
    mask: NDArray[np.bool_] | None = None


class Episodes(Protocol):
    """B episodes side by side; where one ends, another one begins."""

    count: int
    rng: np.random.Generator

    def look(self) -> Observed:
        """Go to the next decision in every episode, and return what there is to decide."""

    def act(self, place: NDArray[np.int64]) -> FloatArray:
        """Take an allowed action of each episode, by its place among them, and return the rewards, float64 (B,)."""

    def state(self) -> dict[str, FloatArray]:
        """Return all that changes, but the generator."""

    def load(self, state: dict[str, FloatArray]) -> None:
        """Go back to what `state` returned."""


class Ppo(NetworkLearner):
    """Trains a network by PPO, see `gangplan.learned.training.Learner`.

    Args:
        network: from rows (A, features) and a vector for each (A, width) to scores (A,).
        critic: from the first row of each state to its value.
        episodes: in one or more worlds.
        vectors: returns the vectors of the kinds of each world, (kinds, width) each; None if all is in the rows.
        validate: from the network to figures, see `Imitation`.
        settings: see above.
        seed: of the choices and the shuffles.
        pay: what a reward of 1 counts.
        device: where the network is.
    """

    def __init__(
        self,
        network: nn.Module,
        critic: nn.Module,
        episodes: Sequence[Episodes],
        vectors: Callable[[], Sequence[Tensor]] | None,
        validate: Callable[[nn.Module], dict[str, float]],
        settings: PpoSettings,
        seed: int,
        *,
        pay: float = 1.0,
        device: str = "cpu",
    ) -> None:
        self.network, self.critic = network.to(device), critic.to(device)
        self.episodes, self.settings, self._judge = list(episodes), settings, validate
        self._vectors = vectors = vectors or (lambda: [torch.zeros(1, 0, device=device)] * len(episodes))
        self.pay, self.device = pay, device
        self.rng, self._shuffles = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
        self._optimizer = torch.optim.Adam(network.parameters(), settings.rl_rate)
        # the critic has an optimizer of its own: its gradients are large, and must not shorten the policy's steps
        self._critic_optimizer = torch.optim.Adam(critic.parameters(), settings.critic_rate)
        self._minibatch = -(-settings.steps * sum(x.count for x in episodes) // MINIBATCHES)
        self._start = list(accumulate((len(x) for x in vectors()), initial=0))
        self.networks = {"policy": network, "critic": critic}
        self.optimizers = {"optimizer": self._optimizer, "critic_optimizer": self._critic_optimizer}
        self.generators = {"random": self.rng, "torch": self._shuffles}

    def vectors(self) -> Tensor:
        """Return the vectors of all kinds of all worlds."""
        return torch.cat([*self._vectors()])

    def update(self, step: int) -> dict[str, float]:
        """Play some steps in all episodes, then improve on them."""
        share = max(1 - (step - 1) / self.settings.rl_updates, LEAST)
        self._optimizer.param_groups[0]["lr"] = self.settings.rl_rate * share
        self._critic_optimizer.param_groups[0]["lr"] = self.settings.critic_rate * max(share, CRITIC_LEAST)
        played = _Played(self)
        for _ in range(self.settings.steps):
            played.step()
        seen = played.all()
        decisions, reward = played.decisions(seen)
        figures = {"reward": reward / self.pay}
        figures["critic"] = self._fit_critic(seen.heads(len(decisions.target)), decisions.target)
        if step > self.settings.warm:
            figures |= self._improve(seen, decisions)
        return figures

    def validate(self) -> dict[str, float]:
        """Return figures on the validation seeds."""
        return self._judge(self.network)

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return all that the next update depends on."""
        found, plain = super().state()
        for i, x in enumerate(self.episodes):
            found |= prefixed(f"episodes{i}", {name: torch.from_numpy(a.copy()) for name, a in x.state().items()})
        return found, plain | {"episodes": [pack_random(x.rng) for x in self.episodes]}

    def load(self, tensors: Tensors, plain: Any) -> None:
        """Go back to what `state` returned."""
        super().load(tensors, plain)
        for i, x in enumerate(self.episodes):
            x.load({name: a.numpy() for name, a in under(f"episodes{i}", tensors).items()})
            unpack_random(x.rng, plain["episodes"][i])

    def scores(self, rows: Tensor, vectors: Tensor, index: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the scores of the allowed actions, and the decision of each, ascending."""
        found = self.network(rows.to(self.device), vectors[index.to(self.device)])
        return (found, index) if mask is None else (found[mask.to(self.device)], mask.nonzero()[:, 0])

    def _improve(self, seen: _Seen, decisions: Decisions) -> dict[str, float]:
        """Pass over the decisions in shuffled minibatches, and return the figures of the last pass, averaged."""
        spread = decisions.advantage - decisions.advantage.mean()
        decisions = decisions._replace(advantage=spread / (spread.square().mean().sqrt() + 1e-8))
        shown: list[dict[str, float]] = []
        for _ in range(self.settings.passes):
            order = torch.randperm(len(spread), generator=self._shuffles)
            shown = [self._step(seen, decisions, chosen) for chosen in order.split(self._minibatch)]
        return {name: sum(x[name] for x in shown) / len(shown) for name in shown[0]}

    def _step(self, seen: _Seen, decisions: Decisions, chosen: Tensor) -> dict[str, float]:
        at, index = rows_of(seen.first, chosen.numpy())
        mask = None if seen.mask is None else seen.mask[chosen]
        scores, index = self.scores(seen.rows[at], self.vectors()[seen.kind[chosen]], index, mask)
        part = Decisions(*(x[chosen.to(x.device)] for x in decisions))
        loss, shown = clipped_loss(scores, index.to(self.device), part, entropy=self.settings.entropy)
        self._optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self._optimizer.step()
        return shown | {"gradient": float(norm)}

    def _fit_critic(self, rows: Tensor, target: Tensor) -> float:
        """Fit the critic to the targets, and return the last pass's mean squared error."""
        error = 0.0
        for _ in range(CRITIC_PASSES):
            order = torch.randperm(len(target), generator=self._shuffles)
            error = 0.0
            for chosen in order.split(CRITIC_MINIBATCH):
                loss = (self.critic(rows[chosen].to(self.device)) - target[chosen.to(target.device)]).square().mean()
                self._critic_optimizer.zero_grad()
                loss.backward()
                self._critic_optimizer.step()
                error += float(loss.detach()) * len(chosen) / len(target)
        return error


class _Seen(NamedTuple):
    """All that was seen in some steps: see `Observed`."""

    rows: Tensor
    first: Any
    kind: Tensor
    mask: Tensor | None

    def heads(self, n: int) -> Tensor:
        """Return the first row of each of the first n decisions."""
        return self.rows[self.first[:n]]


class _Played:
    """What is seen and done in some steps: in the order of steps, worlds and episodes."""

    def __init__(self, learner: Ppo) -> None:
        self._of = learner
        self._rows: list[Tensor] = []
        self._mask: list[Tensor] = []
        self._length: list[Any] = []
        self._kind: list[Any] = []
        self._place: list[Any] = []
        self._reward: list[Any] = []
        self._over: list[Any] = []
        self._log: list[Tensor] = []
        with torch.no_grad():
            self._vectors = learner.vectors()

    def step(self) -> None:
        """Decide once in every episode."""
        of = self._of
        found = [x.look() for x in of.episodes]
        rows = torch.from_numpy(np.concatenate([x.rows for x in found]))
        length = np.concatenate([np.diff(x.first) for x in found])
        kind = np.concatenate([x.kind + start for x, start in zip(found, of._start, strict=False)])
        index = torch.from_numpy(np.repeat(np.arange(len(length)), length))
        masks = [x.mask for x in found if x.mask is not None]
        mask = torch.from_numpy(np.concatenate(masks)) if masks else None
        with torch.no_grad():
            scores, owner = of.scores(rows, self._vectors[torch.from_numpy(kind)], index, mask)
            log = segment_log_softmax(scores.cpu(), owner, len(length))
        first = np.searchsorted(owner.numpy(), np.arange(len(length)))
        # the largest of log-probabilities with Gumbel noise is a draw from them
        noisy = log.double().numpy() + of.rng.gumbel(size=len(log))
        hit = np.flatnonzero(noisy == np.maximum.reduceat(noisy, first)[owner.numpy()])
        place = hit[np.searchsorted(hit, first)] - first
        parts = np.split(place, np.cumsum([x.count for x in of.episodes])[:-1])
        reward = np.concatenate([x.act(part) for x, part in zip(of.episodes, parts, strict=True)])
        self._log.append(log[torch.from_numpy(first + place)])
        self._rows.append(rows)
        self._mask.extend([] if mask is None else [mask])
        self._length.append(length)
        self._kind.append(kind)
        self._place.append(place)
        self._reward.append(reward * of.pay)
        self._over.append(np.concatenate([x.over for x in found]))

    def all(self) -> _Seen:
        """Return all rows, where each decision's begin, the kinds and the masks."""
        first = np.concatenate([[0], np.cumsum(np.concatenate(self._length))])
        kind = torch.from_numpy(np.concatenate(self._kind))
        return _Seen(torch.cat(self._rows), first, kind, torch.cat(self._mask) if self._mask else None)

    def decisions(self, seen: _Seen) -> tuple[Decisions, float]:
        """Return what was decided in all steps but the last, whose values end the estimates, and the mean reward."""
        of, settings = self._of, self._of.settings
        reward = torch.from_numpy(np.stack(self._reward)).float()
        with torch.no_grad():
            rows = seen.heads(reward.numel()).split(CRITIC_MINIBATCH)
            value = torch.cat([of.critic(x.to(of.device)).cpu() for x in rows]).reshape(reward.shape)
        # an episode that begins at step t + 1 ended with step t
        done = torch.from_numpy(np.stack(self._over))[1:]
        advantage, target = advantages(
            reward[:-1], value[:-1], done, gamma=settings.gamma, lam=settings.lam, last=value[-1]
        )
        place = torch.from_numpy(np.concatenate(self._place[:-1]))
        flat = (place, torch.cat(self._log[:-1]), advantage.flatten(), target.flatten())
        return Decisions(*(x.to(of.device) for x in flat)), float(reward.mean())
