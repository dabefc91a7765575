"""Policy gradient: samples of whole placements of one batch, each compared with the mean of the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gangplan.instances.arrays import FloatArray

from ..gnn import collate
from ..training.checkpoint import Tensors
from ..training.segments import segment_log_softmax
from ..training.state import pack_optimizer, pack_random, prefixed, under, unpack_optimizer, unpack_random
from .batches import prepared, sized
from .decode import Decoder, Trace
from .encoded import encode
from .imitation import Validation
from .network import Example, Network
from .pairs import pairs
from .policy import PlacementPolicy
from .settings import Settings

FIRST = 1_000_000
"""Where the seeds of its batches begin among those of the split."""


class Reinforce:
    """Sharpens a network on batches of growing size, see `gangplan.learned.training.Learner`.

    REINFORCE with the mean of the other samples as the baseline (Kool, van Hoof & Welling, 2019). An action is a place,
    drawn from the softmax of the scores; the turns of the jobs are drawn around what the network says.

    Args:
        network: is trained.
        settings: how.
        validation: judges.
        seed: of all that is drawn.
    """

    def __init__(self, network: Network, settings: Settings, validation: Validation, seed: int) -> None:
        self.network, self.settings, self.judge = network, settings, validation
        self._rng = np.random.default_rng(seed)
        self.optimizer = torch.optim.Adam(network.parameters(), settings.rl_rate)

    def update(self, step: int) -> dict[str, float]:
        """Sample, and make one step."""
        policy = PlacementPolicy(self.network, self.settings)
        self.network.train()
        losses, spread, nodes = [], [], 0
        for _ in range(self.settings.rl_batch):
            found = self._sampled(policy, self._nodes(step))
            if found is not None:
                losses.append(found[0])
                spread.append(found[1])
                nodes += found[2]
        if not losses:
            return {"loss": 0.0, "spread": 0.0, "nodes": 0.0}
        loss = torch.stack(losses).mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), 0.5)
        self.optimizer.step()
        return {"loss": float(loss.detach()), "spread": float(np.mean(spread)), "nodes": nodes / len(losses)}

    def validate(self) -> dict[str, float]:
        """Return figures on the validation batches."""
        return self.judge(self.network)

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return all that the next update depends on."""
        tensors, plain = pack_optimizer(self.optimizer)
        own = prefixed("policy", self.network.state_dict())
        return own | prefixed("optimizer", tensors), {"optimizer": plain, "random": pack_random(self._rng)}

    def load(self, tensors: Tensors, plain: Mapping[str, Any]) -> None:
        """Go back to what `state` returned."""
        self.network.load_state_dict(under("policy", tensors))
        unpack_optimizer(self.optimizer, under("optimizer", tensors), plain["optimizer"])
        unpack_random(self._rng, plain["random"])

    def _nodes(self, step: int) -> int:
        """Draw a size: up to 32 nodes at first, up to all in the second half (a curriculum)."""
        share = min(1.0, 2 * step / max(self.settings.rl_updates, 1))
        most = 32 * (self.settings.rl_nodes / 32) ** share if self.settings.rl_nodes > 32 else self.settings.rl_nodes
        return round(float(np.exp(self._rng.uniform(np.log(16), np.log(max(most, 16.5))))))

    def _sampled(self, policy: PlacementPolicy, nodes: int) -> tuple[Tensor, float, int] | None:
        settings, rng = self.settings, self._rng
        batch = prepared(sized("train", FIRST + int(rng.integers(2**28)), nodes))
        if batch is None:
            return None
        decoder = Decoder(policy, batch)
        costs, traces, turned = [], [], []
        for _ in range(settings.rl_samples):
            trace = Trace()
            noise = settings.order_noise * rng.standard_normal(len(decoder.turns))
            before = decoder.turns
            decoder.turns = before + noise
            cost = decoder.place(rng, settings.noise, 0.0, trace)
            decoder.turns = before
            if cost is not None:
                costs.append(cost)
                traces.append(trace)
                turned.append(noise)
        if len(costs) < 2 or not np.std(costs) > 1e-9 * np.mean(costs):
            return None
        found = np.array(costs)
        advantage = (found - found.mean()) / found.std()
        graph = collate([encode(batch.problem, settings.flat)])
        loss = self._places(graph, traces, advantage)
        free = torch.from_numpy(np.isin(np.arange(len(batch.jobs)), decoder.builder.free()))
        pull = torch.from_numpy(advantage @ np.stack(turned) / (len(found) * settings.order_noise**2)).float()
        turn = self.network.context(graph)[2]
        return loss + (pull * turn)[free].sum(), float(found.std() / found.mean()), batch.n_nodes

    def _places(self, graph: Any, traces: list[Trace], advantage: FloatArray) -> Tensor:
        examples, taken, weight = [], [], []
        first = 0
        for trace, worth in zip(traces, advantage.tolist(), strict=True):
            for decision, choice in zip(trace.decisions, trace.taken, strict=True):
                if len(decision.rows) > 1:
                    place, node = pairs(decision)
                    examples.append(Example(0, decision.job, decision.x, place, node, decision.price))
                    taken.append(first + choice)
                    weight.append(worth)
                    first += len(decision.rows)
        scores, of = self.network(graph, examples)
        log = segment_log_softmax(scores / self.settings.noise, of, len(examples))
        return (torch.tensor(weight) * log[torch.tensor(taken)]).sum() / len(traces)
