"""The calls of `Scheduler` that move running jobs, so that others have room."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

from gangplan.instances.arrays import plain, require_number
from gangplan.instances.placement import GangJob

from ..decision import Decision
from ..explaining.explanation import explained
from ..journal.write import recorded
from ..state import SchedulerState
from ..stopping.grace import kept

if TYPE_CHECKING:
    from ..scheduler import Scheduler
    from .migration import Moves


class MoveCalls:
    """Move running jobs. An `InstanceError` names what is wrong, and nothing has changed then."""

    _state: SchedulerState

    def defragment(
        self, domain: Any = None, gang: GangJob | str | None = None, *, worth: float | None = None, seconds: float = 1.0
    ) -> Moves | None:
        """Return the cheapest moves of running jobs that free a domain, or make room for a gang; nothing is done yet.

        Args:
            domain: a node or several, by name or number, a group of the network, ``rack 2``, or a level, ``rack``: any
                group of it. With a gang, where that is to be; by default anywhere.
            gang: a job that waits, by name, or any other; with its fewest workers.
            worth: GPU seconds of the room; there is no proposal that costs more.
            seconds: of the machine's clock, for the search.

        Returns:
            `None` if there are no moves that make room, or they cost more.
        """
        require_number(worth := plain(worth), "worth", optional=True)
        require_number(seconds := plain(seconds), "seconds", positive=True)
        from .defragment import defragment

        with kept(self._state):
            return defragment(self._state, domain, gang, worth, seconds)

    @recorded
    def apply(self, moves: Moves, *, now: float | None = None) -> Decision:
        """Carry out what `defragment` proposed: a decision whose stops are all among its starts, elsewhere."""
        from .migration import TIER, carry_out

        began, state, of = time.perf_counter(), self._state, cast("Scheduler", self)
        starts, stops, stopping = carry_out(state, of._watchdog, moves, state.at(now))
        of._count += 1
        of._explained[of._count] = explained(of._count, TIER, set(), {}, [], (), (), ())
        took = time.perf_counter() - began
        return Decision(of._count, state.now, starts, TIER, (), took, False, stops, (), stopping)
