"""What the networks are shown: racks as they are announced, and each decision of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError

from ..interference.agents import AgentTable, Ask
from ..interference.baselines import least_interference
from ..interference.case import NIC, owners
from ..interference.environment import Environment
from ..interference.places import servers_for

Row = NDArray[np.float32]
EXTRAS, STATE = 6, 2
"""Numbers that the critic is shown of each agent, and that agents tell one another besides their racks."""
_TASKS, _AGE, _LIF, _QUEUE = 4.0, 10.0, 8.0, 5.0
"""Tasks of a job, intervals since its arrival, a score of least interference, and jobs that wait, that count as 1."""


def widths(types: int) -> tuple[int, int]:
    """Return how many numbers are shown of a group of GPUs, and of a decision."""
    return types + 3 + 4, types + 17


@dataclass(frozen=True, slots=True, eq=False)
class RackHierarchy:
    """The hierarchy of one data centre whose racks are agents.

    Attributes:
        inside: of each agent, of each of its groups the socket, of sockets the server, numbered from 0 on there.
        pod: the level above of each rack, int64 (agents,).
        speed: bandwidth of a rack, of what is above it, and of the core, logarithms, over a NIC's.
    """

    inside: tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]
    pod: NDArray[np.int64]
    speed: tuple[float, float, float]


def plan_of(env: Environment) -> RackHierarchy:
    """Return the hierarchy of an environment's fleet, in which every rack is an agent."""
    topology, of = env.case.fleet.topology, owners(env.case.fleet)
    names = [level.name for level in topology.levels]
    rack = names.index("rack")
    inside = []
    for k in range(int(of.max()) + 1):
        group = topology.group[:, of == k]
        socket = np.unique(group[0], return_inverse=True)[1]
        first = np.unique(socket, return_index=True)[1]
        inside.append((socket.astype(np.int64), np.unique(group[1][first], return_inverse=True)[1].astype(np.int64)))
    above = min(rack + 1, len(names) - 1)
    first = np.unique(of, return_index=True)[1]
    speed = [float(np.log(topology.levels[x].bandwidth / NIC)) for x in (rack, above, len(names) - 1)]
    return RackHierarchy(tuple(inside), topology.group[above, first].astype(np.int64), (speed[0], speed[1], speed[2]))


class AgentDecision(NamedTuple):
    """One decision.

    Attributes:
        agent: whose.
        groups: of its racks, float16 (groups, F).
        job: and the state of its queue, float16 (J,).
        mask: see `Ask`.
    """

    agent: int
    groups: NDArray[np.float16]
    job: NDArray[np.float16]
    mask: NDArray[np.bool_]


class AgentSight:
    """One environment and its table, as the networks see them.

    Raises:
        InstanceError: if it has other types.
    """

    def __init__(self, env: Environment, types: int) -> None:
        jobs = env.case.jobs
        if len(jobs.types.names) != types:
            raise InstanceError("case", f"has {len(jobs.types.names)} types; the policy is for {types}")
        self.plan, self.types = plan_of(env), types
        asked = np.stack([jobs.workers, jobs.worker[:, 0], jobs.servers, jobs.server[:, 1]], axis=1)
        long = np.log1p(env.profiled / env.case.interval)[:, None]
        still = [np.eye(types)[jobs.kind], asked / np.array([_TASKS, 1.0, _TASKS, 4.0]), long]
        self._still: Row = np.concatenate(still, axis=1, dtype=np.float32)

    def told(self, table: AgentTable) -> tuple[NDArray[np.float16], Row]:
        """Return what agents tell one another.

        Returns:
            All groups of GPUs, of no job in particular, float16 (groups, F), and of each agent the jobs that wait
            there and the GPUs these need, float32 (agents, `STATE`).
        """
        env, state = table.env, np.zeros((len(table.servers), STATE), dtype=np.float32)
        groups, gpus = self._groups(env), env.case.jobs.workers * env.case.jobs.worker[:, 0]
        for k, part in table.views.items():
            groups[table.servers[k]] = self._groups(part)
            state[k] = len(part.waiting) / _QUEUE, gpus[part.waiting].sum() / (2 * _QUEUE)
        return groups.astype(np.float16), state

    def _groups(self, env: Environment) -> Row:
        found = np.zeros((len(env.free), widths(self.types)[0]), dtype=np.float32)
        found[:, :3], found[:, 3 : 3 + self.types] = env.free / env.size, env.tasks / 2
        return found

    def decision(self, table: AgentTable, ask: Ask) -> AgentDecision:
        """Return what is seen of a decision."""
        part, job, jobs = ask.part, ask.job, ask.part.case.jobs
        groups = self._groups(part)
        for s, tasks in part.rows(job).items():
            groups[s, -4:-2] = tasks
        groups[:, -2] = ask.mask[: len(groups)]
        groups[:, -1] = least_interference(part, job, ask.kind) / _LIF
        w, p = part.left(job)
        needs = servers_for(part.free, jobs.worker[job], jobs.server[job], w, p)
        fits, first = needs <= len(part.free), part.current < 0
        state = [
            ask.kind, w / _TASKS, p / _TASKS, np.tanh((part.now - jobs.submit[job]) / (_AGE * part.case.interval)),
            table.passed_on[job], fits, first, (needs - part.case.fewest[job]) / _TASKS if fits and first else 0.0,
            np.log1p(len(table.queue[ask.agent])) / 3, *self.plan.speed,
        ]  # fmt: skip
        row = np.concatenate([self._still[job], np.array(state, dtype=np.float32)]).astype(np.float16)
        return AgentDecision(ask.agent, groups.astype(np.float16), row, ask.mask)

    def extras(self, env: Environment, owner: NDArray[np.int64]) -> Row:
        """Return what the critic is shown of each agent besides its racks, float32 (agents, `EXTRAS`)."""
        found = np.zeros((len(self.plan.pod), EXTRAS), dtype=np.float32)
        for job in env.waiting:
            found[owner[job], :2] += 0.2, 0.1 * env.profiled[job] / env.case.interval
        for job in env.running:
            found[owner[job], 2:4] += 0.2, 0.2 * (1.0 - env.done_epochs[job] / env.case.jobs.epochs[job])
        come = len(env.start) - len(env.waiting) - len(env.running) - int(np.isfinite(env.finish).sum())
        found[:, 4:] = min(come / len(found) / 20, 2.0), come == 0
        return found
