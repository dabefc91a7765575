"""The policy: a network over jobs and options, its weights, and schedules by them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gangplan.instances.schedule import MoldableJob, Pool, ScheduleProblem
from gangplan.solvers.schedule.prepare import Prepared, prepare

from ..gnn import Batch, GraphNetwork, Schema, collate, schema_of
from ..gnn.encoding import Encoding
from ..policy import weights
from .build import BIAS, Net
from .builder import Builder, plans
from .features import FEATURES
from .settings import Settings

BASE = FEATURES.index("base")
HIDDEN = 32


class Network(nn.Module):
    """Rates candidates; a new one rates all of them 0, so that the base's choice stands.

    Args:
        schema: of the graphs, see `gangplan.learned.schedule.features`.
        width, rounds: of the messages; with no rounds a job knows itself only.
    """

    def __init__(self, schema: Schema, width: int = 32, rounds: int = 2) -> None:
        super().__init__()
        self.body = GraphNetwork(schema, width, rounds)
        self.by_job = nn.Linear(width, HIDDEN)
        self.by_option = nn.Linear(width, HIDDEN, bias=False)
        self.first = nn.Linear(len(FEATURES), HIDDEN, bias=False)
        self.second = nn.Linear(HIDDEN, HIDDEN)
        self.last = nn.Linear(HIDDEN, 1, bias=False)
        nn.init.zeros_(self.last.weight)

    def offsets(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return what each job (n, h) and each option (o, h) adds to the first layer."""
        hidden = self.body(batch)
        return self.by_job(hidden["jobs"]), self.by_option(hidden["options"])

    def forward(self, batch: Batch, x: Tensor, job: Tensor, option: Tensor) -> Tensor:
        """Return a score a candidate, the base's advantage included, (a,).

        Args:
            batch: the graphs.
            x: features of the candidates, (a, f).
            job, option: of each, into the batch; an option of -1 is leaving the job out.
        """
        by_job, by_option = self.offsets(batch)
        runs = (option >= 0)[:, None]
        start = self.first(x) + by_job[job] + torch.where(runs, by_option[option.clamp(min=0)], 0.0)
        found: Tensor = self.last(torch.relu(self.second(torch.relu(start))))[:, 0]
        return found + BIAS * x[:, BASE]


def compiled(network: Network, graphs: Sequence[Encoding]) -> list[Net]:
    """Return the network as arrays for each of some graphs, their vectors worked in."""
    with torch.inference_mode():
        batch = collate(graphs)
        by_job, by_option = (x.cpu().numpy() for x in network.offsets(batch))
        shared = (_array(network.second.weight.T), _array(network.second.bias), _array(network.last.weight[0]))
        first = _array(network.first.weight.T)
    jobs, options = batch.first["jobs"].tolist(), batch.first["options"].tolist()
    return [
        Net(first, by_job[a:b], by_option[c:d], *shared)
        for (a, b), (c, d) in zip(pairwise(jobs), pairwise(options), strict=True)
    ]


def _array(x: Tensor) -> np.ndarray:
    return np.ascontiguousarray(x.detach().cpu().numpy(), dtype=np.float32)


NAME = "schedule"
SAMPLES = 16
"""Schedules that a policy is judged by, beside the greedy one."""


class SchedulePolicy:
    """Builds schedules by a network's scores.

    Args:
        network: rates candidates.
        settings: what it was trained with.
    """

    def __init__(self, network: Network, settings: Mapping[str, Any] | None = None) -> None:
        self.network, self.settings = network.eval(), dict(settings or asdict(Settings()))

    def nets(self, builders: Sequence[Builder]) -> list[Net]:
        """Return the network for each of some instances, run once.

        Raises:
            FloatingPointError: if it says something that is no number.
        """
        found = compiled(self.network, [builder.graph() for builder in builders])
        if not all(np.isfinite(x).all() for net in found for x in net):
            raise FloatingPointError("the network's vectors are not finite")
        return found

    def schedule(self, p: Prepared, samples: int = 1, seconds: float = np.inf) -> tuple[float, Any]:
        """Return goal and plan, the best of so many; plan is None if a job that must run had no time in all of them.

        Args:
            p: the problem.
            samples: schedules to build, see `plans`; 1 is the greedy one.
            seconds: after which no other is begun.
        """
        until = time.perf_counter() + seconds
        builder = Builder(p)
        best, plan = np.inf, None
        for i, cost in enumerate(plans(builder, self.nets([builder])[0]), 1):
            if cost < best:
                best, plan = cost, builder.plan()
            if i >= samples or time.perf_counter() >= until:
                break
        return best, plan

    def save(self, path: str | Path, card: weights.Card | None = None) -> None:
        """Write weights and a model card."""
        weights.save(path, self.network.state_dict(), card or weights.Card(NAME, NAME, settings=self.settings))

    @classmethod
    def load(cls, path: str | Path) -> SchedulePolicy:
        """Read what `save` wrote.

        Raises:
            InstanceError: if it is missing, broken or of another policy.
        """
        network, _, card = weights.restore(path, NAME, Settings, network_of)
        return cls(network, card.settings)


def network_of(settings: Settings) -> Network:
    """Return a new network."""
    return Network(_schema(), settings.width, settings.rounds)


@lru_cache(maxsize=1)
def shipped() -> SchedulePolicy:
    """Return the policy that comes with the package; it is read once."""
    return SchedulePolicy.load(weights.find(NAME))


@lru_cache(maxsize=1)
def _schema() -> Schema:
    jobs = tuple(MoldableJob(name, (1,), (1.0,)) for name in "ab")
    return schema_of(Builder(prepare(ScheduleProblem(jobs, Pool(1)))).graph())


def forget() -> None:
    """Read the shipped weights anew when they are next asked for."""
    shipped.cache_clear()
