"""Placement as a MILP: which gangs cross which links, and who else does."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pulp

from .milp_tasks import Programme, Tasks


class Network:
    """(K) Literals of gangs in and across the members of every level; level l, member a.

    Costs only grow with them, so rows push them up and nothing need hold them down.

    Attributes:
        inside: inside[l][j][a]: at least 1 where j has tasks in a.
        crosses: crosses[l][j][a]: at least 1 where j has tasks in a and outside.
    """

    def __init__(self, programme: Programme, tasks: Tasks) -> None:
        self.new, self.tasks, self.batch = programme, tasks, tasks.batch
        self.inside: list[list[dict[int, Any]]] = []
        self.crosses: list[list[dict[int, Any]]] = []
        self._pairs: dict[tuple[int, int, int, int], Any] = {}
        for level in range(len(self.batch.bandwidth)):
            self.inside.append([self._inside(level, j) for j in range(len(self.batch.jobs))])
            self.crosses.append([self._crosses(level, j) for j in range(len(self.batch.jobs))])

    def within(self, level: int, counts: dict[int, Any]) -> dict[int, list[Any]]:
        """Return the entries of `counts`, by node, of each member of a level."""
        found: defaultdict[int, list[Any]] = defaultdict(list)
        for n, x in counts.items():
            found[self.batch.members[level][n]].append(x)
        return dict(found)

    def _inside(self, level: int, j: int) -> dict[int, Any]:
        there = {}
        for a, xs in self.within(level, self.tasks.here[j]).items():
            there[a] = xs[0]
            if len(xs) > 1:
                there[a] = self.new.amount(1)
                for x in xs:
                    self.new.lp += there[a] >= x
        return there

    def _crosses(self, level: int, j: int) -> dict[int, Any]:
        """Return where j crosses: in a, but not as a whole."""
        job, there, lp = self.batch.jobs[j], self.inside[level][j], self.new.lp
        if job.workers[-1] + job.servers == 1 or len(there) == 1:
            return {}
        counts = [(self.tasks.w[j], job.workers[-1])]
        if job.servers:
            counts.append((self.tasks.p[j], job.servers))
        parts = [(self.within(level, x), pulp.lpSum(x.values()), most) for x, most in counts]
        found, wholes = {}, []
        for a, x in there.items():
            room = sum(x.upBound for x in parts[0][0].get(a, []))
            found[a] = x
            if room < job.workers[0]:
                continue  # it does not fit
            whole, found[a] = self.new.binary(), self.new.amount(1)
            wholes.append(whole)
            lp += found[a] >= x - whole
            for members, total, most in parts:
                lp += total - pulp.lpSum(members.get(a, [])) <= most * (1 - whole)
        if wholes:
            lp += pulp.lpSum(wholes) <= 1
        return found

    def beside(self, level: int, j: int, a: int) -> dict[int, Any]:
        """Return the literals of other gangs that cross at a, by job."""
        return {i: crosses[a] for i, crosses in enumerate(self.crosses[level]) if i != j and a in crosses}

    def load(self, level: int, j: int, a: int) -> tuple[Any, int]:
        """Return how many gangs are on the link of a, j among them, at least 0 if j does not cross; and the most."""
        mine, terms = self.crosses[level][j][a], []
        others = self.beside(level, j, a)
        for i, theirs in others.items():
            key = level, a, min(i, j), max(i, j)
            if key not in self._pairs:
                self._pairs[key] = self.new.both(mine, theirs)
            terms.append(self._pairs[key])
        return pulp.lpSum([mine, *terms]), 1 + len(others)
