"""How much work the recurrence is, before it is begun."""

from __future__ import annotations

from .family import Family
from .recurrence import Level


def effort(family: Family, tracked: bool) -> float:
    """Return how many numbers the recurrence looks at, at most."""
    n = float(len(family))
    level: Level | None = Level(family, len(family.problem.members()) - 1, tracked, lambda: False)
    behind, total, pairs = {0}, 0.0, n * n
    while level is not None:
        # what is under way behind the members of this level, however its pipelines are put together
        inside: set[int] = set()
        for state in level.states:
            for option, rest in level.ways(state):
                total += pairs * len(behind)
                if level.inner is not None:
                    inside |= {level.later(option, rest, b) for b in behind}
        behind, pairs, level = inside, family.density**2 * n**3 / 6, level.inner
    return total
