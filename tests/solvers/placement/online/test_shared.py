"""What all workers of a gang share: the parts of a fleet, and which of them has a gang."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan.instances.placement import Fleet, GangJob
from gangplan.solvers.placement.online.capacity import Kind
from gangplan.solvers.placement.online.placer import Placer
from gangplan.solvers.placement.online.shared import FleetParts, Shared, SharedGang, level_groups

FLEET = Fleet.regular(2, 3, 4, gpu_type=("A", "A", "B"))
TYPES = (("A", 2.0), ("B", 1.0))


def chosen(shared: Shared, room: list[int], workers: int) -> list[int]:
    """Return the nodes of the part that is chosen."""
    return [int(node) for node in FleetParts(FLEET, shared).choose(np.array(room), workers)]


@pytest.mark.parametrize(
    ("shared", "room", "workers", "nodes"),
    [
        (Shared("rack"), [2, 2, 0, 1, 2, 0], 3, [3, 4, 5]),  # the fuller of the racks that hold it
        (Shared("rack"), [2, 2, 0, 1, 2, 0], 4, [0, 1, 2]),
        (Shared("rack"), [2, 2, 0, 1, 2, 0], 5, []),
        (Shared("rack", required=False), [2, 2, 0, 1, 2, 0], 5, [0, 1, 2, 3, 4, 5]),
        (Shared("node"), [2, 4, 3, 4, 0, 0], 3, [2]),
        (Shared(types=TYPES), [4, 4, 1, 4, 4, 2], 3, [2, 5]),  # the fastest type that holds it
        (Shared(types=TYPES), [4, 4, 1, 4, 4, 2], 4, [0, 1, 3, 4]),
        (Shared(types=TYPES, mixed=True), [4, 4, 1, 4, 4, 2], 17, [0, 1, 2, 3, 4, 5]),
        (Shared(types=TYPES, mixed=True), [4, 4, 1, 4, 4, 2], 3, [2, 5]),
        (Shared("rack", types=TYPES), [4, 4, 1, 4, 3, 1], 2, [3, 4]),
        (Shared("rack", required=False, types=TYPES), [4, 4, 1, 4, 3, 1], 2, [2, 5]),  # fast before close
        (Shared("rack", required=False, types=TYPES), [4, 4, 1, 4, 3, 2], 2, [5]),
    ],
)
def test_the_part_that_has_a_gang(shared: Shared, room: list[int], workers: int, nodes: list[int]) -> None:
    """The fastest part, then the fullest; close together where one group has the room."""
    # with types, room of rack 2 in one part is that of one type: nodes 3 and 4, or node 5
    assert [node for node in chosen(shared, room, workers) if room[node] or not nodes] == [n for n in nodes if room[n]]


def test_levels_by_name() -> None:
    """Nodes are a level too; a level that the fleet has not is one group."""
    assert level_groups(FLEET, "rack").tolist() == [0, 0, 0, 1, 1, 1]
    assert level_groups(FLEET, "node").tolist() == [0, 1, 2, 3, 4, 5]
    assert level_groups(FLEET, "row").tolist() == [0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("seed", range(30))
def test_the_placer_against_enumeration(seed: int) -> None:
    """As gangs come and go, one fits if a part of its fleet has the room, and is in one part."""
    rng = np.random.default_rng(seed)
    placer, idle, there = Placer(FLEET, None), FLEET.gpus.astype(int).tolist(), list[str]()
    for i in range(60):
        if there and rng.random() < 0.4:
            name = there.pop(int(rng.integers(len(there))))
            for node, seat in placer.running[name].items():
                idle[node] += seat.workers
            placer.remove(name)
            continue
        level, one = str(rng.choice(["", "rack", "node"])), bool(rng.random() < 0.5)
        shared = Shared(level, types=TYPES if one else ())
        job = SharedGang.of(GangJob(f"j{i}", "any", (int(rng.integers(1, 9)),)), shared)
        assert Kind.workers(replace(job, workers=(1,))).shared == shared
        parts: dict[tuple[int, int], int] = {}
        for node, free in enumerate(idle):
            part = {"": 0, "rack": node // 3, "node": node}[level], int(FLEET.gpu_type[node]) * one
            parts[part] = parts.get(part, 0) + free
        fits = max(parts.values()) >= job.workers[0]
        assert placer.fits(job) == fits
        seats = placer.place(job)
        assert (seats is not None) == fits
        if seats is not None:
            there.append(job.name)
            groups = {({"": 0, "rack": n // 3, "node": n}[level], int(FLEET.gpu_type[n]) * one) for n in seats}
            assert len(groups) == 1 and sum(seat.workers for seat in seats.values()) == job.workers[0]
            for node, seat in seats.items():
                idle[node] -= seat.workers
