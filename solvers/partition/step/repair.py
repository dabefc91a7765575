"""Make a placement fit: what is too much moves to where it costs least."""

from __future__ import annotations

import numpy as np

from ...run import Run
from .model import Prepared
from .moves import Moves
from .rank import placed_rank, ranked
from .schedule import Decoder

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
