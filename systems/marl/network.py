"""The networks: graphs inside servers, a graph of the network above them, and what is read off: scores, or values.

Messages go up from groups of GPUs by sockets, servers, racks and pods to the core, and down again (SAGE, Hamilton et
al., NeurIPS 2017). A rack is what an agent owns; its vector is what the others are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

from gangplan.learned.training.ragged import segment_log_softmax

from .observe import EXTRAS, STATE, AgentDecision, RackHierarchy, widths
from .recipe import MarlSettings


class Racks(NamedTuple):
    """N racks, with G groups of GPUs, as one graph.

    Attributes:
        groups: what is seen of these, float32 (G, F).
        up: of each group its parent's number, of each of these, and so on to the rack; int64.
        rack: of each group, int64 (G,).
    """

    groups: Tensor
    up: tuple[Tensor, ...]
    rack: Tensor


class Asked(NamedTuple):
    """D decisions with A actions.

    Attributes:
        racks: one a decision.
        job: float32 (D, J).
        others: vectors of all racks of the cluster of each decision, by their numbers in what is told, int64 (R,).
        of: the decision of each of these, int64 (R,).
        own: which of these is the decision's own, int64 (D,).
        pod, core: number of the pod of each of these, and of the decision of each pod.
        action: the decision of each action, int64 (A,).
        order: where each action's score is in groups, agents, waiting, one after the other, int64 (A,).
        mask: what is allowed, bool (A,).
    """

    racks: Racks
    job: Tensor
    others: Tensor
    of: Tensor
    own: Tensor
    pod: Tensor
    core: Tensor
    action: Tensor
    order: Tensor
    mask: Tensor


def racks_of(shapes: Sequence[tuple[np.ndarray, np.ndarray]], groups: np.ndarray) -> Racks:
    """Return racks as one graph.

    Args:
        shapes: of each rack, see `RackHierarchy.inside`.
        groups: of all racks, (G, F).
    """
    sizes = np.array([[len(a), len(b), int(b.max()) + 1] for a, b in shapes])
    rack = [np.repeat(np.arange(len(shapes)), sizes[:, x]) for x in range(3)]
    before = np.cumsum(sizes, axis=0) - sizes
    socket = np.concatenate([a for a, _ in shapes]) + before[rack[0], 1]
    server = np.concatenate([b for _, b in shapes]) + before[rack[1], 2]
    given = torch.from_numpy(np.asarray(groups, dtype=np.float32))
    return Racks(given, tuple(torch.from_numpy(x) for x in (socket, server, rack[2])), torch.from_numpy(rack[0]))


def asked_of(plans: Sequence[RackHierarchy], seen: Sequence[AgentDecision], first: Sequence[int]) -> Asked:
    """Return decisions as one batch.

    Args:
        first: number of the first rack of each one's cluster in what is told.
    """
    racks = racks_of([p.inside[x.agent] for p, x in zip(plans, seen, strict=True)],
                     np.concatenate([x.groups for x in seen]))  # fmt: skip
    agents = np.array([len(p.pod) for p in plans])
    of = np.repeat(np.arange(len(seen)), agents)
    before = np.cumsum(agents) - agents
    within = np.arange(len(of)) - before[of]
    pods = np.array([int(p.pod.max()) + 1 for p in plans])
    pod = np.concatenate([p.pod for p in plans]) + (np.cumsum(pods) - pods)[of]
    groups = np.array([len(x.groups) for x in seen])
    at, total = np.cumsum(groups) - groups, int(groups.sum())
    order = [
        np.concatenate([np.arange(g) + a, np.arange(n) + total + b, [total + len(of) + d]])
        for d, (g, a, n, b) in enumerate(zip(groups, at, agents, before, strict=True))
    ]
    found = [
        np.array(first)[of] + within, of, before + np.array([x.agent for x in seen]), pod,
        np.repeat(np.arange(len(seen)), pods), np.repeat(np.arange(len(seen)), groups + agents + 1),
        np.concatenate(order), np.concatenate([x.mask for x in seen]),
    ]  # fmt: skip
    job = torch.from_numpy(np.stack([x.job for x in seen]).astype(np.float32))
    return Asked(racks, job, *(torch.from_numpy(x) for x in found))


def _edges(up: Tensor) -> Tensor:
    return torch.stack([torch.arange(len(up)), up])


DEPTH = 3
"""Levels above groups of GPUs: sockets, servers, racks."""


class Hierarchy(nn.Module):
    """Vectors of groups, sockets, servers and racks, and of the network above."""

    def __init__(self, settings: MarlSettings) -> None:
        super().__init__()
        wide, (groups, job) = settings.width, widths(settings.types)
        self.group, self.job = nn.Linear(groups, wide), nn.Linear(job, wide)
        self.sums = nn.ModuleList(nn.Linear(settings.types + 3, wide) for _ in range(DEPTH))
        self.up = nn.ModuleList(SAGEConv((wide, wide), wide, aggr="sum") for _ in range(DEPTH))
        self.down = nn.ModuleList(SAGEConv((wide, wide), wide) for _ in range(DEPTH))
        self.above = nn.ModuleList(SAGEConv((wide, wide), wide, aggr="mean") for _ in range(4))
        self._seen = settings.types + 3

    def rise(self, racks: Racks, job: Tensor | None) -> list[Tensor]:
        """Return the vectors of each level, groups first, racks last; (level, width) each."""
        given = None if job is None else self.job(job)
        h = self.group(racks.groups) + (0.0 if given is None else given[racks.rack])
        found, raw, rack = [h.relu()], racks.groups[:, : self._seen], racks.rack
        for at, (up, sums, conv) in enumerate(zip(racks.up, self.sums, self.up, strict=True)):
            n = int(up.max()) + 1
            raw = raw.new_zeros(n, self._seen).index_add(0, up, raw)
            rack = rack.new_zeros(n).scatter(0, up, rack)
            own = sums(raw / (1.0 + at)) + (0.0 if given is None else given[rack])
            found.append(conv((found[-1] * 0.5, own), _edges(up), (len(up), n)).relu())
        return found

    def spread(self, racks: Tensor, pod: Tensor, core: Tensor) -> Tensor:
        """Return the vectors of racks that know of the network: (R, width); `pod` of each, `core` of each pod."""
        pods, cores = int(pod.max()) + 1, int(core.max()) + 1
        first, second, third, fourth = self.above
        zero = racks.new_zeros(pods, racks.shape[1])
        p = first((racks, zero), _edges(pod), (len(racks), pods)).relu()
        c = second((p, zero[:cores]), _edges(core), (pods, cores)).relu()
        p = p + third((c, p), _edges(core).flip(0), (cores, pods)).relu()
        return racks + fourth((p, racks), _edges(pod).flip(0), (pods, len(racks))).relu()

    def sink(self, levels: list[Tensor], racks: Racks) -> Tensor:
        """Return the vectors of groups that know of all above them, (G, width)."""
        h = levels[-1]
        for at in range(len(racks.up) - 1, -1, -1):
            up, low = racks.up[at], levels[at]
            h = low + self.down[at]((h, low), _edges(up).flip(0), (len(h), len(up))).relu()
        return h


class Actor(nn.Module):
    """Scores actions; all agents share its weights."""

    def __init__(self, settings: MarlSettings) -> None:
        super().__init__()
        wide = settings.width
        self.body, self.state = Hierarchy(settings), nn.Linear(STATE, wide)
        self.place, self.forward_to, self.wait = (
            nn.Sequential(nn.Linear(x * wide, wide), nn.ReLU(), nn.Linear(wide, 1)) for x in (1, 3, 2)
        )

    def told(self, racks: Racks, state: Tensor) -> Tensor:
        """Return what agents tell one another, (racks, width); see `Sight.told`."""
        return self.body.rise(racks, None)[-1] + self.state(state)

    def forward(self, asked: Asked, told: Tensor) -> Tensor:
        """Return the logarithm of the probability of each action, minus infinity where it is not allowed, (A,)."""
        levels = self.body.rise(asked.racks, asked.job)
        all_racks = told[asked.others].index_copy(0, asked.own, levels[-1])
        network = self.body.spread(all_racks, asked.pod, asked.core)
        mine, job = network[asked.own], self.body.job(asked.job)
        groups = self.body.sink([*levels[:-1], mine], asked.racks)
        scores = [
            self.place(groups),
            self.forward_to(torch.cat([network, mine[asked.of], job[asked.of]], dim=1)),
            self.wait(torch.cat([mine, job], dim=1)),
        ]
        found = torch.cat(scores)[asked.order, 0].masked_fill(~asked.mask, float("-inf"))
        return segment_log_softmax(found, asked.action, len(asked.job))


class CentralCritic(nn.Module):
    """Values of all agents from all racks: central, for training alone."""

    def __init__(self, settings: MarlSettings) -> None:
        super().__init__()
        wide = settings.width
        self.body, self.extras = Hierarchy(settings), nn.Linear(EXTRAS, wide)
        self.value = nn.Sequential(nn.Linear(2 * wide, wide), nn.ReLU(), nn.Linear(wide, 1))

    def forward(self, racks: Racks, extras: Tensor, pod: Tensor, core: Tensor) -> Tensor:
        """Return the value of each agent, (racks,)."""
        given = self.extras(extras)
        network = self.body.spread(self.body.rise(racks, None)[-1] + given, pod, core)
        return self.value(torch.cat([network, given], dim=1))[:, 0]
