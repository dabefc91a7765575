"""Many schedulers, each with its part of the cluster, that place jobs or pass them on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Dict, Discrete
from pettingzoo import ParallelEnv

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.placement import Fleet, SpeedModel

from ..engine import POLICIES, Scheduler
from ..metrics import summary
from ..outcome import Outcome
from .episode import Cases, Episode, Reward, Synthetic, completion_time, plain
from .observe import MOST_JOBS, NODE, Float32, Scene
from .single import Observation
from .team import Team

PART = ("gpus", "free", "largest", "waiting", "wanted")
"""Columns of a part: GPUs; GPUs that nobody holds; most of them on one node; its agent's jobs that wait, their GPUs."""


class ManyEnv(ParallelEnv[str, Observation, np.int64]):  # type: ignore[misc]  # PettingZoo ships no types
    """Agents that own a rack each (MARL; Zhao and Wu, TNSM 2022), on PettingZoo's parallel interface.

    A job that arrives is some agent's, drawn at random. Each agent decides on the first of its jobs, all at once:
    action i < `nodes` puts as many of the gang's GPUs on its i-th node as that can hold, and it is asked again until
    all have a place, and only then the job starts; action `nodes` + k passes the job on to agent k, once a job; the
    last waits for the next arrival or completion, and is all that an agent without a job can do. A gang begun must be
    ended, so jobs commit all or nothing. Agents are asked again at the same instant while one of them has something to
    decide.

    A job is passed on only to who could ever hold it. Waiting is forbidden where nothing runs, arrives or is being
    placed. All agents are paid the same. An action outside of the space is an error; one that the mask forbids ends the
    episode: truncated for all, with nothing paid and ``info["forbidden"]`` in words for who took it.

    Args:
        fleet: the nodes; by default 4 racks of 4 nodes of 4 GPUs.
        cases: what episodes are made of; by default 60 jobs of 1 to 8 GPUs at a load of 0.9.
        scheduler: orders the queue of each agent, the first blocks those behind; by default by submission. If it
            consolidates, the agents are bound by that.
        level: agents own the groups of this level of the fleet's topology, 0 are racks.
        speeds: the cost model, by which jobs slow one another down; none by default.
        reward: what is paid, by default minus the increase of the sum of JCT.
        horizon: seconds; longer times are shown as this.

    Attributes:
        nodes: of the largest part; smaller ones are filled up with nodes without GPUs.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "gangplan_many_v0", "render_modes": []}
    render_mode: ClassVar[None] = None

    def __init__(
        self,
        fleet: Fleet | None = None,
        cases: Cases | None = None,
        scheduler: Scheduler | None = None,
        *,
        level: int = 0,
        speeds: SpeedModel | None = None,
        reward: Reward = completion_time,
        horizon: float = 1e8,
    ) -> None:
        self.fleet = fleet = Fleet.regular(4, 4, 4) if fleet is None else fleet
        self.scheduler = plain(scheduler or Scheduler((POLICIES["fifo"](),)), "place", ("head",))
        require_number(horizon, "horizon", positive=True)
        require_number(level, "level", whole=True)
        if level >= len(fleet.topology.levels):
            raise InstanceError("level", f"{level!r} is beyond the topology's {len(fleet.topology.levels)}")
        self._cases, self._speeds = cases or Synthetic(fleet.n_gpus, jobs=60), speeds
        self._reward = reward
        group = fleet.topology.group[level]
        self._parts = [np.asarray(group == g) for g in np.unique(group)]
        self.nodes = max(int(part.sum()) for part in self._parts)
        self.possible_agents = [f"{fleet.topology.levels[level].name}_{k}" for k in range(len(self._parts))]
        self.agents: list[str] = []
        n, a = len(self.possible_agents), self.nodes + len(self.possible_agents) + 1
        self._scene = scene = Scene(fleet, speeds, float(horizon))
        whole = scene.node_space()
        own = Box(np.zeros((self.nodes, len(NODE)), np.float32), np.tile(whole.high.max(axis=0), (self.nodes, 1)))
        gpus = float(max(fleet.n_gpus, 1))
        self._part_high = np.array([gpus, gpus, gpus, MOST_JOBS, MOST_JOBS * gpus], dtype=np.float32)
        parts = Box(np.zeros((n, len(PART)), np.float32), np.tile(self._part_high, (n, 1)))
        self.observation_spaces = {
            agent: Dict(
                {
                    "nodes": own,
                    "jobs": scene.job_space(1),
                    "parts": parts,
                    "self": Box(0, 1, (n,), np.int8),
                    "action_mask": Box(0, 1, (a,), np.int8),
                }
            )
            for agent in self.possible_agents
        }
        self.action_spaces = {agent: Discrete(a) for agent in self.possible_agents}
        self._rng = np.random.default_rng()
        self._episode: Episode | None = None
        self._team: Team | None = None

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
            options: ``{"case": case}`` plays that `Case` instead of drawing one.
        """
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        case = (options or {}).get("case")
        case = self._cases(self._rng) if case is None else case
        self._episode = episode = Episode(case, self.fleet, self.scheduler, self._speeds, self._reward)
        self._team = team = Team(episode, self._parts, self._rng)
        self.agents = list(self.possible_agents)
        team.seek()
        infos = {agent: {"action_mask": mask.copy()} for agent, mask in zip(self.agents, team.masks, strict=True)}
        return self._observe(episode, team), infos

    def step(self, actions: dict[str, np.int64]) -> tuple[Any, Any, Any, Any, Any]:
        """Act, all agents at once, and go on to the next decision of any of them.

        Args:
            actions: of every agent.
        """
        episode, team, agents = self._episode, self._team, self.agents
        if episode is None or team is None or not agents:
            raise ResetNeeded("the episode is over, or has not begun: call reset")
        chosen = [self._known(agent, actions.get(agent)) for agent in agents]
        wrong = {k for k, action in enumerate(chosen) if not team.masks[k][action]}
        infos: dict[str, dict[str, Any]] = {agent: {} for agent in agents}
        over = False
        if not wrong:
            for k, action in enumerate(chosen):
                team.act(k, action)
            over = not team.seek()
        for k in wrong:
            infos[agents[k]]["forbidden"] = f"action {chosen[k]}: {self.words(chosen[k])} is not possible now"
        if over or wrong:
            team.masks = [np.zeros_like(mask) for mask in team.masks]
            self.agents = []
        metrics = {"metrics": asdict(summary(episode.outcome, self.fleet))} if over else {}
        for agent, mask in zip(agents, team.masks, strict=True):
            infos[agent] |= {"action_mask": mask.copy(), **metrics}
        paid = episode.collect()
        return (
            self._observe(episode, team),
            dict.fromkeys(agents, paid),
            dict.fromkeys(agents, over),
            dict.fromkeys(agents, bool(wrong)),
            infos,
        )

    def words(self, action: int) -> str:
        """Return what an action means."""
        if action < self.nodes:
            return f"to use node {action}"
        k = action - self.nodes
        return f"to pass the job on to {self.possible_agents[k]}" if k < len(self.possible_agents) else "to wait"

    @property
    def outcome(self) -> Outcome:
        """The schedule of an episode that is over."""
        if self._episode is None or self.agents:
            raise InstanceError("outcome", "is there once the episode is over")
        return self._episode.outcome

    def _known(self, agent: str, action: Any) -> int:
        if not self.action_spaces[agent].contains(action):
            raise InstanceError(
                f"actions[{agent!r}]", f"{action!r} is not one of 0 to {self.action_spaces[agent].n - 1}"
            )
        return int(action)

    def _observe(self, episode: Episode, team: Team) -> dict[str, Observation]:
        state = episode.state
        nodes, parts = self._scene.nodes(state, team.staged), self._pooled(episode, team)
        seen: dict[str, Observation] = {}
        for k, agent in enumerate(self.possible_agents):
            own = np.zeros((self.nodes, len(NODE)), dtype=np.float32)
            own[: len(team.nodes[k])] = nodes[team.nodes[k]]
            gang, mask = team.gangs[k], team.masks[k]
            jobs = np.array([team.firsts[k]] if mask[:-1].any() else [], dtype=np.int64)
            seen[agent] = {
                "nodes": own,
                "jobs": self._scene.jobs(state, jobs, 1, None if gang is None else gang.left),
                "parts": parts.copy(),
                "self": np.eye(len(parts), dtype=np.int8)[k],
                "action_mask": mask.copy(),
            }
        return seen

    def _pooled(self, episode: Episode, team: Team) -> Float32:
        state, jobs = episode.state, episode.queue.jobs
        free, gpus = np.where(state.up, state.free[:, 0], 0.0), np.where(state.up, self.fleet.gpus, 0)
        k, owner = len(self._parts), team.owner[jobs]
        waiting = np.bincount(owner, minlength=k)
        wanted = np.bincount(owner, weights=state.workload.gpus[jobs], minlength=k)
        rows = np.array([(gpus[nodes].sum(), free[nodes].sum(), free[nodes].max()) for nodes in team.nodes])
        out = np.minimum(np.column_stack([rows, waiting, wanted]), self._part_high)
        return np.asarray(out, dtype=np.float32)
