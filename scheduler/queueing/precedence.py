"""The stages of a decision: who is within a guarantee before who borrows, higher classes before lower ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..state import SchedulerState
from ..stopping.grace import kept
from .queue import Alike, Shape


class Precedence(NamedTuple):
    """Those of the waiting jobs that are looked at together: a decision goes from the least stage to the largest.

    Attributes:
        borrows: whether a job would take its queue, and each queue above, over the guaranteed share.
        level: the class, negated.
    """

    borrows: bool
    level: int


class ByPrecedence:
    """Show a decision the waiting jobs stage by stage.

    Args:
        state: whose queues show the lines of one stage at a time.
        stopped: tells whether jobs stopped so far.
        lent: tells whether more queues hold more than their share than when it was last asked.

    Attributes:
        again: whether all are shown for the second time: nobody need stop any more.
    """

    def __init__(self, state: SchedulerState, stopped: Callable[[], bool], lent: Callable[[], bool]) -> None:
        self._state, self._stopped, self._lent, self.again = state, stopped, lent, False
        self._lines: dict[Precedence, list[Alike | Shape]] = {}
        self._open = Precedence(False, 0)

    def __iter__(self) -> Iterator[Precedence]:
        """Open one stage after the other, all once more if queues borrowed, and if jobs were stopped."""
        with kept(self._state):
            self._lent()
            yield from self._once()
            if self._lent():  # those that are owed their share may take it back
                yield from self._once()
            if not self._state.alike and self._stopped():  # those that stopped may go on elsewhere
                self.again = True
                yield from self._once()

    def _once(self) -> Iterator[Precedence]:
        state = self._state
        queues = state.queue, state.due
        for queue in queues:
            queue.settle()
        borrows = bool(state.accounts.sharing.queues)
        if not borrows and len({shape.group.level for shape in state.queue.shapes()}) <= 1:
            yield self._open
            return
        for (number, asks, level), kinds in state.queue.alike.items():
            stage = Precedence(state.accounts.borrows(number, asks), -level)
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
        if (stage := Precedence(self._state.accounts.borrows(number, asks), -level)) > self._open:
            self._lines.setdefault(stage, []).append(lines)
        return stage <= self._open
