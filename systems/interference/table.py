"""The table at which agents sit at an interval: who has what to decide, and what is then done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import BoolArray

from .agents import Team
from .baselines import Rule, in_order
from .case import Case
from .environment import SERVER, WORKER, Environment


class Ask(NamedTuple):
    """What one agent decides next: where a task of a job goes, to whom the job is passed on, or that it waits.

    Attributes:
        agent, job, kind: whose decision, about a worker (0) or parameter server (1) of which job.
        part: what the agent sees.
        mask: what is allowed: its groups of GPUs, then agents, then to wait, bool (groups + agents + 1,).
    """

    agent: int
    job: int
    kind: int
    part: Environment
    mask: BoolArray


class Table(Team):
    """Agents that each take their jobs, the shortest first, and decide at the same time, task by task.

    A job is passed on, once, before any of its tasks is placed; once one is, the others are, since what is allowed
    leaves room for the rest. On idle racks no job that fits may wait, so that whatever decides comes to an end.
    """

    def __init__(self, case: Case, seed: int = 0, fails: Mapping[int, float] | None = None) -> None:
        super().__init__(case, lambda part: Rule("first"), seed=seed, fails=fails)
        self.case = case

    @property
    def passed_on(self) -> BoolArray:
        """Which jobs were passed on, bool (n,)."""
        return self._passed_on

    def begin(self, env: Environment) -> None:
        """Begin an interval."""
        self.env, agents = env, self.alive(env)
        self.views = self.parts(env, agents)
        self.queue = {k: in_order(part, shortest=True) for k, part in self.views.items()}

    def asks(self) -> list[Ask]:
        """Return what there is to decide now, of each agent one at most; nothing: the interval is over."""
        return [found for k in self.views if (found := self._ask(k)) is not None]

    def _ask(self, k: int) -> Ask | None:
        part, queue = self.views[k], self.queue[k]
        while queue:
            job, tasks = queue[0], part.mask(queue[0])
            kind = WORKER if tasks[WORKER].any() else SERVER
            to = np.zeros(len(self.servers), dtype=np.bool_)
            if not self._passed_on[job] and part.current < 0:
                to[[x for x in self.views if x != k and self.holds[job, x]]] = True
            if to.any() or tasks[kind].any():
                may_wait = part.current < 0 and (bool(part.running) or not tasks[kind].any())
                return Ask(k, job, kind, part, np.concatenate([tasks[kind], to, [may_wait]]))
            queue.pop(0)
        return None

    def take(self, ask: Ask, action: int) -> None:
        """Do what an agent decided."""
        k, job, groups = ask.agent, ask.job, len(ask.part.free)
        if action < groups:
            ask.part.place(job, ask.kind, action)
            if ask.part.current < 0:
                self.queue[k].pop(0)
            return
        self.queue[k].pop(0)
        if action < len(ask.mask) - 1:
            to = action - groups
            self._passed_on[job] = True
            self.hand(self.env, job, to)
            ask.part.waiting.remove(job)
            self.views[to].waiting.append(job)
            self.queue[to].append(job)

    def end(self) -> None:
        """Do in the whole cluster what was decided."""
        self.start(self.env, self.views)
