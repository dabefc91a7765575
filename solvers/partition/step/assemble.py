"""A plan from the bound: the best placement of each unit of the series, one joined to the next."""

from __future__ import annotations

from ...run import Run
from .greedy import offer_placement
from .model import Prepared
from .rank import placed_rank, ranked
from .repair import repair
from .schedule import Decoder
from .series import Series


def assemble(run: Run, p: Prepared, parts: Series, placements: list[tuple[int, ...] | None]) -> None:
    """Offer the plan that puts each unit as its placement says, moved to where the unit before has left off.

    A unit's placement holds on any devices as far from one another: servers change places so that its first joint is
    where the last one is. Groups outside the series go to a neighbour. Memory is repaired, see `repair`.

    Args:
        run, p: the solve.
        parts: the series.
        placements: for each unit a device for each of its groups, `None` if all are on one device.
    """
    where = [-1] * p.n_groups
    for unit, placement in zip(parts.units, placements, strict=True):
        first = unit.groups[0]
        if where[first] < 0:
            where[first] = placement[0] if placement else int(p.allowed[first].argmax())
        here = where[first]
        to = _swap(p, placement[0], here) if placement else {}
        for g, d in zip(unit.groups, placement or [here] * len(unit.groups), strict=True):
            if where[g] < 0:
                where[g] = to.get(d, d)
    group = p.group_of.tolist()
    edges = [(group[u], group[v]) for u, v in zip(*(ends.tolist() for ends in p.edges), strict=True)]
    while found := [(a, b) if where[a] < 0 else (b, a) for a, b in edges if (where[a] < 0) != (where[b] < 0)]:
        for g, neighbour in found:
            where[g] = where[neighbour]
    where = [max(d, 0) for d in where]
    fixed = repair(run, p, where)
    if fixed is not None and not run.stopped:
        device = [fixed[g] for g in group]
        offer_placement(run, p, fixed, ranked(p, placed_rank(Decoder(p), device, p.order[::-1].tolist())), "series")


def _swap(p: Prepared, a: int, b: int) -> dict[int, int]:
    """Return a renaming of devices that takes a to b and keeps all distances, or none if it is not plain."""
    if a == b:
        return {}
    swap = {a: b, b: a}
    if p.twins[a] != p.twins[b]:
        near = p.used_levels[0]
        one = [a, *(d for d in range(p.n_devices) if p.level[a, d] == near)]
        two = [b, *(d for d in range(p.n_devices) if p.level[b, d] == near)]
        swap = dict(zip([*one, *two], [*two, *one], strict=False)) if len(one) == len(two) else {}
    new = [swap.get(d, d) for d in range(p.n_devices)]
    same = (p.level[new][:, new] == p.level).all() and (p.type_of[new] == p.type_of).all()
    return swap if same else {}
