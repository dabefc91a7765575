"""Many schedulers, each with racks of its own, that pass jobs on: MARL's setting (Zhao and Wu, TNSM 2022).

A job that arrives is some agent's, and lies whole on the racks of one. An agent sees its own racks and jobs; what it
learns of others comes in messages, which are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import BoolArray, require_choice
from gangplan.instances.errors import InstanceError

from .baselines import Places, ScoreRule
from .case import InterferenceCase, owners
from .environment import SERVER, WORKER, Environment

JOB, BID, AWARD = 64, 16, 8
"""Bytes of messages: a job described, a number about a job, a job's number."""
FORWARD = ("nowhere", "random", "emptiest")


@dataclass(slots=True)
class AgentTraffic:
    """What agents told one another.

    Attributes:
        messages, size: how many, and bytes of all.
        passed: rows (seconds, job, from, to) of jobs that changed hands.
        rounds, seconds: how often a market asked its agents, and the time until all had answered or were late.
        wire: bytes that really went to and from agents that are elsewhere.
    """

    messages: int
    size: int
    passed: list[tuple[float, int, int, int]]
    rounds: int = 0
    seconds: float = 0.0
    wire: int = 0

    def count(self, messages: int, size: int) -> None:
        """Add messages of one size."""
        self.messages += messages
        self.size += messages * size


class Team:
    """Agents that place what they can by a policy of their own, and pass on, once, what does not fit.

    Args:
        local: makes the policy of an agent from the case of its racks.
        forward: to whom: ``nowhere``, at ``random``, or to the ``emptiest``, which all agents announce at an interval.
        racks: of each agent.
        seed: says whose each job is, of those who can hold it.
        fails: agent -> when it stops for good, seconds; jobs of its that wait become others', those that run run on.
        late: agent -> from when until when it answers too late, seconds: it is passed over, and its jobs wait.

    Attributes:
        traffic: what agents told one another.
        owner: whose each job is, int64 (n,).
        passed_on: which jobs were passed on, bool (n,).

    Raises:
        InstanceError: if no agent can hold a job.
    """

    def __init__(
        self,
        case: InterferenceCase,
        local: Callable[[InterferenceCase], Places],
        forward: str = "nowhere",
        *,
        racks: int = 1,
        seed: int = 0,
        fails: Mapping[int, float] | None = None,
        late: Mapping[int, tuple[float, float]] | None = None,
    ) -> None:
        require_choice(forward, "forward", FORWARD)
        of = owners(case.fleet, racks)
        ends = np.flatnonzero(np.diff(of, append=-1)) + 1
        self.servers = [slice(a, b) for a, b in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]
        self.cases = [case.at(part) for part in self.servers]
        self._agents: list[Places] = [local(part) for part in self.cases]
        self._forward, self._rng, self._fails = forward, np.random.default_rng([seed, 22]), dict(fails or {})
        self._late = dict(late or {})
        self.holds = np.stack([part.fewest <= part.fleet.n_nodes for part in self.cases], axis=1)
        if not self.holds.any(axis=1).all():
            raise InstanceError("jobs", f"{int(np.argmin(self.holds.any(axis=1)))!r} fits no agent's racks")
        self.owner = np.argmax(np.where(self.holds, self._rng.random(self.holds.shape), -1.0), axis=1)
        self.passed_on: BoolArray = np.zeros(len(self.owner), dtype=np.bool_)
        self.traffic = AgentTraffic(0, 0, [])

    def alive(self, env: Environment) -> list[int]:
        """Return the agents that answer; what waits at those that have failed becomes that of some that have not."""
        found = [k for k in range(len(self.servers)) if env.now < self._fails.get(k, np.inf)]
        gone = set(range(len(self.servers))) - set(found)
        for job in env.waiting if gone else ():
            if self.owner[job] in gone:
                able = [k for k in found if self.holds[job, k]]
                if not able:
                    raise InstanceError("fails", f"leaves nobody who can hold job {job}")
                self.hand(env, job, able[int(self._rng.integers(len(able)))])
        never = (np.inf, np.inf)
        return [k for k in found if not (span := self._late.get(k, never))[0] <= env.now < span[1]]

    def hand(self, env: Environment, job: int, to: int) -> None:
        """Make a job another agent's."""
        self.traffic.passed.append((env.now, job, int(self.owner[job]), to))
        self.traffic.count(1, JOB)
        self.owner[job] = to

    def parts(self, env: Environment, agents: Iterable[int]) -> dict[int, Environment]:
        """Return what each of some agents sees."""
        where = {k: (list[int](), list[int]()) for k in agents}
        for at, jobs in enumerate((env.waiting, env.running)):
            for job, k in zip(jobs, self.owner[jobs].tolist(), strict=True):
                if k in where:
                    where[k][at].append(job)
        return {k: env.part(self.cases[k], self.servers[k], *found) for k, found in where.items()}

    def place(self, env: Environment) -> None:
        """Let all agents place, pass on what does not fit, and place that."""
        agents = self.alive(env)
        parts = self.parts(env, agents)
        for k, part in parts.items():
            self._agents[k].place(part)
        if self._forward == "nowhere" or len(agents) < 2:
            self.start(env, parts)
            return
        asked = set[int]()
        if self._forward == "emptiest":
            self.traffic.count(len(agents) * (len(agents) - 1), BID)
        free = {k: float(part.free[:, 0].sum()) for k, part in parts.items()}
        for job in list(env.waiting):
            k = int(self.owner[job])
            if k not in parts or np.isfinite(parts[k].start[job]) or self.passed_on[job] or parts[k].fits(job):
                continue
            others = [x for x in agents if x != k and self.holds[job, x]]
            if not others:
                continue
            to = max(others, key=free.__getitem__) if self._forward == "emptiest" else int(self._rng.choice(others))
            free[to] -= float(env.case.jobs.workers[job] * env.case.jobs.worker[job, 0])
            self.passed_on[job] = True
            self.hand(env, job, to)
            parts[k].waiting.remove(job)
            parts[to].waiting.append(job)
            asked.add(to)
        for k in asked:
            self._agents[k].place(parts[k])
        self.start(env, parts)

    def start(self, env: Environment, parts: Mapping[int, Environment]) -> None:
        """Do in the whole cluster what agents did in their parts."""
        waiting = set(env.waiting)
        for k, part in parts.items():
            begin = self.servers[k].start
            for job in waiting.intersection(part.running):
                env.place_whole(job, {begin + s: row for s, row in part.rows(job).items()})


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


