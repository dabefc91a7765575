"""Proximal policy optimisation over ragged sets of allowed actions; loss and estimator are TorchRL's.

Schulman et al., "Proximal Policy Optimization Algorithms", arXiv 1707.06347. The caller collects the decisions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .segments import padded

Evaluate = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]
"""From the numbers of D decisions, int64 (D,), to the scores of their allowed actions (A,), which of the D each action
belongs to, ascending int64 (A,), and the values of the D states (D,)."""


def advantages(
    reward: Tensor, value: Tensor, done: Tensor, *, gamma: float, lam: float, last: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return advantages and value targets by generalised advantage estimation (arXiv 1506.02438), (T,) or (T, B) each.

    Args:
        reward: of T decisions of one run, or of B runs side by side, (T,) or (T, B). Episodes follow one another.
        value: of the states decided in, alike.
        done: whether an episode ended with that decision, bool, alike.
        gamma, lam: the discounts of rewards and of the estimator.
        last: the value of the state after the last decision, () or (B,); needed where that is not the end.
    """
    from torchrl.objectives.value.functional import vec_generalized_advantage_estimate

    if last is None:
        if not bool(done[-1].all()):
            raise ValueError("last: the runs do not end with the end of an episode, so it is needed")
        last = torch.zeros_like(value[-1])
    following = torch.cat([value[1:], last.reshape(value[-1:].shape)])
    # TorchRL wants (runs, time, 1)
    runs = [x.reshape(len(x), -1).T.unsqueeze(-1) for x in (value, following, reward, done.bool())]
    with torch.no_grad():
        advantage, target = vec_generalized_advantage_estimate(gamma, lam, *runs)
    return advantage.squeeze(-1).T.reshape(reward.shape), target.squeeze(-1).T.reshape(reward.shape)


@dataclass(frozen=True, slots=True)
class Decisions:
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


class PpoLoss:
    """TorchRL's clipped loss for scores that are already there.

    Args:
        clip: how far the probability ratio counts.
        entropy, critic: the weights of entropy and of the error of the values.
    """

    def __init__(self, *, clip: float = 0.2, entropy: float = 0.01, critic: float = 0.5) -> None:
        from tensordict.nn import (
            ProbabilisticTensorDictModule,
            ProbabilisticTensorDictSequential,
            TensorDictModule,
        )
        from torchrl.modules import MaskedCategorical
        from torchrl.objectives import ClipPPOLoss

        # the network has run before; its place in TorchRL is taken by modules that hand on what it said
        actor = ProbabilisticTensorDictSequential(
            TensorDictModule(torch.nn.Identity(), in_keys=["scores"], out_keys=["logits"]),
            ProbabilisticTensorDictModule(
                in_keys={"logits": "logits", "mask": "mask"},
                out_keys=["action"],
                distribution_class=MaskedCategorical,
                return_log_prob=True,
            ),
        )
        values = TensorDictModule(torch.nn.Identity(), in_keys=["value"], out_keys=["state_value"])
        self._loss: Any = ClipPPOLoss(
            actor,
            values,
            clip_epsilon=clip,
            entropy_coeff=entropy,
            critic_coeff=critic,
            loss_critic_type="l2",
            normalize_advantage=False,
            functional=False,
        )
        self._loss.set_keys(sample_log_prob="log_probability", advantage="advantage", value_target="target")

    def __call__(
        self, scores: Tensor, index: Tensor, value: Tensor, decisions: Decisions
    ) -> tuple[Tensor, dict[str, float]]:
        """Return the loss and the figures to log.

        Args:
            scores: of the allowed actions, (A,).
            index: the decision of each, int64 (A,), ascending.
            value: of each state, (D,).
            decisions: what was decided in the D states.
        """
        from tensordict import TensorDict

        n = len(value)
        rectangle, mask = padded(scores, index, n)
        given = {
            "scores": rectangle,
            "mask": mask,
            "value": value.unsqueeze(-1),
            "action": decisions.action,
            "log_probability": decisions.log_probability,
            "advantage": decisions.advantage.unsqueeze(-1),
            "target": decisions.target.unsqueeze(-1),
        }
        found = self._loss.to(value.device)(TensorDict(given, [n]))
        # there is none of the critic if its weight is 0
        names = ("loss_objective", "loss_entropy", "loss_critic")
        parts = {name: found[name] for name in names if name in found.keys()}  # noqa: SIM118 - a TensorDict
        shown = {name: float(x.detach()) for name, x in parts.items()}
        shown |= {name: float(found[name]) for name in ("entropy", "clip_fraction", "kl_approx")}
        return torch.stack([*parts.values()]).sum(), shown


class PpoUpdate:
    """Several passes over what was decided, in shuffled minibatches.

    Args:
        optimizer: over all parameters to be learned.
        loss: the loss of a minibatch.
        passes, minibatch: passes, and decisions in a minibatch.
        most_norm: gradients are scaled down to this norm.
        most_kl: a pass after which the policy has moved further than this is the last; None for no limit.
        generator: shuffles.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        loss: PpoLoss,
        generator: torch.Generator,
        *,
        passes: int = 4,
        minibatch: int = 2048,
        most_norm: float = 0.5,
        most_kl: float | None = None,
    ) -> None:
        self.optimizer, self.loss, self.generator = optimizer, loss, generator
        self.passes, self.minibatch, self.most_norm, self.most_kl = passes, minibatch, most_norm, most_kl

    def __call__(self, evaluate: Evaluate, decisions: Decisions) -> dict[str, float]:
        """Update the parameters and return the figures of the last pass, averaged, and how many passes it took."""
        spread = decisions.advantage - decisions.advantage.mean()
        scaled = spread / (spread.square().mean().sqrt() + 1e-8)
        figures: dict[str, float] = {}
        made = 0
        while made < self.passes:
            made += 1
            order = torch.randperm(len(scaled), generator=self.generator)
            shown = [self._step(evaluate, decisions, scaled, chosen) for chosen in order.split(self.minibatch)]
            figures = {name: sum(x[name] for x in shown) / len(shown) for name in shown[0]}
            if self.most_kl is not None and figures["kl_approx"] > self.most_kl:
                break
        return figures | {"passes": float(made)}

    def _step(self, evaluate: Evaluate, decisions: Decisions, advantage: Tensor, chosen: Tensor) -> dict[str, float]:
        chosen = chosen.to(advantage.device)
        scores, index, value = evaluate(chosen)
        part = Decisions(
            decisions.action[chosen],
            decisions.log_probability[chosen],
            advantage[chosen],
            decisions.target[chosen],
        )
        loss, shown = self.loss(scores, index, value, part)
        self.optimizer.zero_grad()
        loss.backward()
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        norm = torch.nn.utils.clip_grad_norm_(parameters, self.most_norm)
        self.optimizer.step()
        return shown | {"gradient": float(norm)}
