"""Environments with one agent: it says which job starts, or where the parts of a gang go."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.placement import Fleet, SpeedModel
from gangplan.instances.placement.proximity import Proximity

from ..engine import POLICIES, EngineScheduler
from ..engine.jobs import Long, Rows
from ..engine.state import ClusterState
from ..metrics import summary
from ..outcome import Outcome
from .episode import Cases, EngineEpisode, Reward, Synthetic, completion_time, plain
from .observe import Observer

Mask = NDArray[np.int8]
Observation = dict[str, Any]


class ClusterEnv(gymnasium.Env[Observation, np.int64]):
    """A cluster on which one kind of decision is the agent's and a scheduler makes the others.

    The clock stands still while the agent decides, and goes on to the next instant at which there is something for it
    to decide. The last action waits for the next arrival or completion. An action outside of the space is an error; one
    that the mask forbids ends the episode: truncated, with nothing paid and ``info["forbidden"]`` in words.

    Args:
        fleet: the nodes; by default 2 racks of 4 nodes of 4 GPUs, as TopDRL's.
        cases: what episodes are made of; by default 30 jobs of 1 to 8 GPUs at a load of 0.9.
        speeds: the cost model, by which jobs slow one another down, or what gangs pay for being apart; none by default.
        reward: what is paid, by default minus the increase of the sum of JCT.
        horizon: seconds; longer times are shown as this.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  Gymnasium types it so
    takes: ClassVar[str]
    """The decision that is the agent's."""

    def __init__(
        self,
        fleet: Fleet | None = None,
        cases: Cases | None = None,
        scheduler: EngineScheduler | None = None,
        *,
        speeds: SpeedModel | Proximity | None = None,
        reward: Reward = completion_time,
        horizon: float = 1e8,
    ) -> None:
        require_number(horizon, "horizon", positive=True)
        self.fleet = Fleet.regular(2, 4, 4) if fleet is None else fleet
        self.scheduler = plain(
            scheduler or EngineScheduler((POLICIES["fifo"](),), consolidate=self.takes == ""), self.takes
        )
        self._cases, self._speeds, self._reward = cases or Synthetic(self.fleet.n_gpus), speeds, reward
        self._scene = Observer(self.fleet, speeds, float(horizon))
        self._episode: EngineEpisode | None = None
        self._mask: Mask = np.zeros(0, dtype=np.int8)
        self._waits = False

    def _spaces(self, slots: int, actions: int, seen: Mapping[str, Box] | None = None) -> None:
        self.action_space, self._mask = Discrete(actions), np.zeros(actions, dtype=np.int8)
        spaces = seen or self._scene.spaces(slots)
        self.observation_space = Dict({**spaces, "action_mask": Box(0, 1, (actions,), np.int8)})

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; `seed` is of all cases from here on, ``{"case": case}`` plays that `Case` instead."""
        super().reset(seed=seed)
        case = (options or {}).get("case")
        case = self._cases(self.np_random) if case is None else case
        self._episode = EngineEpisode(case, self.fleet, self.scheduler, self._speeds, self._reward)
        self._waits = False
        self._begin(self._episode)
        self._seek(self._episode)
        return self._observe(self._episode), {"action_mask": self._mask.copy()}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Act, and go on to the next decision."""
        episode = self._episode
        if episode is None or not self._mask.any():
            raise gymnasium.error.ResetNeeded("the episode is over, or has not begun: call reset")
        if not self.action_space.contains(action):
            raise InstanceError("action", f"{action!r} is not one of 0 to {len(self._mask) - 1}")
        info: dict[str, Any] = {}
        over, forbidden = False, not self._mask[action]
        if forbidden:
            info["forbidden"] = f"action {action}: {self.words(int(action))} is not possible now"
            self._mask = np.zeros_like(self._mask)
        else:
            self._waits = bool(action == len(self._mask) - 1)
            if not self._waits:
                self._act(episode, int(action))
            over = not self._seek(episode)
        if over:
            info["metrics"] = asdict(summary(episode.outcome, self.fleet))
        info["action_mask"] = self._mask.copy()
        return self._observe(episode), episode.collect(), over, forbidden, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are possible now, bool (n,); none once the episode is over."""
        return self._mask.astype(bool)

    @property
    def outcome(self) -> Outcome:
        """The schedule of an episode that is over."""
        if self._episode is None or self._mask.any():
            raise InstanceError("outcome", "is there once the episode is over")
        return self._episode.outcome

    @abstractmethod
    def words(self, action: int) -> str:
        """Return what an action means, for people."""

    @abstractmethod
    def _begin(self, episode: EngineEpisode) -> None:
        """Get ready for an episode."""

    def _seek(self, episode: EngineEpisode) -> bool:
        """Go on to the next decision, and note its mask; return whether there is one."""
        while self._waits or (mask := self._offer(episode)) is None:
            if not episode.advance():
                self._mask = np.zeros_like(self._mask)
                return False
            self._waits = False
        self._mask = mask
        return True

    @abstractmethod
    def _offer(self, episode: EngineEpisode) -> Mask | None:
        """Return the mask of what there is to decide at this instant, None if there is nothing."""

    @abstractmethod
    def _act(self, episode: EngineEpisode, action: int) -> None:
        """Do what an allowed action other than to wait says."""

    @abstractmethod
    def _look(self, episode: EngineEpisode) -> Observation:
        """Return the observation without its mask."""

    def _observe(self, episode: EngineEpisode) -> Observation:
        return {**self._look(episode), "action_mask": self._mask.copy()}


class SelectEnv(ClusterEnv):
    """Start one of the first jobs of the queue, or none of them before something happens.

    Action i < slots starts the job in slot i. After a start the agent is asked again at the same instant, as long as a
    job in a slot fits. Whether and where a job fits, and at what degree it runs, is the scheduler's (by default jobs
    are consolidated); its `select` says who is in the slots, its discipline counts for nothing. As in RLScheduler
    (Zhang et al., SC 2020) and TopDRL.

    Args:
        slots: how many jobs of the queue are shown.
        image: makes, of fleet, speeds and slots, what draws a state to be shown instead, e.g.
            `gangplan.systems.topdrl.env.Picture`: it has `spaces`, and `observe` of a state, its queue and the
            number of arrivals.
        fleet, cases, scheduler, arguments: of `ClusterEnv`.
    """

    takes: ClassVar[str] = ""

    def __init__(
        self,
        fleet: Fleet | None = None,
        cases: Cases | None = None,
        scheduler: EngineScheduler | None = None,
        *,
        slots: int = 20,
        image: Callable[[Fleet, Any, int], Any] | None = None,
        **arguments: Any,
    ) -> None:
        require_number(slots, "slots", positive=True, whole=True)
        super().__init__(fleet, cases, scheduler, **arguments)
        self._picture = None if image is None else image(self.fleet, self._speeds, slots)
        self._slots = slots
        self._found: list[tuple[int, Rows | None]] = []  # at what degree and where each job of a slot fits
        self._alike: list[int] = []  # jobs of one number fit alike
        self._spaces(slots, slots + 1, None if self._picture is None else self._picture.spaces)

    def words(self, action: int) -> str:
        """Return what an action means."""
        return "to wait" if action == self._slots else f"to start the job in slot {action}"

    def _begin(self, episode: EngineEpisode) -> None:
        self._alike = list(range(episode.state.workload.n_jobs))
        if self.scheduler.part("place") is None and self.scheduler.part("degree") is None:
            asked = np.column_stack([episode.state.workload.gpus, episode.state.kind, episode.state.unit])
            self._alike = np.unique(asked, axis=0, return_inverse=True)[1].ravel().tolist()

    def _offer(self, episode: EngineEpisode) -> Mask | None:
        jobs = episode.queue.jobs[: self._slots].tolist()
        found: dict[int, tuple[int, Rows | None]] = {}
        for job in jobs:
            if self._alike[job] not in found:
                degree = episode.wanted(job)
                found[self._alike[job]] = degree, episode.room(job, degree)
        self._found = [found[self._alike[job]] for job in jobs]
        mask = np.zeros(self._slots + 1, dtype=np.int8)
        mask[: len(jobs)] = [rows is not None for _, rows in self._found]
        if not mask.any():
            return None
        mask[-1] = not episode.loop.last
        return mask

    def _act(self, episode: EngineEpisode, action: int) -> None:
        degree, rows = self._found[action]
        assert rows is not None, "the mask allowed it"
        episode.start(action, degree, rows)

    def _look(self, episode: EngineEpisode) -> Observation:
        if self._picture is not None:
            seen: Observation = self._picture.observe(episode.state, episode.queue.jobs, episode.loop.arrived)
            return seen
        shown = episode.queue.jobs[: self._slots]
        return self._scene.observe(episode.state, shown, self._slots)


class Gang:
    """The GPUs of a job that starts when all of them have a place.

    A node takes as many as it can hold and are left. Consolidated, a job that some node would hold goes on a single
    node and a larger one on whole free nodes, as by default in the engine. Whatever eligible node is taken next,
    the rest can be placed too: what the others can take does not change, and it was enough.

    Args:
        single: a node takes one GPU at a time; not if jobs are consolidated.

    Attributes:
        left: GPUs that have no place yet.
        staged: GPUs set aside on each node, int64 (m,).
    """

    def __init__(self, state: ClusterState, job: int, degree: int, single: bool = False) -> None:
        self._s, self.job, self.degree, self.left, self._single = state, job, degree, degree, single
        m = len(state.free)
        self.staged: Long = np.zeros(m, dtype=np.int64)
        self._order: list[int] = []
        self._able, self._whole = (state.nodes.room(job, whole) for whole in (False, True))
        self._many = state.consolidate and degree > int(self._whole.max())
        self._idle = state.free[:, 0] == state.whole[:, 0]

    def fits(self) -> bool:
        """Return whether all of it can be placed."""
        s, able, left = self._s, self._able, self.left
        if not s.consolidate:
            return int(able.sum()) >= left
        if not self._many:
            return bool((able >= left).any())
        able = np.where(self._idle, able, 0)
        full = able == self._whole
        rest = left - int(able[full].sum())
        return rest <= 0 or bool((able[~full] >= rest).any())

    def eligible(self) -> NDArray[np.bool_]:
        """Return which nodes may take the next part, bool (m,); of meaning while it `fits`."""
        if not self._s.consolidate:
            return np.asarray(self._able > 0)
        if not self._many:
            return np.asarray(self._able >= self.left)
        return np.asarray(self._idle & (self._able > 0) & (self._able >= np.minimum(self.left, self._whole)))

    def take(self, node: int) -> None:
        """Place one GPU, or as many as possible, on an eligible node."""
        gpus = 1 if self._single else min(self.left, int(self._able[node]))
        if not self.staged[node]:
            self._order.append(node)
        self.staged[node] += gpus
        self.left -= gpus
        self._able[node] = self._able[node] - gpus if self._single else 0

    def rows(self) -> Rows:
        """Return where it is."""
        return Rows.whole([(node, int(self.staged[node])) for node in self._order])


class PlaceEnv(ClusterEnv):
    """Choose the node that takes the next part of a gang.

    Action i puts as many of the gang's GPUs on node i as it can hold; the agent is asked again until all have a place,
    and only then the job starts; a gang begun must be ended. Jobs come in the scheduler's order; if one waits, all do.
    If the scheduler consolidates, the agent is bound by that; by default it does not.

    Args:
        single: an action places one GPU (one worker, as in Harmony) instead of as many as possible.
        fleet, cases, scheduler, arguments: of `ClusterEnv`.
    """

    takes: ClassVar[str] = "place"
    _gang: Gang | None

    def __init__(
        self,
        fleet: Fleet | None = None,
        cases: Cases | None = None,
        scheduler: EngineScheduler | None = None,
        *,
        single: bool = False,
        **arguments: Any,
    ) -> None:
        super().__init__(fleet, cases, scheduler, **arguments)
        plain(self.scheduler, self.takes, ("head",))
        if single and self.scheduler.consolidate:
            raise InstanceError("single", "goes one GPU at a time, but the scheduler consolidates")
        self._single = single
        self._spaces(1, self.fleet.n_nodes + 1)

    def words(self, action: int) -> str:
        """Return what an action means."""
        return "to wait" if action == self.fleet.n_nodes else f"to use node {action}"

    def _begin(self, episode: EngineEpisode) -> None:
        self._gang = None

    def _offer(self, episode: EngineEpisode) -> Mask | None:
        if self._gang is None or self._gang.left == self._gang.degree:
            gangs = (Gang(episode.state, x, episode.wanted(x), self._single) for x in episode.queue.jobs[:1].tolist())
            self._gang = next((gang for gang in gangs if gang.fits()), None)
        if self._gang is None:
            return None
        last = self._gang.left == self._gang.degree and not episode.loop.last
        return np.append(self._gang.eligible(), last).astype(np.int8)

    def _act(self, episode: EngineEpisode, action: int) -> None:
        gang = self._gang
        assert gang is not None, "the mask allowed it"
        gang.take(action)
        if not gang.left:
            at = int(np.flatnonzero(episode.queue.jobs == gang.job)[0])
            episode.start(at, gang.degree, gang.rows())
            self._gang = None

    def _look(self, episode: EngineEpisode) -> Observation:
        gang, jobs = self._gang, episode.queue.jobs[:1]
        if gang is None or self._waits:
            return self._scene.observe(episode.state, jobs[:0], 1)
        return self._scene.observe(episode.state, jobs, 1, gang.staged, gang.left)
