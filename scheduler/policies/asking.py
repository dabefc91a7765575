"""Ask the user's policy who starts and who waits, and do as it says as far as that is possible."""

from __future__ import annotations

import time
from typing import Any

from ..starting.starts import StartRound
from ..state import SchedulerState
from .policy import Proposal, View, Watchdog, proposals

TIER = "policy"


def ask(
    policy: Any, state: SchedulerState, watchdog: Watchdog, starts: StartRound, budget: float
) -> list[tuple[str, float]]:
    """Have a policy start jobs and make others wait; return its scores.

    It is shown the first jobs; where it makes one of them wait, the next ones too, and so on. What it says of who waits
    counts for nothing if it fails or names something impossible.
    """
    stop, seen, scores = time.perf_counter() + budget, set[str](), list[tuple[str, float]]()
    while not (watchdog.out(TIER) or starts.over()):
        view = View(state, seen)
        seen |= {request.name for request in view.waiting}
        left = stop - time.perf_counter()
        if not view.waiting or (scores and left <= 0):
            break
        answer = watchdog.call(TIER, left, lambda view=view: proposals(policy, view))  # type: ignore[misc]
        if answer is None or not _follow(answer[0], state, watchdog, starts):
            starts.allowed.clear()
            return scores
        scores += answer[1]
        starts.allowed |= {name: degrees for name, degrees in answer[2].items() if name in state.waiting}
        if not answer[2]:
            break
    return scores


def _follow(chosen: list[Proposal], state: SchedulerState, watchdog: Watchdog, starts: StartRound) -> bool:
    """Start whom a policy chose, where that is possible; return whether nothing was impossible."""
    before = watchdog.count
    for name, degree, nodes in chosen:
        if starts.over():
            break
        request = state.waiting.get(name)
        if request is not None and degree not in request.job.workers:
            words = f"{name}: {degree} is not one of its numbers of workers, {request.job.workers}"
            watchdog.note(f"{TIER}: {words}")
        elif request is not None:
            starts.one(name, (degree,), TIER, nodes)
        elif name not in starts.starts:
            watchdog.note(f"{TIER} would start {name!r}, which does not wait")
    return watchdog.count == before
