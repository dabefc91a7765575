"""The policy: a rule whose scores a graph network corrects, and the best candidate is done; a guard watches."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.simulator.gangs.arrays import ARRIVED, GpuRacks, Jobs, State
from gangplan.simulator.gangs.formula import FORMULAS, finish

from ..graph.compiled import Graph, network_of, score, shapes
from ..policy.network import pick
from ..policy.weights import Card, load_for, match, save
from .candidates import WAIT, CandidateScratch
from .episodes import BOUND, NEVER, observe, play
from .features import BY_RULE
from .guard import BEHIND, EVERYTHING, NETWORK, RULES, Guard, known
from .schema import SCHEMA
from .settings import NAME, GnnSettings


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """One decision.

    Attributes:
        graph: of it; candidates are its first nodes.
        place: in the queue of the job that each candidate starts, -1 to wait, int64 (A,).
        take: GPUs of each node that it gets, int64 (A, m).
        at_once: whether to wait makes no sense.
        odd: whether the network has not seen the like, so that the rule behind it decides.
    """

    graph: Graph
    place: NDArray[np.int64]
    take: NDArray[np.int64]
    at_once: bool = False
    odd: bool = False


class GnnPolicy:
    """A policy for `gangplan.systems.topdrl.simulate` and for `gangplan.Scheduler`; it needs no torch.

    Args:
        tensors: of a `GraphNetwork`, by name.
        settings: that it was trained with.
        guarded: whether it is held against plain rules, see `gangplan.learned.online.guard`.

    Attributes:
        net: the weights as compiled code has them.
        rule: what it corrects.
        behind: name of the rule that decides where the network does not.
    """

    behind: ClassVar[str] = BEHIND

    def __init__(
        self, tensors: dict[str, NDArray[np.float32]], settings: GnnSettings | None = None, *, guarded: bool = True
    ) -> None:
        self.settings, self.guarded = settings or GnnSettings(), guarded
        self.tensors, self.rule = tensors, FORMULAS[self.settings.rule]
        self.net = network_of(SCHEMA, tensors)

    def finish(self, jobs: Jobs, cluster: GpuRacks, state: State) -> None:
        """Run from a state to the end, where all jobs have a start and a finish."""
        s, n = CandidateScratch(cluster), len(jobs.submit)
        guard = self.guard(cluster)
        if guard.leader != NETWORK and guard.due == EVERYTHING:
            finish(jobs, cluster, state, RULES[guard.leader])
            return
        while True:
            learned = guard.leader == NETWORK
            rule = self.rule if learned else RULES[guard.leader]
            play(jobs, cluster, state, s, self.net, rule, learned, guard.due, EVERYTHING)
            arrived = int(state.count[ARRIVED])
            if not np.isinf(state.start).any() or guard.due > n:
                return
            guard.watch(jobs, state, known(jobs, state, arrived), arrived)
            guard.advance()

    def guard(self, cluster: GpuRacks) -> Guard:
        """Return who says on a cluster whether the network decides: never if it is larger than all in training."""
        guard, of = Guard(cluster, self.net, self.rule, guarded=self.guarded), self.settings
        if self.guarded and not of.trace and 0 < of.largest < len(cluster.node):
            guard.due = EVERYTHING
        return guard

    def observe(self, jobs: Jobs, cluster: GpuRacks, state: State) -> Observation | None:
        """Return what there is to decide, None if no waiting job fits."""
        s = CandidateScratch(cluster)
        k = observe(jobs, cluster, state, s, self.net, self.rule, False)
        return Observation(s.graph, s.place[:k], s.take[:k], bool(s.at_once), s.odd >= 0) if k else None

    def score(self, observation: Observation) -> FloatArray:
        """Return a score of each candidate, float64 (A,)."""
        rule = observation.graph.x[: len(observation.place), BY_RULE]
        correction = BOUND * np.tanh(score(observation.graph, self.net)[:, 0] / BOUND)
        scores = np.asarray(rule + correction, dtype=np.float64)
        return np.where((observation.place == WAIT) & observation.at_once, NEVER, scores)

    def choose(self, observation: Observation, seed: int | None = None) -> int:
        """Return the place of the candidate with the best score, or of one drawn from the softmax of the scores."""
        return pick(self.score(observation), seed)

    def save(self, path: str | Path, card: Card | None = None) -> None:
        """Write weights and a model card."""
        import torch

        tensors = {name: torch.from_numpy(x) for name, x in self.tensors.items()}
        save(path, tensors, card or Card(NAME, NAME, settings=asdict(self.settings)))

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> Self:
        """Read what `save` wrote, see `load_for`; options are those of the class."""
        arrays, _, settings = load_for(NAME, GnnSettings, path)
        wanted = shapes(SCHEMA, settings.width, settings.rounds, settings.messages, ranged=True)
        match(arrays, wanted, path)
        return cls(arrays, settings, **options)
