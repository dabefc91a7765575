"""Many schedulers, each with its part of the cluster, that place jobs or pass them on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Dict, Discrete
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.placement import Fleet, SpeedModel

from ..engine import POLICIES, Scheduler
from ..engine.jobs import Long
from ..metrics import summary
from ..outcome import Outcome
from .episode import Cases, Episode, Reward, Synthetic, completion_time, plain
from .gang import Gang
from .observe import MOST_JOBS, NODE, Float32, Scene
from .single import Mask, Observation

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


class Team:
    """K agents, each with a part of the nodes, and the job that each has in hand.

    Args:
        episode: that is played.
        parts: the nodes of each agent, bool (m,).
        rng: says whose each job is, of those who could hold it if nothing else ran.

    Attributes:
        nodes: indices of the nodes of each agent.
        owner: whose each job is, int64 (n,).
        firsts: the job that each agent decides on, -1 where there is none.
        masks: what each may do: use one of its nodes, pass the job on to one of the agents, wait.
    """

    def __init__(self, episode: Episode, parts: list[NDArray[np.bool_]], rng: np.random.Generator) -> None:
        self._episode, self._parts = episode, parts
        self.nodes = [np.flatnonzero(part) for part in parts]
        self._width = max(len(nodes) for nodes in self.nodes)
        self._holds = self._who_holds()
        self.owner: Long = np.argmax(np.where(self._holds, rng.random(self._holds.shape), -1.0), axis=1)
        self._passed_on = np.zeros(len(self._holds), dtype=bool)
        self.gangs: list[Gang | None] = [None] * len(parts)
        self._waits = [False] * len(parts)
        self.firsts: list[int] = []
        self.masks: list[Mask] = []

    @property
    def staged(self) -> Long:
        """GPUs of each node that are set aside, int64 (m,)."""
        total = np.zeros(len(self._parts[0]), dtype=np.int64)
        for gang in self.gangs:
            if gang is not None:
                total += gang.staged
        return total

    def seek(self) -> bool:
        """Go on until some agent has more to do than wait; return whether there is one."""
        while True:
            self.firsts = self._first_jobs()
            idle = not self._episode.may_wait and not any(g is not None and g.left < g.degree for g in self.gangs)
            self.masks = [self._mask(k, job, idle) for k, job in enumerate(self.firsts)]
            if any(mask[:-1].any() for mask in self.masks):
                return True
            if not self._episode.advance():
                return False
            self._waits = [False] * len(self._parts)

    def act(self, k: int, action: int) -> None:
        """Do what agent k may do."""
        job, gang, to = self.firsts[k], self.gangs[k], action - self._width
        if to >= 0:
            self.gangs[k] = None  # it has not been begun
            if to == len(self._parts):
                self._waits[k] = bool(self.masks[k][:-1].any())  # who had nothing to do takes what is passed on to it
            else:
                self.owner[job], self._passed_on[job] = to, True
            return
        assert gang is not None, "the mask allowed it"
        only = np.zeros(len(self._parts[k]), dtype=bool)
        only[self.nodes[k][action]] = True
        gang.take(only)
        if not gang.left:
            at = int(np.flatnonzero(self._episode.queue.jobs == job)[0])
            self._episode.start(at, gang.degree, gang.rows())
            self.gangs[k] = None

    def _who_holds(self) -> NDArray[np.bool_]:
        """Return which agents could hold each job if nothing else ran, bool (n, K)."""
        episode, state = self._episode, self._episode.state
        work = state.workload
        _, sample, back = np.unique(
            np.column_stack([work.gpus, state.kind, state.unit]), axis=0, return_index=True, return_inverse=True
        )
        holds = np.zeros((len(sample), len(self._parts)), dtype=bool)
        for i, job in enumerate(sample.tolist()):
            holds[i] = [Gang(state, job, episode.wanted(job), part).fits() for part in self._parts]
            if not holds[i].any():
                words = f"job {work.names[job]} needs {work.gpus[job]}, which no agent's part ever has for it"
                raise InstanceError(f"gpus[{job}]", words)
        return np.asarray(holds[back.ravel()])

    def _first_jobs(self) -> list[int]:
        jobs = self._episode.queue.jobs
        owners, at = np.unique(self.owner[jobs], return_index=True)
        firsts = [-1] * len(self._parts)
        for k, i in zip(owners.tolist(), at.tolist(), strict=True):
            gang = self.gangs[k]  # one begun is ended, whoever was passed on since and goes before it
            firsts[k] = int(jobs[i]) if gang is None else gang.job
        return firsts

    def _mask(self, k: int, job: int, idle: bool) -> Mask:
        mask = np.zeros(self._width + len(self._parts) + 1, dtype=np.int8)
        gang = self.gangs[k]
        if gang is None and job >= 0 and not self._waits[k]:
            gang = Gang(self._episode.state, job, self._episode.wanted(job), self._parts[k])
            if not self._passed_on[job]:
                mask[self._width : -1] = self._holds[job]
                mask[self._width + k] = 0
            self.gangs[k] = gang = gang if gang.fits() else None
        if gang is not None:
            mask[: len(self.nodes[k])] = gang.eligible()[self.nodes[k]]
            if gang.left < gang.degree:
                return mask
        mask[-1] = not (idle and mask.any())
        return mask
