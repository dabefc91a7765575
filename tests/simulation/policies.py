"""Policies, most of them misbehaving, as source: a script that shows a fault carries its policy along."""

from __future__ import annotations

from typing import Any

_RANK = {
    "Longest": "return [-request.lasts(degree) for request, degree in view.options]",
    "Oldest": "return [request.submit for request, degree in view.options]",
    "Drawn": "return [sum(map(ord, r.name)) * 7919 * degree % 101 for r, degree in view.options]",
    "Meddles": "view.free[:] = 99; view.running.clear(); return [0.0 for _ in view.options]",
    "Infinite": "return [float('inf') for _ in view.options]",
    "Picky": "return [float('inf') if len(r.name) % 2 else degree for r, degree in view.options]",
    "NotNumbers": "return [float('nan') for _ in view.options]",
    "TooFew": "return [0.0 for _ in view.options][1:]",
    "Raises": "raise RuntimeError('out of luck')",
    "Sleeps": "import time; time.sleep(0.02); return [0.0 for _ in view.options]",
}
_PROPOSE = {
    "Proposes": "return [(r.name, r.job.workers[-1], None) for r in reversed(view.waiting)]",
    "Never": "return []",
    "Mumbles": "return [None, 3, 'start them all']",
    "Leaves": "raise SystemExit(3)",
    "Invents": "return [('nobody', 1, None), ('', 0, {}), *((r.name, 10**6, None) for r in view.waiting), "
    "('j0', 1, {-1: (0,)})]",
    # the first GPUs of the last node, whoever holds them, and again
    "Takes": "return 2 * [(r.name, r.job.workers[0], {len(view.up) - 1: tuple(range(r.job.workers[0]))})"
    " for r in view.waiting]",
    # a worker is half here and half there
    "Straddles": "return [(r.name, d := r.job.workers[0], {0: tuple(range(d * r.job.worker.grants - 1)), "
    "len(view.up) - 1: (7,)}) for r in view.waiting]",
    # free GPUs of its own choice
    "Spreads": """
        chosen, held = [], {(n, g) for r in view.running.values() for n, gpus in r.nodes.items() for g in gpus}
        free = [(n, g) for n, up in enumerate(view.up) if up for g in range(view.fleet.gpus[n]) if (n, g) not in held]
        for r in view.waiting:
            need, nodes = r.job.workers[0] * r.job.worker.grants, {}
            for n, g in free[:need]:
                nodes[n] = (*nodes.get(n, ()), g)
            chosen.append((r.name, r.job.workers[0], nodes))
            free = free[need:]
        return chosen""",
}
STEERS = {
    "patient",
    "gnn",
    "Spreads",
    "Takes",
    "Straddles",
    "Invents",
    "Never",
    "Infinite",
    "Picky",
    "Proposes",
    "Sleeps",
}
"""Those that may make jobs wait, or may not, as the clock has it."""
CHOOSES = {"Spreads", "Takes", "Straddles"}
"""Those that choose GPUs."""
NAMES = (*_RANK, *_PROPOSE)


def source(name: str) -> str:
    """Return a policy as a class in Python."""
    method, body = ("rank", _RANK[name]) if name in _RANK else ("propose", _PROPOSE[name])
    return f"class {name}:\n    def {method}(self, view):\n        {body.strip()}\n"


def policy(name: str) -> Any:
    """Return a policy by its name, `name` itself if it is one of the scheduler's own."""
    if name not in NAMES:
        return name
    scope: dict[str, Any] = {}
    exec(source(name), scope)
    return scope[name]()
