"""What trains the graph policy: imitation of what every candidate comes to, then reinforcement."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from math import log

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from gangplan.instances.arrays import offsets
from gangplan.instances.errors import InstanceError
from gangplan.simulator.gangs.formula import FORMULAS
from gangplan.simulator.gangs.mixes import VALIDATION
from gangplan.simulator.gangs.traffic import ANY, TRAIN, VALIDATE, Draw, episode, grounds

from ...online.episodes import BOUND
from ...online.features import BY_RULE
from ...online.schema import SCHEMA
from ...online.settings import GnnSettings
from ...policy.weights import find, load
from ..imitation import Imitation
from ..network import GraphNetwork, Packed
from ..ragged import expected_regret, segment_log_softmax
from ..trainer import Trainer, start
from .labels import DecisionLabel, make_labels
from .own import OwnCluster
from .reinforced import GPUS, Reinforced, pays

AVERAGED, LASTING = 0.995, 0.95
"""Of the average of the weights, that is left after an update of imitation and of reinforcement."""
FIRST = 70_000
"""Number of the first episode whose labels are exact."""
JUDGED = 600
"""Jobs that arrive in a workload of a validation."""
CAP = 5.0
"""Regret that counts at most, in mean lengths of a job."""


class Lessons:
    """Labels as minibatches.

    Args:
        labels: all of them.
    """

    def __init__(self, labels: list[DecisionLabel]) -> None:
        self.packed = Packed(SCHEMA, [x.graph for x in labels])
        self.count = len(labels)
        self._tried = [x.tried for x in labels]
        self._beyond = [x.regret - x.regret[np.argmax(x.graph.x[x.tried, BY_RULE])] for x in labels]

    def loss(self, network: GraphNetwork, chosen: np.ndarray, settings: GnnSettings) -> Tensor:
        """Return the loss of some decisions.

        What is minimised is the regret that a draw from the network's softmax has beyond that of the rule's candidate,
        as far as it is more than noise, with the Kullback-Leibler divergence from the rule's softmax: where labels say
        little, the rule stays. Regrets enter linearly, so that their noise averages out over decisions.
        """
        batch = self.packed.batch(chosen)
        first = offsets(np.diff(self.packed.first[SCHEMA.scored])[chosen])
        rows = torch.from_numpy(np.concatenate([first[i] + self._tried[d] for i, d in enumerate(chosen)]))
        index = torch.from_numpy(np.repeat(np.arange(len(chosen)), [len(self._tried[d]) for d in chosen]))
        beyond = torch.from_numpy(np.concatenate([self._beyond[d] for d in chosen]))
        beyond = beyond.sign() * (beyond.abs() - settings.noise).clamp(min=0)
        rule, scores = batch[SCHEMA.scored].x[rows, BY_RULE], corrected(network, batch)[rows]
        own, usual = (segment_log_softmax(settings.sharp * x, index, len(chosen)) for x in (scores, rule))
        regret = expected_regret(settings.sharp * scores, index, beyond, len(chosen), cap=CAP)
        return regret + settings.anchor * (usual.exp() * (usual - own)).sum() / len(chosen)


def corrected(network: GraphNetwork, batch: HeteroData) -> Tensor:
    """Return the scores of all candidates, (A,), as `gangplan.learned.online.episodes.observe` writes them."""
    return BOUND * torch.tanh(network(batch)[:, 0] / BOUND) + batch[SCHEMA.scored].x[:, BY_RULE]


class Judged:
    """Workloads with validation seeds, on which networks are compared with the rule.

    Args:
        seeds: workloads of each ground.
        draw: them.
        rule: that is corrected.
    """

    def __init__(self, seeds: int, draw: Draw = episode, rule: str = "patient") -> None:
        runs = [draw(number, JUDGED, VALIDATION) for number in range(seeds * len(grounds(VALIDATE)))]
        self._rule, self._cases = rule, [(run, log(run.by(FORMULAS[rule]))) for run in runs]

    def judge(self, network: GraphNetwork) -> dict[str, float]:
        """Return the mean JCT over that by the rule, of each ground, and their geometric mean as ``score``."""
        weights, logs = network.compiled(), dict[str, list[float]]()
        for run, base in self._cases:
            logs.setdefault(run.ground, []).append(pays(run, weights, self._rule) - base)
        found = {kind: float(np.exp(np.mean(values))) for kind, values in logs.items()}
        return {"score": float(np.exp(np.mean(np.log(list(found.values()))))), **found}


class GnnTraining(Trainer[GnnSettings]):
    """Imitation of exact plans, of rollouts by the rule; then reinforcement."""

    def __init__(self, settings: GnnSettings, seed: int) -> None:
        super().__init__(settings, seed)
        self._draw = self._draw_of(ANY)
        self._judged = Judged(settings.validation_seeds, self._draw, settings.rule)

    def _draw_of(self, gpus: range) -> Draw:
        """Return what draws episodes: of one's own cluster, or of the grounds with so many GPUs, as settings say."""
        of = self.settings
        if of.trace:
            return OwnCluster(of.trace, of.cluster).episode
        if 0 < of.largest < (least := max(min(x.fleet.n_gpus for x in table) for table in (TRAIN, VALIDATE))):
            raise InstanceError("largest", f"{of.largest} is below {least} GPUs, the smallest ground that is chosen by")
        return partial(episode, gpus=range(of.largest + 1) if of.largest else gpus)

    def network(self) -> GraphNetwork:
        """Return the network of the settings."""
        of = self.settings
        network = GraphNetwork(SCHEMA, of.width, of.rounds, messages=of.messages, ranged=True)
        if of.start:
            network.load_state_dict(load(find(of.start))[0])
        return network

    def validate(self, network: GraphNetwork) -> dict[str, float]:
        """See `Judged`."""
        return self._judged.judge(network)

    @cached_property
    def _solved(self) -> list[DecisionLabel]:
        """Labels of decisions that the rule comes to, whose futures CP-SAT plans."""
        of = replace(self.settings, exact=1.0)
        count = round(self.settings.exact * of.labels)
        net = start(self.network, self.seed, None).compiled()
        return make_labels(of, net, self.seed, count, first=FIRST, draw=self._draw) if count else []

    def exact(self, network: GraphNetwork) -> Imitation:
        """Return what trains a network on the labels whose futures CP-SAT plans, alone."""
        return self._imitation(network, Lessons(self._solved), self.settings.rate, self.settings.exact_updates)

    def rollouts(self, network: GraphNetwork) -> Imitation:
        """Return what trains a network on labels whose futures the rule plays, as many as are left."""
        of = replace(self.settings, exact=0.0)
        count = of.labels - round(self.settings.exact * of.labels)
        played = make_labels(of, network.compiled(), self.seed, count, draw=self._draw)
        return self._imitation(network, Lessons(played), of.rate, of.updates)

    def rl(self, network: GraphNetwork) -> Reinforced:
        """Return what trains it by what whole runs pay, from a share of what it corrects so far."""
        of = self.settings
        with torch.no_grad():
            network.last.weight.mul_(of.scale)
        rates = {"rate": of.rl_rate, "updates": of.rl_updates, "seed": self.seed, "average": LASTING}
        judged = Judged(2 * of.validation_seeds, self._draw, of.rule)  # RL moves little: more seeds to see it
        return Reinforced(network, judged.judge, of, self._draw_of(GPUS), **rates)

    def _imitation(self, network: GraphNetwork, lessons: Lessons, rate: float, updates: int) -> Imitation:
        of = self.settings
        network.note_ranges(lessons.packed.ranges())

        def draw(rng: np.random.Generator) -> Tensor:
            return lessons.loss(network, rng.integers(0, lessons.count, of.minibatch), of)

        given = (network, draw, self.validate)
        return Imitation(*given, rate=rate, updates=updates, seed=self.seed, average=AVERAGED)
