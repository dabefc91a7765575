"""Where GPUs that are apart slow gangs down: the closest ones, and how much slower a gang is on those it gets."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gangplan.instances.placement import Fleet, GangJob
from gangplan.instances.placement.proximity import Proximity
from gangplan.solvers.placement.online.capacity import Kind
from gangplan.solvers.placement.online.closest import find_closest
from gangplan.solvers.placement.online.placer import Placer
from gangplan.solvers.placement.online.shared import Shared
from gangplan.solvers.placement.policies import Vacancy

_KINDS = 4096
"""Maximum number of kinds of gang whose best place is remembered until a node fails or comes back."""


class Closeness:
    """Tell how much gangs on a fleet pay for being apart; the placer knows which nodes take what."""

    def __init__(self, proximity: Proximity, fleet: Fleet, placer: Placer) -> None:
        self.proximity, self._fleet, self._placer = proximity, fleet, placer
        rack = fleet.topology.group[0]
        self._order = np.argsort(rack, kind="stable")  # nodes rack by rack
        self._begin = np.append(np.unique(rack[self._order], return_index=True)[1], fleet.n_nodes).astype(np.int64)
        self._least: dict[tuple[Kind, int, float, int, bool], float] = {}
        self._find(fleet.gpus.astype(np.int64), min(1, fleet.n_gpus))  # compiled before a deadline

    def clear(self) -> None:
        """Forget the best places: a node failed or came back."""
        self._least.clear()

    def slower(self, model: str, gpus: int, held: Mapping[int, int]) -> float:
        """Return how many times its seconds a gang takes, whose workers use the first `gpus` of those held by node."""
        used, left = [], gpus
        for count in held.values():
            used.append(min(left, count))
            left -= used[-1]
        return self.proximity.slowdown(model, self.proximity.cost(self._fleet, list(held), used))

    def least(self, gang: GangJob, model: str, gpus: int, up: bool) -> float:
        """Return how many times its seconds a gang takes at its best place if nobody is there.

        If it never has room, what fits of it counts; with `up` only nodes that are up do, if they suffice.
        """
        kind = Kind.workers(gang)
        key = kind, gang.workers[0], self.proximity.slowdown(model, 1.0), gpus, up
        if key not in self._least:
            if len(self._least) >= _KINDS:
                self._least.clear()
            room, workers = self._placer.most_on(kind, up=up), gang.workers[0]
            if up and int(room.sum()) < workers:
                room = self._placer.most_on(kind, up=False)
            self._least[key] = np.inf
            for times, has in self._by_type(kind.shared, room, workers):
                best = self._find(has, min(workers, int(has.sum())))
                held = {node: count * gang.worker.grants for node, count in sorted(best.items())}
                self._least[key] = min(self._least[key], times * self.slower(model, gpus, held))
        return self._least[key]

    def _by_type(self, shared: Shared | None, room: np.ndarray, workers: int) -> list[tuple[float, np.ndarray]]:
        """Return the room on each type that has a gang, and how many times as long it takes there; else all room."""
        names, types = self._fleet.gpu_types, () if shared is None else shared.types
        rooms = []
        for kind, times in types:
            if kind in names:
                has = np.where(self._fleet.gpu_type == names.index(kind), room, 0)
                rooms += [(times, has)] if int(has.sum()) >= workers else []
        return rooms or [(max((times for _, times in types), default=1.0), room)]

    def closest(self, room: Vacancy, degree: int) -> dict[int, int]:
        """Return the closest room that a greedy search finds, as a rule of `GANG_POLICIES`."""
        return self._find(np.asarray(room.room, dtype=np.int64), degree)

    def _find(self, room: np.ndarray, degree: int) -> dict[int, int]:
        take = np.zeros(len(room), dtype=np.int64)
        find_closest(degree, self._begin, room[self._order], take)
        at = np.flatnonzero(take)
        return dict(zip(self._order[at].tolist(), take[at].tolist(), strict=True))
