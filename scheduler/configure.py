"""The calls of `Scheduler` that change its settings while jobs run, and take over a state of other settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import EllipsisType
from typing import TYPE_CHECKING, Any, cast

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_choice, require_flag
from gangplan.instances.placement import Fleet

from .decision import SHOWN, Printed, wrapped
from .journal.write import recorded
from .queueing.request import Price
from .settings import Sharing
from .snapshots.snapshot import readable
from .state import SchedulerState

if TYPE_CHECKING:
    from .scheduler import Scheduler

LIVE = ("sharing", "price", "patience", "max_wait", "grace")
"""Arguments of `Scheduler` that change while it runs."""
KEEP, MINE = "keep", "mine"
"""Whose settings hold after `restore`: those of the snapshot, or the scheduler's own."""
_AMPLE = 60.0
"""Deadline of a decision that is only tried, seconds."""


@dataclass(frozen=True, slots=True)
class Consequences(Printed):
    """Tell what a change of settings would do if a decision followed at once, that it would not do without the change.

    Attributes:
        now: seconds of the user's clock.
        stops, stopping, starts: names of the jobs that would stop, be told to, and start.
        waits: of those that would wait after it, though they would run; who would stop is not among them.
    """

    now: float
    stops: tuple[str, ...]
    stopping: tuple[str, ...]
    starts: tuple[str, ...]
    waits: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as lines to be read."""
        rows = [(field.name, getattr(self, field.name)) for field in fields(self)[1:]]
        found = [f"{name:9}{', '.join(some[:SHOWN])}{' ...' * (len(some) > SHOWN)}" for name, some in rows if some]
        return "\n".join(wrapped(found or ["nobody stops, starts or waits for it"]))


class ConfigureCalls:
    """Change settings. An `InstanceError` names what is wrong, and nothing has changed then."""

    _state: SchedulerState

    @recorded
    def configure(
        self,
        *,
        sharing: Sharing | Mapping[str, Any] | EllipsisType | None = ...,
        price: Price = ...,
        patience: float | EllipsisType = ...,
        max_wait: float | EllipsisType | None = ...,
        grace: float | EllipsisType = ...,
        now: float | None = None,
        dry_run: bool = False,
    ) -> Consequences | None:
        """Change settings from now on; who runs and waits stays, and the next decision goes by them.

        Running jobs that hold more than a new share run on until others take theirs back. A job whose price is the
        scheduler's has the new one. A queue with jobs cannot be taken away.

        Args:
            sharing, price, patience, max_wait, grace: as of `Scheduler`, the whole of each; by default as before.
            now: as of `submit`.
            dry_run: change nothing, and return what would follow. A policy of the user's own is not asked.
        """
        scheduler = cast("Scheduler", self)
        require_flag(dry_run, "dry_run")
        given = zip(LIVE, (sharing, price, patience, max_wait, grace), strict=True)
        changes: dict[str, Any] = {name: value for name, value in given if not isinstance(value, EllipsisType)}
        if not changes:
            raise InstanceError("settings", f"are not named: there are {', '.join(LIVE)}")
        at, saved = self._state.at(now), scheduler.snapshot()
        if not dry_run:
            fresh = scheduler._twin(scheduler._policy, saved, settings=MINE, **changes)
            fresh._state.now, fresh._explained = at, scheduler._explained
            self.__dict__.update(fresh.__dict__ | {"_journal": scheduler._journal})
            return None
        policy = scheduler._policy if scheduler._asked is None else scheduler._own
        twins = [scheduler._twin(policy, saved, settings=MINE, **x) for x in (dict[str, Any](), changes)]
        without, having = (twin.decide(_AMPLE, now=at) for twin in twins)
        stops, stopping, starts = (
            tuple(x.job for x in getattr(having, kind) if x.job not in {y.job for y in getattr(without, kind)})
            for kind in ("stops", "stopping", "starts")
        )
        waits = tuple(x for x in twins[1].waiting if x not in {*twins[0].waiting, *stops})
        return Consequences(at, stops, stopping, starts, waits)

    @recorded
    def restore(self, snapshot: Mapping[str, Any], *, settings: str | None = None) -> None:
        """Take over a state that `snapshot` returned, of a scheduler of the same cluster.

        Decisions made before cannot be explained any more.

        Args:
            snapshot: the state.
            settings: whose hold if they differ: ``keep`` those of the snapshot, as far as `configure` changes them, or
                ``mine``; by default they have to be the same.

        Raises:
            InstanceError: naming what is wrong with it; nothing has changed then.
        """
        self._restore(snapshot, None, settings)

    def _restore(self, snapshot: Mapping[str, Any], fleet: Fleet | None = None, settings: str | None = None) -> None:
        """Take over a state, of other nodes if they are given."""
        scheduler = cast("Scheduler", self)
        if settings is not None:
            require_choice(settings, "settings", (KEEP, MINE))
        changes = _told(snapshot) if settings == KEEP else {}
        fresh = scheduler._twin(scheduler._policy, snapshot, fleet, settings=settings, **changes)
        self.__dict__.update(fresh.__dict__ | {"_journal": scheduler._journal})

    def checkpoint(self) -> None:
        """Append the state to the log, so that `open` begins there, and go on with what `open` would make of it."""
        scheduler = cast("Scheduler", self)
        kept = {name: getattr(self, name) for name in ("_explained", "_waits", "_worth")}
        same, network = scheduler._changes == self._state.changes, scheduler._network
        self.restore(scheduler.snapshot(), settings=KEEP)
        self.__dict__.update(kept, _changes=self._state.changes if same else -1)
        if network is not None and scheduler._network is not None:
            scheduler._network.used(network.use)


@readable()
def _told(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a snapshot that may change."""
    settings = {name: snapshot["settings"][name] for name in LIVE if name in snapshot["settings"]}
    return settings | {"sharing": Sharing.of(snapshot.get("sharing"))}