class AgentTable(Team):
    """Agents that each take their jobs, the shortest first, and decide at the same time, task by task.

    A job is passed on, once, before any of its tasks is placed; once one is, the others are, since what is allowed
    leaves room for the rest. On idle racks no job that fits may wait, so that whatever decides comes to an end.
    """

    def __init__(self, case: InterferenceCase, seed: int = 0, fails: Mapping[int, float] | None = None) -> None:
        super().__init__(case, lambda part: ScoreRule("first"), seed=seed, fails=fails)
        self.case = case

    def begin(self, env: Environment) -> None:
        """Begin an interval."""
        self.env, agents = env, self.alive(env)
        self.views = self.parts(env, agents)
        self.queue = {k: part.in_order(True) for k, part in self.views.items()}

    def asks(self) -> list[Ask]:
        """Return what there is to decide now, of each agent one at most; nothing: the interval is over."""
        return [found for k in self.views if (found := self._ask(k)) is not None]

    def _ask(self, k: int) -> Ask | None:
        part, queue = self.views[k], self.queue[k]
        while queue:
            job, tasks = queue[0], part.mask(queue[0])
            kind = WORKER if tasks[WORKER].any() else SERVER
            to = np.zeros(len(self.servers), dtype=np.bool_)
            if not self.passed_on[job] and part.current < 0:
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
            self.passed_on[job] = True
            self.hand(self.env, job, to)
            ask.part.waiting.remove(job)
            self.views[to].waiting.append(job)
            self.queue[to].append(job)

    def end(self) -> None:
        """Do in the whole cluster what was decided."""
        self.start(self.env, self.views)
