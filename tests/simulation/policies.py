"""Policies, most of them misbehaving: each stands for itself, so that a script can carry its source along."""

from __future__ import annotations

# ruff: noqa: ANN001, ANN201, D101, D102


class Longest:  # against the heuristic
    def rank(self, view):
        return [-request.lasts(degree) for request, degree in view.options]


class Oldest:
    def rank(self, view):
        return [request.submit for request, degree in view.options]


class Drawn:  # any order, the same for equal views
    def rank(self, view):
        return [sum(map(ord, request.name)) * 7919 * degree % 101 for request, degree in view.options]


class Spreads:  # GPUs of its own choice, all of them free
    def propose(self, view):
        free, chosen = view.free, []
        for request in view.waiting:
            degree, nodes = request.job.workers[0], {}
            for node in range(len(free)):
                taken = {g for r in view.running.values() for n, gpus in r.nodes.items() if n == node for g in gpus}
                idle = [g for g in range(int(view.fleet.gpus[node])) if g not in taken] if view.up[node] else []
                count = min(len(idle), degree * request.job.worker.grants - sum(map(len, nodes.values())))
                if count > 0:
                    nodes[node] = tuple(idle[:count])
            chosen.append((request.name, degree, nodes))
        return chosen


class Takes:  # the first GPUs of the last node, whoever holds them, and again
    def propose(self, view):
        last = len(view.up) - 1
        return 2 * [(r.name, r.job.workers[0], {last: tuple(range(r.job.workers[0]))}) for r in view.waiting]


class Straddles:  # a worker is half here and half there
    def propose(self, view):
        chosen = []
        for r in view.waiting:
            need = r.job.workers[0] * r.job.worker.grants
            chosen.append((r.name, r.job.workers[0], {0: tuple(range(need - 1)), len(view.up) - 1: (7,)}))
        return chosen


class Proposes:  # who, and not where
    def propose(self, view):
        return [(r.name, r.job.workers[-1], None) for r in reversed(view.waiting)]


class Invents:
    def propose(self, view):
        return [("nobody", 1, None), ("", 0, {}), *((r.name, 10**6, None) for r in view.waiting), ("j0", 1, {-1: (0,)})]


class Mumbles:
    def propose(self, view):
        return [None, 3, "start them all"]


class Never:
    def propose(self, view):
        return []


class Infinite:
    def rank(self, view):
        return [float("inf") for _ in view.options]


class Picky:  # makes some wait
    def rank(self, view):
        return [float("inf") if len(r.name) % 2 else degree for r, degree in view.options]


class NotNumbers:
    def rank(self, view):
        return [float("nan") for _ in view.options]


class TooFew:
    def rank(self, view):
        return [0.0 for _ in view.options][1:]


class Raises:
    def rank(self, view):
        raise RuntimeError("out of luck")


class Leaves:
    def propose(self, view):
        raise SystemExit(3)


class Meddles:  # writes where it may only read
    def rank(self, view):
        view.free[:] = 99
        view.running.clear()
        return [0.0 for _ in view.options]


class Sleeps:
    def rank(self, view):
        import time

        time.sleep(0.02)
        return [0.0 for _ in view.options]


STEERS = (Spreads, Takes, Straddles, Invents, Never, Infinite, Picky, Proposes)
"""Those that may make jobs wait."""
CHOOSES = (Spreads, Takes, Straddles)
"""Those that choose GPUs."""
FAILS = (Mumbles, NotNumbers, TooFew, Raises, Leaves, Sleeps)
RANKS = (Longest, Oldest, Drawn, Meddles)
POLICIES = {kind.__name__: kind for kind in (*RANKS, *STEERS, *FAILS)}
