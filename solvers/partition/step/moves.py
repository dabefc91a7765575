"""Small changes of a placement that keep memory and colocation, and can be taken back."""

from __future__ import annotations

import numpy as np

from .model import Prepared
from .schedule import Decoder

_BALLS = (1, 1, 1, 2, 3, 5, 8, 13, 21, 34)
"""How many neighbouring groups move at once, at most."""


class Moves:
    """A placement, and random changes of it.

    A change moves a ball of groups, connected and on one device, to another device: one that holds a neighbour, or any.
    What has no room there is exchanged for a ball that comes back. Now and then two devices swap all they have.

    Args:
        decoder: of the problem.
        where: the device of each group; it fits.
        rng: for the choices.
    """

    def __init__(self, decoder: Decoder, where: list[int], rng: np.random.Generator) -> None:
        p = decoder.p
        self.p, self.rng = p, rng
        self.need: list[float] = p.group_memory.tolist()
        self.allowed: list[list[bool]] = p.allowed.tolist()
        self.neighbours = _neighbours(p)
        self.undone: list[tuple[int, int]] = []
        self.reset(where)

    def reset(self, where: list[int]) -> None:
        """Start again from a placement."""
        self.where = list(where)
        self.device: list[int] = [self.where[g] for g in self.p.group_of.tolist()]
        self.left: list[float] = self.p.room.tolist()
        for g, d in enumerate(self.where):
            self.left[d] -= self.need[g]
        self.undone.clear()

    def propose(self) -> bool:
        """Change the placement; return whether a change was found."""
        pick = self.rng.random()
        if pick < 0.03:
            return self._swap_devices()
        g = int(self.rng.integers(self.p.n_groups))
        here = self.where[g]
        near = [self.where[h] for h in self.neighbours[g] if self.where[h] != here]
        if near and pick < 0.7:
            there = near[int(self.rng.integers(len(near)))]
        else:
            there = int(self.rng.integers(self.p.n_devices))
        if there == here:
            return False
        ball = self.ball(g, _BALLS[int(self.rng.integers(len(_BALLS)))])
        moved = [h for h in ball if self.allowed[h][there]]
        if not moved:
            return False
        self.move(moved, there)
        return self._settle(here, there, set(moved))

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

    def _settle(self, here: int, there: int, moved: set[int]) -> bool:
        """Bring groups back from `there` until it fits; return whether that worked, else undo everything."""
        if self.left[there] < 0:
            back = [h for h, d in enumerate(self.where) if d == there and h not in moved and self.allowed[h][here]]
            self.rng.shuffle(back)
            # what belongs to the other side comes first
            back.sort(key=lambda h: -sum(self.where[x] == here for x in self.neighbours[h]))
            for h in back:
                if self.left[there] >= 0:
                    break
                if self.need[h] > 0:
                    self._move(h, here)
        if self.left[there] < 0 or self.left[here] < 0:
            self.undo()
            return False
        return True

    def _swap_devices(self) -> bool:
        a, b = (int(d) for d in self.rng.integers(self.p.n_devices, size=2))
        if a == b:
            return False
        for g, d in enumerate(list(self.where)):
            if d in (a, b):
                other = b if d == a else a
                if not self.allowed[g][other]:
                    self.undo()
                    return False
                self._move(g, other)
        if min(self.left[a], self.left[b]) < 0:
            self.undo()
            return False
        return True

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
