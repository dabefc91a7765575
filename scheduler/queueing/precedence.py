"""The stages of a decision: who is within a guarantee before who borrows, higher classes before lower ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

from ..starting.starts import StartRound
from ..state import SchedulerState
from ..stopping.grace import kept
from ..stopping.preemption import Preemption
from .queue import Alike, Shape

Precedence = tuple[bool, int]
"""Those that are looked at together: whether a job would take its queue, and each above, over the guaranteed share, and
the class, negated. A decision goes from the least to the largest."""


class ByPrecedence:
    """Show a decision the waiting jobs stage by stage.

    Args:
        state: whose queues show the lines of one stage at a time.
        starts: the round of starts that is made of them.
        preemption: that stops others for them, if any does.

    Attributes:
        again: whether all are shown for the second time: nobody need stop any more.
    """

    def __init__(self, state: SchedulerState, starts: StartRound, preemption: Preemption | None) -> None:
        self._state, self._starts, self._preemption, self.again = state, starts, preemption, False
        self._lines: dict[Precedence, list[Alike | Shape]] = {}
        self._open: Precedence = False, 0

    def __iter__(self) -> Iterator[Precedence]:
        """Open one stage after the other, all once more if that was eased, and if jobs were stopped."""
        state, starts = self._state, self._starts
        with kept(state) if state.notices.stopping or state.notices.claims else nullcontext():
            self._eased()
            yield from self._once()
            if self._eased():  # those that are owed their share may take it back, those that were kept may start
                yield from self._once()
            if not state.alike and any(map(starts.gave_way, starts.stops)):  # those that stopped may go on elsewhere
                self.again = True
                yield from self._once()

    def _eased(self) -> bool:
        """Return whether jobs may start that could not when this was last asked.

        More queues hold more than their share, or who was due and kept others from starting has started.
        """
        lent = self._preemption is not None and self._preemption.lent()
        return (self._state.accounts.bounded and self._starts.kept.released()) or lent

    def _once(self) -> Iterator[Precedence]:
        state = self._state
        queues, levels = (state.queue, state.due), {level for _, _, level in state.queue.alike}
        for queue in queues:
            queue.settle()
        borrows = bool(state.accounts.sharing.queues)
        if not borrows and len(levels) <= 1:
            yield self._open
            return
        for (number, asks, level), kinds in state.queue.alike.items():
            stage = state.accounts.borrows(number, asks), -level
            self._lines.setdefault(stage, []).extend(kinds.values())
        try:
            while self._lines:
                self._open = min(self._lines)
                lines = dict.fromkeys(self._lines.pop(self._open))  # those that stayed in two queues are there twice
                for queue in queues:
                    queue.open, queue.stays = lines, self._stays if borrows else queue.stays
                yield self._open
        finally:
            for queue in queues:
                queue.open, queue.stays = None, lambda _: True

    def _stays(self, lines: Alike | Shape) -> bool:
        """Return whether lines are still of the stage that is open; else they are of a later one."""
        number, asks, level = (lines if isinstance(lines, Shape) else lines.shape).stage
        if (stage := (self._state.accounts.borrows(number, asks), -level)) > self._open:
            self._lines.setdefault(stage, []).append(lines)
        return stage <= self._open
