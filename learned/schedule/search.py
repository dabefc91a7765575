"""From the network's scores to plans: the best choice in every step, then where the second best was nearly as good."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gangplan.solvers.schedule.prepare import Ints

from .play import Net
from .player import Player, Steps, no_net


def plans(player: Player, net: Net) -> Iterator[float]:
    """Build schedules and yield their goals, the greedy one first; `player` has each as it is yielded.

    Where the base is better than the greedy one it comes first, so that no answer is worse than the base.

    Limited discrepancy search (Harvey and Ginsberg, IJCAI 1995): each schedule follows the greedy one up to some step,
    takes another candidate there, and is greedy from then on. Those go first whose scores are nearest to that of the
    choice. When one is better than all before, the search goes on around it.
    """
    best, steps = player.watch(net)
    if player.base.cost < best:
        player.play(no_net())
        yield player.base.cost
        player.play(net)
    yield best
    best = min(best, player.base.cost)
    tried = {_key(steps.taken())}
    fixed = steps.taken()[:0]
    while True:
        for other in _others(steps, len(fixed)):
            if (key := _key(other)) in tried:
                continue
            tried.add(key)
            cost = player.play(net, follow=other)
            yield cost
            if cost < best:
                best, fixed = cost, other
                break
        else:
            return
        _, steps = player.watch(net, follow=fixed)
        tried.add(_key(steps.taken()))


def _others(steps: Steps, told: int) -> Iterator[Ints]:
    """Yield beginnings of schedules that leave that of `steps` at their last step, the likeliest first."""
    s = np.arange(len(steps.count))
    real = np.arange(steps.score.shape[1])[None] < steps.count[:, None]
    behind = np.where(real, steps.score[s, steps.pick][:, None] - steps.score, np.inf)
    behind[s, steps.pick] = np.inf
    behind[:told] = np.inf
    taken, jobs = steps.taken(), steps.jobs()
    for place in np.argsort(behind, axis=None, kind="stable").tolist():
        t, c = divmod(place, behind.shape[1])
        if not behind[t, c] < np.inf:
            return
        yield np.concatenate([taken[:t], [[jobs[t, c], steps.cands[t, c, 1]]]])


def _key(taken: Ints) -> bytes:
    return taken.tobytes()
