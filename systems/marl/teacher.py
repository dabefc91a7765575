"""Who teaches at first: a market says which agent gets each job, that agent searches its racks, by speeds alone."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import BoolArray

from ..interference.evaluate import CONSOLIDATE, alone
from ..interference.greedy import Greedy, Rows
from ..interference.market import Market
from ..interference.table import Ask, Table

SAME = 0.02
"""By what share a job must be faster elsewhere to be passed on though it fits."""


class Teacher:
    """Says what agents at a table should do.

    At an interval a market is cleared in which a job that was passed on is bid for by its owner alone. Agents do what
    came of it; where it can no longer be done, since they did otherwise before, they place as their own search says.

    Args:
        table: whose parts' truth, without interference, is searched by.
    """

    def __init__(self, table: Table) -> None:
        self._table, self._rows, self._to = table, dict[int, Rows](), dict[int, tuple[int, float]]()
        self._alone = alone(table.case.truth)
        self._search = [Greedy(alone(part.truth), consolidate=CONSOLIDATE) for part in table.cases]
        each = iter(self._search)
        self._market = Market(table.case, lambda part: next(each, self._search[0]))

    def begin(self) -> None:
        """Clear the market of an interval."""
        table, env = self._table, self._table.env.fork()
        own = np.arange(len(table.servers)) == table.owner[:, None]
        self._market.holds = np.where(table.passed_on[:, None], own, table.holds)
        self._market.owner = table.owner.copy()
        env.running.clear()  # nobody's speed depends on others, so a search without them finds the same
        self._market.place(env)
        jobs = env.case.jobs
        speed = self._alone.speeds(env.snapshot()) if env.running else ()
        self._to = {
            job: (int(self._market.owner[job]), float(jobs.epochs[job] / each))
            for job, each in zip(env.running, speed, strict=True)
        }

    def label(self, ask: Ask) -> BoolArray:
        """Return which actions are right, at least one."""
        part, job, groups, found = ask.part, ask.job, len(ask.part.free), np.zeros_like(ask.mask)
        if part.current < 0:
            running, part.running = part.running, []
            self._rows[job], seconds = self._search[ask.agent].offer(part, job)
            part.running = running
            to, least = self._to.get(job, (ask.agent, np.inf))
            if to != ask.agent and ask.mask[groups + to] and seconds > (1 + SAME) * least:
                found[groups + to], self._rows[job] = True, {}
                return found
        done = part.rows(job)
        for s, tasks in self._rows[job].items():
            found[s] = ask.mask[s] and tasks[ask.kind] > done.get(s, (0, 0))[ask.kind]
        if not found.any():
            found[-1] = ask.mask[-1]
        return found if found.any() else ask.mask
