"""Many schedulers, each with racks of a data centre, that place jobs which slow one another down, or pass them on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from gangplan.instances.errors import InstanceError, extra

try:
    from gymnasium.error import ResetNeeded
    from gymnasium.spaces import Box, Dict, Discrete
    from pettingzoo import ParallelEnv
except ImportError as error:
    raise ImportError(f"environments need Gymnasium and PettingZoo; {extra('envs')}") from error

from gangplan.simulator.envs.single import Observation

from ..interference.agents import AgentTable, Ask
from ..interference.case import InterferenceCase
from ..interference.cases import CENTRES, TRAINING
from ..interference.environment import Environment, InterferenceOutcome

JOB = ("there", "type", "workers", "servers", "gpus", "cores", "seconds", "waited")
"""Columns of a job: whether there is one; index of its type; workers and parameter servers left to place; GPUs of a
worker; cores of a parameter server; seconds by its profile; seconds since it came."""
RACK = ("free", "waiting", "wanted", "running")
"""Columns of a rack: free GPUs; its agent's jobs that wait; workers of these; jobs that run there."""


class ManyEnv(ParallelEnv[str, Observation, np.int64]):
    """Agents that own a rack each (MARL; Zhao and Wu, TNSM 2022), on PettingZoo's parallel interface.

    A job that arrives is some agent's, drawn at random, and lies whole on one rack. Each agent decides on the shortest
    of its jobs, all at once: action i < `groups` puts the job's next task (its workers, then its parameter servers) on
    the i-th group of GPUs; action `groups` + k passes the job on to agent k, once a job and before any of its tasks is
    placed; the last leaves it for the next interval, and is all that an agent without a job can do. Agents are asked
    again at the same instant while one of them has something to decide; then an interval passes.

    How fast jobs run together is the case's truth, which no observation shows: to pay by predicted speeds, let `cases`
    return cases with a predicted truth. All agents are paid the same: minus the increase of the sum of JCT, seconds.
    An action outside of the space is an error; one that the mask forbids ends the episode: truncated for all, with
    nothing paid and ``info["forbidden"]`` in words for who took it.

    Args:
        cases: makes the case of a seed, all on one fleet; by default 60 jobs on 24 servers of ``leaf-spine``.
        horizon: seconds; longer times are shown as this.

    Attributes:
        groups: of GPUs, of each agent.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "gangplan_many_v1", "render_modes": []}
    render_mode: ClassVar[None] = None

    def __init__(self, cases: Callable[[int], InterferenceCase] | None = None, *, horizon: float = 1e8) -> None:
        self._cases = partial(CENTRES["leaf-spine"], jobs=60, servers=24) if cases is None else cases
        self._horizon, self._rng = horizon, np.random.default_rng()
        case = self._cases(TRAINING)
        table = AgentTable(case)
        self._fleet, n = case.fleet, len(table.servers)
        self.groups = table.servers[0].stop
        if any(own.stop - own.start != self.groups for own in table.servers):
            raise InstanceError("cases", "have racks of unequal size")
        self.possible_agents = [f"rack_{k}" for k in range(n)]
        self.agents: list[str] = []
        types, big = len(case.jobs.types.names), float(np.iinfo(np.int32).max)
        most = np.concatenate([case.capacity.max(axis=0), np.full(types, big)]).astype(np.float32)
        high = np.tile(most, (self.groups, 1))
        every = Dict(
            {
                "groups": Box(np.zeros_like(high), high),
                "job": Box(0, horizon, (len(JOB),), np.float32),
                "racks": Box(0, big, (n, len(RACK)), np.float32),
                "self": Box(0, 1, (n,), np.int8),
                "action_mask": Box(0, 1, (self.groups + n + 1,), np.int8),
            }
        )
        self.observation_spaces = dict.fromkeys(self.possible_agents, every)
        self.action_spaces = {agent: Discrete(self.groups + n + 1) for agent in self.possible_agents}
        self._env: Environment | None = None
        self._table, self._asks, self._passed = table, dict[int, Ask](), 0.0

    def observation_space(self, agent: str) -> Dict:
        """Return what an agent sees."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        """Return what an agent can do."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Begin an episode.

        Args:
            seed: of all cases, and of whose jobs are whose, from here on.
            options: ``{"case": case}`` plays that `InterferenceCase` instead of drawing one.

        Raises:
            InstanceError: if the case is on another fleet.
        """
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        case = (options or {}).get("case")
        case = self._cases(TRAINING + int(self._rng.integers(2**31))) if case is None else case
        if not isinstance(case, InterferenceCase) or case.fleet.n_nodes != self._fleet.n_nodes:
            raise InstanceError("case", f"is not one on {self._fleet.n_nodes} groups of GPUs")
        self._env, self._table, self._passed = Environment(case), AgentTable(case, int(self._rng.integers(2**31))), 0.0
        self.agents = list(self.possible_agents)
        self._seek(self._env)
        seen = self._observe(self._env)
        return seen, {agent: {"action_mask": seen[agent]["action_mask"].copy()} for agent in self.agents}

    def step(self, actions: dict[str, np.int64]) -> tuple[Any, Any, Any, Any, Any]:
        """Act, all agents at once, and go on to the next decision of any of them."""
        env, agents = self._env, self.agents
        if env is None or not agents:
            raise ResetNeeded("the episode is over, or has not begun: call reset")
        chosen, masks = [self._known(agent, actions.get(agent)) for agent in agents], self._masks()
        wrong = [k for k, action in enumerate(chosen) if not masks[k, action]]
        infos: dict[str, dict[str, Any]] = {agent: {} for agent in agents}
        for k in wrong:
            infos[agents[k]]["forbidden"] = f"action {chosen[k]}: {self.words(chosen[k])} is not possible now"
        for k, ask in () if wrong else self._asks.items():
            self._table.take(ask, chosen[k])
        over = not wrong and self._seek(env, go_on=True)
        if over or wrong:
            self.agents, self._asks = [], {}
        seen, metrics = self._observe(env), dict[str, Any]()
        if over:
            mean_jct = float(env.outcome().jct.mean())
            metrics = {"metrics": {"mean_jct": mean_jct, "makespan": float(env.finish.max())}}
        for agent in agents:
            infos[agent] |= {"action_mask": seen[agent]["action_mask"].copy(), **metrics}
        now = float(np.maximum(np.minimum(env.finish, env.now) - env.case.jobs.submit, 0).sum())
        paid, self._passed = (0.0, self._passed) if wrong else (self._passed - now, now)
        ends = dict.fromkeys(agents, over), dict.fromkeys(agents, bool(wrong))
        return seen, dict.fromkeys(agents, paid), *ends, infos

    def words(self, action: int) -> str:
        """Return what an action means."""
        if action < self.groups:
            return f"to use group {action}"
        k = action - self.groups
        return f"to pass the job on to {self.possible_agents[k]}" if k < len(self.possible_agents) else "to wait"

    @property
    def outcome(self) -> InterferenceOutcome:
        """What came of an episode that is over."""
        if self._env is None or not self._env.done:
            raise InstanceError("outcome", "is there once the episode is over")
        return self._env.outcome()

    def _seek(self, env: Environment, *, go_on: bool = False) -> bool:
        """Go on until somebody has something to decide; return whether the episode is over instead."""
        if not go_on:
            self._table.begin(env)
        while not (asks := self._table.asks()):
            self._table.end()
            env.end_interval()
            if env.done:
                return True
            self._table.begin(env)
        self._asks = {ask.agent: ask for ask in asks}
        return False

    def _masks(self) -> np.ndarray[Any, np.dtype[np.int8]]:
        found = np.zeros((len(self.possible_agents), self.groups + len(self.possible_agents) + 1), dtype=np.int8)
        found[:, -1] = bool(self._asks)
        for k, ask in self._asks.items():
            found[k] = ask.mask
        return found

    def _known(self, agent: str, action: Any) -> int:
        if not self.action_spaces[agent].contains(action):
            raise InstanceError(
                f"actions[{agent!r}]", f"{action!r} is not one of 0 to {self.action_spaces[agent].n - 1}"
            )
        return int(action)

    def _observe(self, env: Environment) -> dict[str, Observation]:
        masks, jobs, owner, n = self._masks(), env.case.jobs, self._table.owner, len(self.possible_agents)
        racks, job = np.zeros((n, len(RACK)), dtype=np.float32), np.zeros((n, len(JOB)), dtype=np.float32)
        for column, some in ((1, env.waiting), (3, env.running)):
            np.add.at(racks[:, column], owner[some], 1)
        np.add.at(racks[:, 2], owner[env.waiting], jobs.workers[env.waiting])
        groups = []
        for k, own in enumerate(self._table.servers):
            ask = self._asks.get(k)
            here = (env.free[own], env.tasks[own]) if ask is None else (ask.part.free, ask.part.tasks)
            groups.append(np.concatenate(here, axis=1).clip(0).astype(np.float32))
            racks[k, 0] = here[0][:, 0].sum()
            if ask is not None:
                j, times = ask.job, (env.profiled[ask.job], env.now - jobs.submit[ask.job])
                needs = (jobs.worker[j, 0], jobs.server[j, 1])
                job[k] = (1, jobs.kind[j], *ask.part.left(j), *needs, *np.minimum(times, self._horizon))
        own_row = np.eye(n, dtype=np.int8)
        return {
            agent: {
                "groups": groups[k], "job": job[k], "racks": racks.copy(), "self": own_row[k], "action_mask": masks[k]
            }
            for k, agent in enumerate(self.possible_agents)
        }  # fmt: skip
