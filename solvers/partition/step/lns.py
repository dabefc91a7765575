"""Large-neighbourhood search with CP-SAT inside, for graphs too large for one model (Shaw, CP 1998)."""

from __future__ import annotations

import numpy as np

from ...run import Run
from .lns_choice import Choice
from .lns_model import Around
from .model import Prepared


def lns(run: Run, p: Prepared) -> None:
    """Free a part of the best plan, place and order it anew by CP-SAT, keep what is better; again and again.

    It ends when the run stops, or once everything was free at the same time and nothing better exists.
    """
    if run.plan is None or run.objective is None:
        return
    rng = np.random.default_rng(run.seed)
    choice = Choice(p, rng, run.proposals)
    unit = run.objective
    with run.phase("lns"):
        around = Around(p, run.plan, unit)
        while not run.stopped:
            i, free = choice.pick(around)
            plan, searched = around.improve(free, run)
            better = plan is not None and run.offer(plan, "lns")
            choice.learn(i, better, searched)
            if better and plan is not None:
                around = Around(p, plan, unit)
            elif searched and len(free) == p.n_groups:
                return
