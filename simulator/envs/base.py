"""What the environments with one agent have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import asdict
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Space
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.placement import Fleet, SpeedModel

from ..engine import Scheduler
from ..metrics import summary
from ..outcome import Outcome
from .cases import Case, Cases
from .episode import Episode, plain
from .observe import Scene
from .rewards import Reward

Observation = dict[str, Any]
Mask = NDArray[np.int8]


class ClusterEnv(gymnasium.Env[Observation, np.int64]):
    """A cluster on which one kind of decision is the agent's and a scheduler makes the others.

    The clock stands still while the agent decides, and goes on to the next instant at which there is something for it
    to decide. An action outside of the space is an error; one that the mask forbids ends the episode: truncated, with
    nothing paid and ``info["forbidden"]`` in words.

    Attributes:
        fleet: the nodes.
        scheduler: makes the other decisions.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  Gymnasium types it so
    takes: ClassVar[str]
    """The decision that is the agent's."""

    def __init__(
        self,
        fleet: Fleet,
        cases: Cases,
        scheduler: Scheduler,
        speeds: SpeedModel | None,
        reward: Reward,
        horizon: float,
        *,
        slots: int,
        actions: int,
        more: dict[str, Space[Any]] | None = None,
    ) -> None:
        require_number(horizon, "horizon", positive=True)
        self.fleet, self.scheduler = fleet, plain(scheduler, self.takes)
        self._cases, self._speeds, self._reward = cases, speeds, reward
        self.action_space, self._actions = Discrete(actions), actions
        self._scene = scene = Scene(fleet, speeds, float(horizon))
        self.observation_space = Dict(
            {
                "nodes": scene.node_space(),
                "jobs": scene.job_space(slots),
                "backlog": scene.backlog_space(),
                **(more or {}),
                "action_mask": Box(0, 1, (actions,), np.int8),
            }
        )
        self._mask: Mask = np.zeros(actions, dtype=np.int8)
        self._episode: Episode | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: of all cases from here on.
            options: ``{"case": case}`` plays that `Case` instead of drawing one.
        """
        super().reset(seed=seed)
        case = (options or {}).get("case")
        if case is None:
            case = self._cases(self.np_random)
        if not isinstance(case, Case):
            raise InstanceError("case", f"{case!r} is not a Case")
        self._episode = Episode(case, self.fleet, self.scheduler, self._speeds, self._reward)
        self._begin(self._episode)
        self._seek(self._episode)
        return self._observe(self._episode), {"action_mask": self._mask.copy()}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Act, and go on to the next decision."""
        episode = self._episode
        if episode is None or not self._mask.any():
            raise gymnasium.error.ResetNeeded("the episode is over, or has not begun: call reset")
        if not self.action_space.contains(action):
            raise InstanceError("action", f"{action!r} is not one of 0 to {self._actions - 1}")
        info: dict[str, Any] = {}
        over = forbidden = False
        if self._mask[action]:
            self._act(episode, int(action))
            over = not self._seek(episode)
            if over:
                info["metrics"] = asdict(summary(episode.outcome, self.fleet))
        else:
            forbidden = True
            info["forbidden"] = f"action {action}: {self.words(int(action))} is not possible now"
            self._mask = np.zeros_like(self._mask)
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
    def _begin(self, episode: Episode) -> None:
        """Get ready for an episode; raise if it cannot be played."""

    @abstractmethod
    def _turn(self) -> None:
        """Note that a new instant has come."""

    @abstractmethod
    def _offer(self, episode: Episode) -> Mask | None:
        """Return the mask of what there is to decide at this instant, None if there is nothing."""

    @abstractmethod
    def _act(self, episode: Episode, action: int) -> None:
        """Do what an allowed action says."""

    @abstractmethod
    def _look(self, episode: Episode) -> Observation:
        """Return the observation without its mask."""

    def _seek(self, episode: Episode) -> bool:
        """Go on to the next decision; return whether there is one."""
        while (mask := self._offer(episode)) is None:
            if not episode.advance():
                self._mask = np.zeros_like(self._mask)
                return False
            self._turn()
        self._mask = mask
        return True

    def _observe(self, episode: Episode) -> Observation:
        return {**self._look(episode), "action_mask": self._mask.copy()}
