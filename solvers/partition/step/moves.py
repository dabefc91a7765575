"""Changes of a placement that keep colocation, and can be taken back."""

from __future__ import annotations

import numpy as np

from .model import Prepared
from .schedule import Decoder


class Moves:
    """A placement, and balls of groups that move: connected, on one device.

    Args:
        decoder: of the problem.
        where: the device of each group.
        rng: for what a ball grows by.
    """

    def __init__(self, decoder: Decoder, where: list[int], rng: np.random.Generator) -> None:
        p = decoder.p
        self.p, self.rng = p, rng
        self.need: list[float] = p.group_memory.tolist()
        self.allowed: list[list[bool]] = p.allowed.tolist()
        self.neighbours = _neighbours(p)
        self.undone: list[tuple[int, int]] = []
        self.where = list(where)
        self.device: list[int] = [self.where[g] for g in self.p.group_of.tolist()]
        self.left: list[float] = self.p.room.tolist()
        for g, d in enumerate(self.where):
            self.left[d] -= self.need[g]

    def accept(self) -> None:
        """Keep the change."""
        self.undone.clear()

    def undo(self) -> None:
        """Take the change back."""
        while self.undone:
            self._put(*self.undone.pop())

    def move(self, groups: list[int], d: int) -> None:
        """Move groups to device d, room or not."""
        for g in groups:
            self._move(g, d)

    def ball(self, g: int, size: int) -> list[int]:
        """Return up to `size` groups of the device of g, connected and g among them, in random order of growth."""
        here, ball, seen = self.where[g], [g], {g}
        edge = [h for h in self.neighbours[g] if self.where[h] == here]
        while edge and len(ball) < size:
            i = int(self.rng.integers(len(edge)))
            edge[i], edge[-1] = edge[-1], edge[i]
            h = edge.pop()
            if h not in seen:
                seen.add(h)
                ball.append(h)
                edge += [x for x in self.neighbours[h] if x not in seen and self.where[x] == here]
        return ball

    def _move(self, g: int, d: int) -> None:
        self.undone.append((g, self.where[g]))
        self._put(g, d)

    def _put(self, g: int, d: int) -> None:
        self.left[self.where[g]] += self.need[g]
        self.left[d] -= self.need[g]
        self.where[g] = d
        for v in self.p.members[g]:
            self.device[v] = d


def _neighbours(p: Prepared) -> list[list[int]]:
    """Return the groups that share an edge with each."""
    u, w = p.edges
    found: list[set[int]] = [set() for _ in range(p.n_groups)]
    for a, b in zip(p.group_of[u].tolist(), p.group_of[w].tolist(), strict=True):
        if a != b:
            found[a].add(b)
            found[b].add(a)
    return [sorted(x) for x in found]
