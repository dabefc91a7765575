"""Say why jobs wait; remember in a comment why Slurm did not start its job, how often it was tried, and when again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from math import inf, isfinite

from gangplan.scheduler import Scheduler
from gangplan.scheduler.queueing.admission import too_few
from gangplan.scheduler.queueing.queue import in_order
from gangplan.scheduler.starting.seating import FULL

from .client import plain
from .view import SlurmJob, SlurmView

_COUNTED = 10
"""Number of jobs before one from which they are not counted, lest words change with each start."""


def reasons(scheduler: Scheduler, view: SlurmView) -> dict[str, str]:
    """Return why jobs wait that depend on others, or that the scheduler has wait, by what `scontrol` calls them."""
    depend = [job for job in view.jobs.values() if job.waits and view.depends(job)]
    found = {job.id: f"waits: dependency {plain(job.row['dependency'])}" for job in depend}
    before = {name: place for place, name in enumerate(in_order(scheduler._state.queue))}
    for name in scheduler.waiting:
        job, piece = job_of(name, view)
        if job is not None and not piece:
            found[job.id] = f"waits: {_reason(scheduler, name, before.get(name, 0))}"
    return found


def _reason(scheduler: Scheduler, name: str, before: int) -> str:
    state, last = scheduler._state, scheduler._waits.get(name, FULL)
    if name in state.later.held:
        return "its time to begin has not come"
    request = state.waiting[name]
    degree = request.job.workers[0]
    if claim := state.notices.claims.get(name):
        ends = [state.notices.stopping[x].until for x in claim.after if x in state.notices.stopping]
        until = f", told to end by {clock(max(ends))}" if ends else ""
        return f"it starts after {', '.join(claim.after[:_COUNTED])}{until}"
    if limit := state.refuses(request, degree):
        return limit
    if state.ground(request, degree).total < state.placed(request, degree).workers[0]:
        return too_few(state, request, degree)
    return last if last != FULL else f"no room, {before if before < _COUNTED else f'{_COUNTED} or more'} before it"


def job_of(name: str, view: SlurmView) -> tuple[SlurmJob | None, str]:
    """Return the job of a name in the scheduler, and the node if it is a piece."""
    whole, _, node = name.partition("~")[0].partition("@")
    return view.jobs.get(whole), node


REFUSED = 60.0
"""Seconds until a job is tried again that Slurm did not start; twice as many each further time."""
LONGEST = 600.0
"""Maximum of these seconds."""
TRIES = 6
"""Number of tries after which a job stays held whose reason does not pass by itself."""
COMING = ("None", "Priority", "Resources", "Cleaning", "Prolog", "JobHeldUser")
"""Reasons of a released job that may start still."""
_STAYS = re.compile(r"NodeLimit|TimeLimit|PerJob|PerNode|WallDuration|Bad|Invalid|NotAllowed|Never|Dead|Deleted|^Job")
"""Reasons that pass only if somebody changes the job or the cluster."""
_NOTE = re.compile(r"\s*\[gangplan: ([^\]]*)\]")
_REFUSAL = re.compile(r"Slurm says (.*), tried (\d+) times?; (?:again at (\S+)|held)$")


@dataclass(frozen=True, slots=True)
class SlurmRefusal:
    """Say why Slurm did not start a job.

    Attributes:
        reason: Slurm's word.
        tries: how often it was released.
        until: when it may be tried again, infinite if somebody has to change or release it.
        at: when it was found, 0 if it was read in the comment.
    """

    reason: str
    tries: int
    until: float
    at: float = 0.0

    @classmethod
    def next(cls, last: SlurmRefusal | None, reason: str, now: float) -> SlurmRefusal:
        """Return a further refusal of a job."""
        tries = 1 if last is None else last.tries + 1
        wait = min(LONGEST, REFUSED * 2.0 ** (tries - 1))
        if tries == 1 and reason in COMING:  # others were faster: other nodes may do
            wait = 0.0
        held = reason == "JobHeldUser" or (tries >= TRIES and _STAYS.search(reason))
        return cls(reason, tries, inf if held else now + wait, now)

    @classmethod
    def read(cls, comment: str) -> SlurmRefusal | None:
        """Return what a comment remembers."""
        if (note := _NOTE.search(comment)) is None or (found := _REFUSAL.search(note[1])) is None:
            return None
        try:
            until = datetime.fromisoformat(found[3]).timestamp() if found[3] else inf
        except ValueError:
            return None
        return cls(found[1], int(found[2]), until)

    def __str__(self) -> str:
        again = "held"
        if isfinite(self.until):
            again = f"again at {clock(self.until)}"
        return f"Slurm says {self.reason}, tried {self.tries} time{'s' * (self.tries != 1)}; {again}"


def clock(seconds: float) -> str:
    """Return a time, seconds since 1970, as the clocks here show it."""
    return datetime.fromtimestamp(seconds).astimezone().isoformat("T", "seconds")


def noted(comment: str, words: str) -> str:
    """Return a comment of a user's with gangplan's words after it, or without any."""
    own = _NOTE.sub("", comment)
    return f"{own} [gangplan: {plain(words).translate(str.maketrans('[]', '()'))}]".lstrip() if words else own
