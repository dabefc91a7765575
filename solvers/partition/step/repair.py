"""Make a placement fit: what is too much moves to where it costs least."""

from __future__ import annotations

import numpy as np

from ...run import Run
from .model import Prepared
from .schedule import Decoder, placed_rank, ranked


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


_CANDIDATES = 400
"""Changes that are tried for each step."""
_BALLS = (1, 2, 4, 8, 16)
"""How many connected groups move at once, at most."""


def repair(run: Run, p: Prepared, where: list[int]) -> list[int] | None:
    """Return a placement that fits, near `where`, or `None` if there is no way on.

    As long as a device holds too much, a ball of connected groups leaves it for a device with room: the one that
    makes the step longer by the least for each byte that is too much. Groups also leave devices that cannot run them.
    """
    decoder, rng = Decoder(p), np.random.default_rng(run.seed)
    where = [d if p.allowed[g, d] else int(p.allowed[g].argmax()) for g, d in enumerate(where)]
    moves = Moves(decoder, where, rng)
    reverse = p.order[::-1].tolist()

    def length() -> float:
        return decoder.makespan(moves.device, ranked(p, placed_rank(decoder, moves.device, reverse)))

    while min(moves.left) < 0:
        over = [d for d, left in enumerate(moves.left) if left < 0]
        groups = [g for g, d in enumerate(moves.where) if d in over and moves.need[g] > 0]
        before = length()
        best: tuple[float, list[int], int] | None = None
        pairs = [(g, d) for g in groups for d in range(p.n_devices) if moves.left[d] > 0 and d != moves.where[g]]
        for i in rng.permutation(len(pairs) * len(_BALLS))[:_CANDIDATES].tolist():
            if run.stopped:
                return None
            g, there = pairs[i // len(_BALLS)]
            ball, excess = moves.ball(g, _BALLS[i % len(_BALLS)]), -moves.left[moves.where[g]]
            size = sum(moves.need[h] for h in ball)
            if size <= moves.left[there] and all(moves.allowed[h][there] for h in ball):
                moves.move(ball, there)
                # a tiny price for the bytes themselves: of moves that cost nothing the largest
                cost = (max(0.0, length() - before) + 1e-9 * before) / min(size, excess)
                moves.undo()
                if best is None or cost < best[0]:
                    best = cost, ball, there
        if best is None:
            return None
        moves.move(best[1], best[2])
        moves.accept()
    return moves.where
