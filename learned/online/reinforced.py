"""Reinforcement: PPO on candidates that are drawn, each against the network's own best one with the same jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.utils import to_dense_batch

from gangplan.simulator.gangs.arrays import ARRIVED, RUNNING, WAITING, first_jobs
from gangplan.simulator.gangs.formula import FORMULAS, finish
from gangplan.simulator.gangs.mixes import TRAINING
from gangplan.simulator.gangs.step import advance
from gangplan.simulator.gangs.traffic import TRAIN, Draw, Episode, grounds

from ..graph.compiled import Graph, Network
from ..graph.network import GraphNetwork, Packed
from ..training.imitation import Averaged
from ..training.ppo import Decisions, clipped_loss
from ..training.ragged import rows_of
from .candidates import ODD, scratch_of
from .episodes import BOUND, NEVER, observe
from .features import BY_RULE
from .graph import SCHEMA, graph_room
from .labels import EPISODES, FARTHEST, JOBS, kept, take
from .recipe import GnnSettings
from .rollouts import foresee

FIRST = 60_000
"""Number of the first episode of a seed: others are for labels."""
GPUS = range(256, 1025)
"""Of the clusters on which this is done, if it is not one's own."""
MOST = 4.0
"""Mean JCTs that count as an advantage at most."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A decision in which d candidates other than the best one were drawn, perhaps the same again.

    Attributes:
        graph: of it.
        barred: whether its first candidate, to wait, is not to be taken.
        action: candidates, int64 (d,).
        log_probability: of each, float32 (d,).
        advantage: JCT that each saves, compared with the best one, in mean JCTs by the rule, float32 (d,).
    """

    graph: Graph
    barred: bool
    action: NDArray[np.int64]
    log_probability: NDArray[np.float32]
    advantage: NDArray[np.float32]


def large(number: int, jobs: int, first: int) -> Episode:
    """Do what `gangplan.simulator.gangs.traffic.episode` does, on those grounds of `TRAIN` alone that have `GPUS`."""
    table = [x for x in grounds(TRAIN) if x.fleet.n_gpus in GPUS]
    return table[number % len(table)].episode(first + number, jobs)


def play_choices(given: Episode, net: Network, settings: GnnSettings, seed: int) -> Iterator[Choice]:
    """Play an episode by candidates that are drawn from the softmax of the scores, and yield decisions of it.

    Args:
        given: what is played.
        net: scores candidates, and goes on greedily where it is told what they come to.
        settings: how many candidates are drawn, and how far it goes on.
        seed: of what is drawn.
    """
    rng = np.random.default_rng(seed)
    jobs, cluster = given.jobs, given.cluster
    state, s, other = given.begin(), scratch_of(cluster), scratch_of(cluster)
    rule = FORMULAS[settings.rule]
    finish(jobs, cluster, state, rule)
    unit = given.mean_jct(state)
    state, graph, room = given.begin(), graph_room(cluster, s), graph_room(cluster, s)
    share, go_on = min(JOBS / (len(jobs.submit) - int(state.count[ARRIVED])), 1.0), True
    while go_on:
        k = observe(jobs, cluster, state, s, graph, net, rule, False)
        if k == 0:
            go_on = advance(jobs, cluster, state)
            continue
        log = s.score[:k] - np.logaddexp.reduce(s.score[:k].astype(np.float64))
        best = int(np.argmax(log))
        drawn = np.argmax(log + rng.gumbel(size=(settings.ppo_draws, k)), axis=1)  # a draw from the softmax
        others = drawn[drawn != best]
        if len(others) and s.most[ODD] < 0 and rng.random() < share:
            live, arrived = int(state.count[WAITING] + state.count[RUNNING]), int(state.count[ARRIVED])
            future = first_jobs(jobs, arrived + min(max(settings.ahead, live // 2), FARTHEST))
            tried, of = np.unique(np.append(best, others), return_inverse=True)
            value = np.zeros((len(tried), 1))
            foresee(future, cluster, state, s, other, room, net, rule, tried, settings.ppo_depth, value)
            saved = ((value[of[0], 0] - value[of[1:], 0]) / unit).astype(np.float32)
            yield Choice(kept(graph), bool(s.score[0] <= NEVER), others, log[others].astype(np.float32), saved)
        go_on = take(jobs, cluster, state, s, int(drawn[0]))


def corrected(network: GraphNetwork, batch: HeteroData) -> Tensor:
    """Return the scores of all candidates, (A,), as `gangplan.learned.online.episodes.rate_candidates` writes them."""
    return BOUND * torch.tanh(network(batch)[:, 0] / BOUND) + batch[SCHEMA.scored].x[:, BY_RULE]


class Choices:
    """Choices as minibatches for PPO.

    Args:
        choices: all of them, at least one.
    """

    def __init__(self, choices: list[Choice]) -> None:
        self.packed = Packed(SCHEMA, [x.graph for x in choices])
        self._barred = torch.tensor([x.barred for x in choices])
        self._first = np.append(0, np.cumsum([len(x.action) for x in choices]))
        parts = ([getattr(x, name) for x in choices] for name in ("action", "log_probability", "advantage"))
        self._action, self._log, advantage = (torch.from_numpy(np.concatenate(x)) for x in parts)
        self.advantage = float(advantage.mean())
        # the mean stays in: 0 is what the best candidate pays
        clipped = advantage.clamp(-MOST, MOST)
        self._advantage = clipped / (clipped.square().mean().sqrt() + 1e-8)

    def loss(self, network: GraphNetwork, chosen: NDArray[np.int64]) -> tuple[Tensor, dict[str, float]]:
        """Return the loss of some of them, see `clipped_loss`."""
        batch, (rows, of) = self.packed.batch(chosen), rows_of(self._first, chosen)
        scores, mask = to_dense_batch(corrected(network, batch), batch[SCHEMA.scored].batch)
        mask[:, 0] &= ~self._barred[chosen]
        taken = Decisions(mask[of], self._action[rows], self._log[rows], self._advantage[rows])
        return clipped_loss(scores[of], taken, entropy=0.0)


class Reinforced(Averaged):
    """Trains a network by PPO (see `gangplan.learned.training.ppo`); every update plays episodes of its own.

    Args:
        network, validate, more: see `Averaged`.
        settings: what is played, and how often it is learned from.
        draw: from numbers to episodes.
    """

    network: GraphNetwork

    def __init__(
        self, network: GraphNetwork, validate: Callable[[Any], dict[str, float]], settings: GnnSettings, draw: Draw,
        **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(network, validate, **more)
        self._settings, self._draw = settings, draw
        self._first = EPISODES * more["seed"] + FIRST

    def update(self, step: int) -> dict[str, float]:
        """Play, and learn from it."""
        of, net, figures = self._settings, self.network.compiled(), dict[str, float]()
        first = self._first + of.ppo_episodes * (step - 1)
        numbers = range(first, first + of.ppo_episodes)
        parts = [play_choices(self._draw(n, of.ppo_jobs, TRAINING), net, of, n) for n in numbers]
        made = [x for part in parts for x in part]
        if not made:
            return {"choices": 0.0}
        choices = Choices(made)
        for _ in range(of.ppo_passes):
            order = self._rng.permutation(len(made))
            for chosen in np.array_split(order, -(-len(made) // of.minibatch)):
                loss, figures = choices.loss(self.network, chosen)
                figures["gradient"] = self.descend(loss, step)
        return figures | {"choices": float(len(made)), "advantage": choices.advantage}
