"""Dual approximation of the makespan: guess when all jobs end, and let a list show that they can.

By a guess each job has the fewest GPU-seconds with which it can end in time (Turek, Wolf and Yu 1992, after Hochbaum
and Shmoys 1987); the widest are placed first, of these the longest. Who ends late, or is left out for it, goes before
all others in the next list.
"""

from __future__ import annotations

import numpy as np

from ..run import Run
from .bounds import area, best_end
from .decode import Decoder
from .prepare import CHEAPEST, LEFT_OUT, Ints, Prepared

BY = "dual"
_GUESSES = 1.0, 1.003, 1.01, 1.02, 1.03, 1.06, 1.1
"""Of the least end that bounds allow."""
_ROUNDS = 4
"""Lists for a guess."""


def dual(run: Run, p: Prepared) -> None:
    """Offer lists for guesses of the makespan from its bound on, as far as they are below the best list."""
    decoder, best, least = Decoder(p), np.inf, area(p)
    end, goal = best_end(p, least)
    # with jobs left out that end late by themselves, and with none of them
    ends = dict.fromkeys(guess * x for guess in _GUESSES for x in (end, max(goal, least)))
    for end in ends:
        if end >= best:
            continue
        wish, late = allotment(p, end), np.zeros(p.n)
        for turn in range(_ROUNDS):
            order = np.lexsort((-p.seconds[wish], -p.gpus[wish], -late))
            goal = decoder.decode(order, wish, stopped=lambda: run.stopped)
            if run.stopped:
                return
            if goal < best:
                best = goal
                run.offer(decoder.plan(), BY)
            made = decoder.made
            finish = np.where(made.option < 0, 0.0, made.start + p.seconds[made.option])
            over = np.where(made.option < 0, wish >= 0, finish > end * (1 + 1e-9))
            if not over.any():
                break
            # once the last one has its place, to run the others costs nothing
            late[over], late[finish.argmax()] = turn + 1, turn + 1.5


def allotment(p: Prepared, end: float) -> Ints:
    """Return the option of fewest GPU-seconds with which each job can end by `end`, int64 (n,).

    One that cannot is left out, or if it must run takes what costs least.
    """
    fits = p.release[p.owner] + p.seconds <= end * (1 + 1e-12)
    option = p.first_least(np.where(fits, p.gpus * p.seconds, np.inf), LEFT_OUT)
    return np.where((option >= 0) & fits[option], option, np.where(np.isfinite(p.price), LEFT_OUT, CHEAPEST))
