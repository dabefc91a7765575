"""A policy that picks the next job, see `gangplan.simulator.picking`, as one of `gangplan.Scheduler`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gangplan.simulator.picking import COLUMNS, DecisionView, Picks, in_turn, require_seen

from .policy import View


class SchedulerPick:
    """Ranks the jobs that a policy picks, with the most workers that each may have; the others wait until due.

    Args:
        policy: see `Picks`.
    """

    sees: ClassVar[tuple[str, ...]] = tuple(COLUMNS)

    def __init__(self, policy: Picks) -> None:
        require_seen(policy, self.sees, "Scheduler")
        self._policy = policy

    def rank(self, view: View) -> list[float]:
        """Return the place of each option in the order in which the policy picks, infinite for others."""
        jobs, idle = view.waiting, int(view.free.sum())
        degrees = [request.job.workers[-1] for request in jobs]
        gpus = [request.gpus(degree) for request, degree in zip(jobs, degrees, strict=True)]
        columns = {
            "gpus": np.array(gpus, dtype=np.float64),
            "seconds": np.array([r.lasts(d) for r, d in zip(jobs, degrees, strict=True)], dtype=np.float64),
            "waited": np.array([view.now - r.submit for r in jobs], dtype=np.float64),
        }
        scene = DecisionView(view.now, idle, int(view.fleet.gpus.sum()), columns, columns["gpus"] <= idle)
        order = in_turn(self._policy, scene, gpus.__getitem__)
        place = {(jobs[i].name, degrees[i]): float(at) for at, i in enumerate(order)}
        return [place.get((request.name, degree), float("inf")) for request, degree in view.options]
