"""Local search: simulated annealing over placements and priorities."""

from __future__ import annotations

from math import exp

import numpy as np

from ...run import Run
from .model import Prepared
from .moves import Moves
from .rank import placed_rank
from .schedule import Decoder, Sent, as_plan

_HOT, _COLD = 1e-2, 1e-5
"""Temperature at the beginning and the end of a round, relative to the makespan."""
_STALE = 12
"""Rounds without a better plan after which the search ends."""
_CHECK = 16
"""Evaluations between two looks at the clock."""


def local_search(run: Run, p: Prepared) -> None:
    """Improve the best plan by moves of groups and of priorities until rounds bring nothing; do nothing without a plan.

    Every placement is decoded (`Decoder.times`) in the order of its upward ranks, to which the search adds a bias of
    its own for single ops. A round cools down geometrically (Kirkpatrick, Gelatt, Vecchi, Science 1983) from the best
    plan on; rounds start less and less hot, then hot again. Moves keep memory and colocation, see `Moves`.
    """
    if run.plan is None or p.n_devices == 1:
        return
    search = _Search(run, p)
    stale, size = 0, int(np.clip(25 * p.n_groups, 100, 10_000))
    i = 0
    while stale < _STALE and not run.stopped:
        hot = (_HOT, _HOT / 4, _HOT / 30)[i % 3]
        stale = 0 if search.round(size, hot) else stale + 1
        i += 1


class _Search:
    """The search: the plan it is at, and the best."""

    def __init__(self, run: Run, p: Prepared) -> None:
        self.run, self.p = run, p
        self.rng = np.random.default_rng(run.seed)
        self.decoder = Decoder(p)
        self.topological: list[int] = p.order.tolist()
        self.reverse = self.topological[::-1]
        where = run.plan.device[[ops[0] for ops in p.members]].tolist()
        self.moves = Moves(self.decoder, where, self.rng)
        self.bias: dict[int, float] = {}
        # the plan's own order need not be that of its ranks: keep it as a bias
        rank = placed_rank(self.decoder, self.moves.device, self.reverse)
        start = run.plan.start.tolist()
        self.best = self._evaluate()[0]
        own = {v: -start[v] - rank[v] for v in range(p.n)}
        self.bias, plain = own, self.best
        self.best = self._evaluate()[0]
        if plain <= self.best:
            self.best, self.bias = plain, {}
        self.kept = list(where), dict(self.bias)

    def round(self, size: int, hot: float) -> bool:
        """Anneal once from the best plan; return whether it became better."""
        self.moves.reset(self.kept[0])
        self.bias = dict(self.kept[1])
        now = self.best
        better = False
        cool = (_COLD / hot) ** (1 / size)
        heat = hot * now
        chance = self.rng.random((2, size)).tolist()
        for i in range(size):
            if i % _CHECK == 0 and self.run.stopped:
                break
            heat *= cool
            changed = None
            if chance[0][i] < 0.15 or not self.moves.propose():
                changed = self._nudge(now)
            value, plan = self._evaluate()
            if value <= now or chance[1][i] < exp((now - value) / heat if heat > 0 else -np.inf):
                now = value
                self.moves.accept()
                if value < self.best * (1 - 1e-12):
                    self.best, better = value, True
                    self.kept = list(self.moves.where), dict(self.bias)
                    self.run.offer(as_plan(self.p, self.moves.device, *plan), "local_search")
                continue
            self.moves.undo()
            if changed is not None:
                v, old = changed
                self.bias[v] = old
        return better

    def _nudge(self, now: float) -> tuple[int, float]:
        """Change the priority of one op; return it and its old bias."""
        v = int(self.rng.integers(self.p.n))
        old = self.bias.get(v, 0.0)
        self.bias[v] = 0.0 if old and self.rng.random() < 0.3 else old + self.rng.normal() * 0.1 * now
        return v, old

    def _evaluate(self) -> tuple[float, tuple[list[float], Sent]]:
        device = self.moves.device
        rank = placed_rank(self.decoder, device, self.reverse)
        if self.bias:
            order = self.decoder.order([-x - self.bias.get(v, 0.0) for v, x in enumerate(rank)])
        else:
            order = sorted(self.topological, key=rank.__getitem__, reverse=True)
        start, finish, sent = self.decoder.times(device, order)
        return max(finish), (start, sent)
