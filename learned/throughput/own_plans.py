"""Fine-tuning on its own plans: policy gradient on what noisy scores decode to, and imitation of the best of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from gangplan.instances.arrays import FloatArray

from ..gnn import collate
from ..gnn.one_shot import reinforce
from ..training.checkpoint import Tensors
from ..training.state import pack_optimizer, pack_random, prefixed, under, unpack_optimizer, unpack_random
from .decode import Draft
from .examples import Example
from .losses import plan_loss
from .polish import stage_of
from .settings import Settings

_KEPT, _NEAR = 6, 0.02
"""Plans that an instance keeps, and by what share they may be above the best."""
_NONE = 1.0
"""What no plan costs: as much as one that is e times as slow as PipeDream's."""


class OwnPlans:
    """Learns from plans that it draws of instances, see `gangplan.learned.training.Learner`.

    The cost of a plan is the logarithm of its load. An update draws instances of one size and one of the heads, and
    decodes noisy copies of its scores: the policy gradient makes good ones likelier, and the best plans of an instance
    so far, put together from all drawn, are imitated like labels (expert iteration: Anthony et al., NIPS 2017). These
    plans are part of the state.

    Args:
        network: is trained.
        pools: instances, a list a size.
        settings: see there.
        validate: see `gangplan.learned.gnn.imitation.Imitation`.
        seed: of what is drawn.
    """

    def __init__(
        self,
        network: nn.Module,
        pools: Sequence[Sequence[Example]],
        settings: Settings,
        validate: Callable[[], dict[str, float]],
        seed: int,
    ) -> None:
        self.network, self.settings, self.judge = network, settings, validate
        self.pools = [list(pool) for pool in pools if pool]
        self._loads: dict[tuple[int, int], FloatArray] = {}
        self._rng = np.random.default_rng(seed)
        self.optimizer = torch.optim.Adam(network.parameters(), settings.rl_rate)

    def update(self, step: int) -> dict[str, float]:
        """Make one step on a minibatch."""
        s, rng = self.settings, self._rng
        self.optimizer.param_groups[0]["lr"] = s.rl_rate * max(1 - (step - 1) / s.rl_updates, 0.05)
        which = int(rng.integers(len(self.pools)))
        pool = self.pools[which]
        chosen = rng.choice(len(pool), min(s.rl_minibatch, len(pool)), replace=False).tolist()
        examples = [pool[i] for i in chosen]
        batch = collate([x.encoding for x in examples])
        scores = self.network(batch)
        drawn: list[list[Draft]] = []
        owner: dict[int, list[Draft]] = {}
        for x in examples:
            drawn.append([])
            owner[id(x)] = drawn[-1]

        def cost(one: Example, row: FloatArray) -> float:
            draft = one.decoder.decode(row)
            base = one.decoder.base
            if draft is None or base is None:
                return _NONE
            owner[id(one)].append(draft)
            return float(np.log(draft.load / base.load))

        head = int(rng.integers(scores.shape[1]))
        first = batch.first["groups"]
        policy = reinforce(scores[:, head], first, examples, cost, samples=s.samples, noise=s.noise, rng=rng)
        taught = [self._learn(which, i, drafts) for i, drafts in zip(chosen, drawn, strict=True)]
        loss = s.advantage * policy
        if s.copying:
            copied = plan_loss(scores, first, taught, rng, pairs=s.pairs, steep=s.steep, regret=s.regret)
            loss = loss + s.copying * copied
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        mean = np.mean([np.log(d.load / x.decoder.base.load) for x, ds in zip(examples, drawn, strict=True) for d in ds
                        if x.decoder.base is not None] or [0.0])  # fmt: skip
        return {"loss": float(loss.detach()), "drawn": float(mean), "gradient": float(norm)}

    def _learn(self, which: int, i: int, drafts: list[Draft]) -> Example:
        """Keep what the drafts of an instance come to, and return it with all it has kept."""
        known = self.pools[which][i]
        best = known.decoder.join(drafts)
        if best is None:
            return known
        n = known.decoder.q.n_groups
        # regrets of what is kept are measured by the best one: back to loads first
        loads = self._loads.get((which, i), np.zeros(0))
        stage = stage_of(best.stages, n)
        if not any((stage == row).all() for row in known.stages):
            loads = np.append(loads, best.load)
            known = replace(known, stages=np.concatenate([known.stages, stage[None, :]]))
        order = np.argsort(loads, kind="stable")[:_KEPT]
        order = order[loads[order] <= (1 + _NEAR) * loads[order[0]]]
        loads = self._loads[which, i] = loads[order]
        known = replace(known, stages=known.stages[order], regrets=loads / loads[0] - 1)
        self.pools[which][i] = known
        return known

    def validate(self) -> dict[str, float]:
        """Return figures on the validation instances."""
        with torch.no_grad():
            return self.judge()

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return all that the next update depends on."""
        tensors, plain = pack_optimizer(self.optimizer)
        own = prefixed("policy", self.network.state_dict()) | prefixed("optimizer", tensors)
        for (which, i), loads in self._loads.items():
            own[f"plans.{which}.{i}"] = torch.from_numpy(self.pools[which][i].stages.astype(np.int32))
            own[f"loads.{which}.{i}"] = torch.from_numpy(loads)
        return own, {"optimizer": plain, "random": pack_random(self._rng)}

    def load(self, tensors: Tensors, plain: Mapping[str, Any]) -> None:
        """Go back to what `state` returned."""
        self.network.load_state_dict(under("policy", tensors))
        unpack_optimizer(self.optimizer, under("optimizer", tensors), plain["optimizer"])
        unpack_random(self._rng, plain["random"])
        for name, loads in under("loads", tensors).items():
            which, i = map(int, name.split("."))
            kept = self._loads[which, i] = loads.numpy().copy()
            stages = tensors[f"plans.{name}"].numpy().astype(np.int64)
            self.pools[which][i] = replace(self.pools[which][i], stages=stages, regrets=kept / kept[0] - 1)
