"""The chain that makes a schedule as long as it is."""

from __future__ import annotations

from collections.abc import Sequence


def critical_chain(finish: Sequence[float], waits_for: Sequence[Sequence[int]], slack: float) -> list[int]:
    """Return the items that lead to the last finish, in the order of time: each the last that the next waited for.

    Args:
        finish: seconds, of each item.
        waits_for: the items that each one cannot start before; of several that finish together within `slack`
            seconds the first counts.
        slack: seconds, for rounding.
    """
    item: int | None = max(range(len(finish)), key=finish.__getitem__, default=None)
    found: list[int] = []
    seen: set[int] = set()
    while item is not None:
        found.append(item)
        seen.add(item)
        last: int | None = None
        for other in waits_for[item]:
            # items that take no time can wait for one another in a circle
            if other not in seen and (last is None or finish[other] > finish[last] + slack):
                last = other
        item = last
    return found[::-1]
