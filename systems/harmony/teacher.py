"""Who teaches at first: a rule in the same form as the policy, task by task."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gangplan.learned.interference.ensemble import Model

from ..interference.case import Case
from ..interference.cases import TRAINING
from .observe import Lane
from .recipe import Settings
from .rewards import Predicted, end_intervals, environment

Label = tuple[np.ndarray, np.ndarray, int]
"""What was seen, which actions were allowed, and which one was taken."""


class Watched(Predicted):
    """An environment that remembers what was seen before each task was placed, and which action that was."""

    def __init__(self, case: Case, settings: Settings) -> None:
        super().__init__(case)
        self.kept, self._begun, self._lane = list[Label](), 0, Lane(self, settings)

    def place(self, job: int, kind: int, server: int) -> None:
        """Place a task; one of a job that is not in sight is not remembered."""
        lane = self._lane
        if self.current < 0:
            self._begun = len(self.kept)
        lane.look()
        if job in lane.sight:
            shape = (len(lane.mask) // (2 * len(self.free)), 2, len(self.free))
            action = np.ravel_multi_index((lane.sight.index(job), kind, server), shape)
            self.kept.append((lane.seen.astype(np.float16), lane.mask, int(action)))
        super().place(job, kind, server)

    def take_back(self) -> None:
        """Forget the job that is begun, too."""
        if self.current >= 0:
            del self.kept[self._begun :]
        super().take_back()

    def end_interval(self) -> float:
        """End it, and remember that, where it could be seen to be allowed and was no must."""
        self._lane.look()
        mask = self._lane.mask
        if mask[-1] and mask.sum() > 1:
            self.kept.append((self._lane.seen.astype(np.float16), mask, len(mask) - 1))
        return super().end_interval()


def labelled(settings: Settings, model: Model | None, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return rows, masks and actions of the teacher in episodes, as many as asked for: see `Seen`."""
    rule, kept, at = settings.rule(settings.teacher), list[Label](), 0
    while len(kept) < settings.labels:
        case = environment(settings, model, TRAINING + 500_000 + 10_000 * seed + at, settings.jobs).case
        env = Watched(case, settings)
        while not env.done:
            rule.place(env)
            end_intervals([env], model)
        kept, at = kept + env.kept, at + 1
    rows, masks, actions = (torch.from_numpy(np.array(x)) for x in zip(*kept[: settings.labels], strict=True))
    return rows, masks, actions
