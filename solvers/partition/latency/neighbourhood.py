"""Large-neighbourhood search: CP-SAT on some groups, everything else kept together as it is in the best plan."""

from __future__ import annotations

import numpy as np

from ...run import Run
from .cpsat import Model
from .reduced import Reduced, merged
from .sequence import Orders

_FIRST, _LEAST, _MOST = 40, 10, 400
"""Groups set free: at first, at least and at most."""
_SECONDS = 4.0
"""What one round may take."""


def neighbourhood(run: Run, r: Reduced) -> None:
    """Improve the best plan until the time is up or a round sets everything free; do nothing if there is no plan.

    Free are the groups near one item, by the line of `Orders` or by the graph; other groups of a call become one item,
    other groups of a host stay there. The number that is set free grows while rounds end within their time.
    """
    if run.plan is None:
        return
    rng = np.random.default_rng(run.seed)
    line = Orders(r).by_key(Orders(r).depth(np.ones(r.n_items)))
    size = _FIRST
    while not run.stopped:
        slots = r.slots_of(run.plan)
        if slots is None:
            return
        free = _near(r, line.place, rng, size)
        small, fixed = contracted(r, slots, free)
        with run.share(min(1.0, _SECONDS / max(run.remaining(), 1e-9))):
            done = _round(run, small, fixed)
        if done and len(free) == len(r.groups):
            return
        size = min(_MOST, size * 5 // 4 + 1) if done else max(_LEAST, size * 3 // 4)


def _round(run: Run, small: Reduced, fixed: dict[int, int]) -> bool:
    """Search `small` for better plans; return whether that came to an end."""
    model = Model(small, run, fixed)
    return not run.stopped and model.improve(run, "neighbourhood")


def _near(r: Reduced, place: np.ndarray, rng: np.random.Generator, size: int) -> set[int]:
    seed = int(rng.integers(r.n_items))
    if rng.random() < 0.5:
        order = np.argsort(np.abs(place - place[seed]), kind="stable")
        return set(r.group_of[order][:size].tolist())
    free: set[int] = set()
    queue, seen = [seed], {seed}
    before, after = r.neighbours
    while queue and len(free) < size:
        v = queue.pop(0)
        free.add(int(r.group_of[v]))
        for u in (*before[v], *after[v], *r.groups[r.group_of[v]]):
            if u not in seen:
                seen.add(u)
                queue.append(u)
    return free


def contracted(r: Reduced, slots: list[int], free: set[int]) -> tuple[Reduced, dict[int, int]]:
    """Return `r` with the groups of each call that are not in `free` as one item, and the hosts that groups keep.

    Free groups of a call that lie on a path between others of it are kept with them.
    """
    owner = [slots[g] for g in r.group_of.tolist()]
    kept = {g for g in range(len(r.groups)) if g not in free}
    while True:
        between = {int(r.group_of[v]) for s in r.callers for v in _between(r, owner, kept, s)} - kept
        if not between:
            break
        kept |= between
    into = list(range(r.n_items))
    total = r.time.copy()
    first: dict[int, int] = {}
    for v, s in enumerate(owner):
        if int(r.group_of[v]) in kept and not r.slots[s].host:
            into[v] = first.setdefault(s, v)
            if into[v] != v:
                total[:, into[v]] += r.time[:, v]
    small = merged(r, into, total)
    placed = r.item_of >= 0
    new = np.empty(r.n_items, dtype=np.int64)
    new[r.item_of[placed]] = small.item_of[placed]
    fixed = {int(small.group_of[new[r.groups[g][0]]]): slots[g] for g in sorted(kept) if r.slots[slots[g]].host}
    return small, fixed


def _between(r: Reduced, owner: list[int], kept: set[int], s: int) -> set[int]:
    """Return the items of call s on a path from a kept item of it to another."""
    before, after = r.neighbours
    held = [v for v, slot in enumerate(owner) if slot == s]
    base = {v for v in held if int(r.group_of[v]) in kept}
    down, up = set(base), set(base)
    for v in held:
        if any(u in down for u in before[v]):
            down.add(v)
    for v in reversed(held):
        if any(u in up for u in after[v]):
            up.add(v)
    return down & up
