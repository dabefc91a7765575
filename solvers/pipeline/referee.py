"""Tiny problems, and their optimum by looking at every order: slow, simple, a referee for everything that is clever."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from math import inf, prod
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.pipeline import Passes, PipelineProblem
from gangplan.instances.verify.pipeline import finishes, step_seconds

_KEPT = 64
"""Problems kept with their optimum, which is then looked for once and not once a method."""
MOST = 50_000
"""Combinations of orders worth looking at."""


@lru_cache(maxsize=_KEPT)
def optimum(problem: PipelineProblem) -> float | None:
    """Return the least seconds of a step of any orders, `None` if none fits into memory.

    It takes nothing from the solvers: seconds are the verifier's. More than `MOST` combinations of orders are refused.
    """
    passes = problem.passes()
    own = [np.flatnonzero(passes.device == d).tolist() for d in range(problem.devices)]
    every = [list(_orders(problem, passes, d, mine)) for d, mine in enumerate(own)]
    if prod(map(len, every)) > MOST:
        raise InstanceError("instance", f"{prod(map(len, every))} combinations of orders are more than {MOST}")
    found = ((finishes(problem, passes, orders), orders) for orders in product(*every))
    return min((step_seconds(ends, orders)[0] for (ends, stuck), orders in found if not stuck), default=None)


def _orders(problem: PipelineProblem, passes: Passes, d: int, left: list[int]) -> Iterator[list[int]]:
    """Yield the orders of a device in which passes come after those of their device, within its memory."""
    before, change, kinds = passes.before.tolist(), passes.change.tolist(), problem.stages * problem.micro_batches
    room = problem.capacity[d] * (1 + 1e-9) if len(problem.capacity) else inf

    def extend(order: list[int], left: list[int], held: float) -> Iterator[list[int]]:
        if not left:
            yield order
        for x in left:
            if before[x] not in left and x - kinds not in left and held + change[x] <= room:
                yield from extend([*order, x], [y for y in left if y != x], held + change[x])

    return extend([], left, 0.0)


_SHAPES = ((2, 2, True, "line"), (2, 3, False, "line"), (3, 2, False, "line"), (2, 1, True, "v"), (1, 2, False, "loop"))
"""Devices, micro-batches, whether weights are split, and how stages lie on devices."""


@lru_cache(maxsize=_KEPT)
def random_problem(seed: int, variant: str = "") -> PipelineProblem:
    """Make a tiny problem in which every constraint may bind, the same for the same arguments; some have no plan."""
    rng = np.random.default_rng(seed)
    p, m, split, lay = _SHAPES[seed % len(_SHAPES)]
    places = {"line": [*range(p)], "loop": [*range(p)] * 2, "v": [*range(p), *range(p)[::-1]]}[lay]
    device = np.array(places, dtype=np.int32)
    v, unit = len(device), float(rng.choice([1.0, 0.1, 1 / 3, np.pi]))
    even = rng.random() < 0.3
    ahead, back, weight = (unit * (np.ones(v) if even else rng.integers(k, 4, v)) for k in (1, 1, 0))
    activation = rng.integers(1, 4, v) * (1.0 if rng.random() < 0.7 else np.pi)
    need = max(float(activation[device == d].sum()) for d in range(p))
    room = need * rng.choice([0.9, 1.0, 1.5, 2.0, 3.0], p, p=[0.05, 0.25, 0.25, 0.25, 0.2])
    transfer = rng.choice([0.0, 0.0, unit]) * np.ones(v)
    kept = activation * rng.choice([0.0, 0.5, 1.0])
    some = room if rng.random() < 0.8 else np.zeros(0)
    barrier = bool(rng.random() < 0.6)
    made: list[Any] = [device, ahead, back, weight, m, split, transfer, activation, kept, some, barrier]
    return PipelineProblem(*made)
