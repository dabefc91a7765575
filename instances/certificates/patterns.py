"""Sets of tasks that one node may hold, patterns, and the search for all that cost less than they pay."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from operator import le, sub
from typing import Any, NamedTuple

from ..depth_first import walked
from .exact import Budget
from .nodes import ONE, NodeFamilies, NodeOption


class PricedPattern(NamedTuple):
    """Options on one node: their cost less what they pay, and what each gang costs at least because of them."""

    reduced: int
    options: tuple[NodeOption, ...]
    whole: tuple[int, ...]


class AlikeNodes:
    """Nodes that are alike, with prices of gangs, of which options pay their share by workers.

    Attributes:
        count: of nodes.
        limit: of cost less pay; who iterates over patterns may lower it on the way.
    """

    def __init__(self, nodes: NodeFamilies, q: int, prices: list[int]) -> None:
        self.options, self._has, self.count = nodes.kinds[q]
        self.limit, self._host = 0, nodes.host
        self._many = [family.size for family in nodes.families]
        self._pays = [-x.part(-prices[x.family]) for x in self.options]
        # what a share of 1 more compute costs at least, and so two options each other
        full = [not x.split and x.compute >= x.hidden + x.fixed for x in self.options]
        slopes = [x.part(x.compute if y else x.hidden) for x, y in zip(self.options, full, strict=True)]
        rows = [(x.model, slope) for x, slope in zip(self.options, slopes, strict=True)]
        self._meet = [[(a * self._host[k][m] + b * self._host[m][k]) // ONE for m, b in rows] for k, a in rows]

    def patterns(self, limit: int, steps: Budget) -> Iterator[PricedPattern]:
        """Yield all patterns whose cost less pay is below `limit`; each set of options that is looked at is a step."""
        self.limit, self._steps = limit, steps
        yield from walked(self._extend([], [], 0, list(range(len(self.options))), self._has))

    def _extend(
        self, chosen: list[int], slower: list[int], busy: int, able: list[int], left: tuple[int, ...]
    ) -> Iterator[PricedPattern | Iterator[Any]]:
        """Yield the patterns that have the chosen options, and others out of those that are able; see `walked`."""
        options, host, pays = self.options, self._host, self._pays
        self._steps.take()
        mine = [options[i] for i in chosen]
        whole = [x.whole(s, busy - x.duty) for x, s in zip(mine, slower, strict=True)]
        value = sum(x.part(cost) - pays[i] for cost, x, i in zip(whole, mine, chosen, strict=True))
        if chosen and value < self.limit:
            yield PricedPattern(value, tuple(mine), tuple(whole))
        # what another of a model suffers, and costs the chosen at least: a part of a gang may be slower elsewhere
        suffers, costs = dict[int, int](), dict[int, int]()
        for k in {options[i].model for i in able}:
            suffers[k] = sum(host[k][x.model] for x in mine)
            costs[k] = sum(
                x.part(x.hidden * host[x.model][k] // ONE if x.split else x.whole(s + host[x.model][k]) - now)
                for x, s, now in zip(mine, slower, whole, strict=True)
            )
        taken, gains = Counter(x.family for x in mine), list[tuple[int, int]]()
        for i in able:
            x = options[i]
            if taken[x.family] < self._many[x.family] and all(map(le, x.need, left)):
                gains.append((x.part(x.whole(suffers[x.model], busy)) + costs[x.model] - pays[i], i))
        gains.sort()
        for k, least in enumerate(self._least(gains, taken, left[0])):
            if value + least < self.limit:
                i = gains[k][1]
                x = options[i]
                more = [s + host[y.model][x.model] for y, s in zip(mine, slower, strict=True)]
                rest, room = [y for _, y in gains[k:]], tuple(map(sub, left, x.need))
                yield self._extend([*chosen, i], [*more, suffers[x.model]], busy + x.duty, rest, room)

    def _least(self, gains: list[tuple[int, int]], taken: Counter[int], room: int) -> list[int]:
        """Return what a set adds at least whose first option is each of these: options gain, and meet one another.

        Each of m options meets m - 1 others, and shares what that costs with them; but for the first, those that gain
        nothing need not be there.
        """
        family = [self.options[i].family for _, i in gains]
        many = {f: self._many[f] - taken[f] for f in family}
        able = dict[int, list[int]]()
        for f, (gain, i) in zip(family, gains, strict=True):
            if gain < 0:
                able.setdefault(f, []).append(i)
        found = [gain for gain, _ in gains]
        if not able:
            return found
        sums = []  # twice what each costs as one of 1, 2, ...
        for f, (gain, i) in zip(family, gains, strict=True):
            row, others = self._meet[i], list[int]()
            for g, own in able.items():
                others += [min([row[y] for y in own])] * (many[g] - (f == g))
            sums.append([*accumulate(sorted(others), initial=2 * gain)])
        least = min(self.options[i].need[0] for own in able.values() for i in own)
        most = 1 + sum(many[f] for f in able)
        for m in range(2, 1 + min(most, room // least + 1 if least else most)):
            # the cheapest that come after each, at most as many of a family as there are
            cheapest, last = list[int](), dict[int, int]()
            for k in range(len(gains) - 1, -1, -1):
                if len(sums[k]) < m:
                    continue
                f, cost = family[k], sums[k][m - 1]
                if gains[k][0] < 0 and cost < last.get(f, cost + 1):
                    for _ in range(min(m, many[f])):
                        if f in last:
                            cheapest.remove(last[f])
                        insort(cheapest, cost)
                    last[f] = cost
                if len(cheapest) >= m - 1:
                    found[k] = min(found[k], (cost + sum(cheapest[: m - 1])) // 2)
        return found
