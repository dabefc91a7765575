"""Remember in a job's comment why Slurm did not start it, how often it was tried, and when it is tried again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from math import inf, isfinite

from .client import plain

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
class Refusal:
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
    def next(cls, last: Refusal | None, reason: str, now: float) -> Refusal:
        """Return a further refusal of a job."""
        tries = 1 if last is None else last.tries + 1
        wait = min(LONGEST, REFUSED * 2.0 ** (tries - 1))
        if tries == 1 and reason in COMING:  # others were faster: other nodes may do
            wait = 0.0
        held = reason == "JobHeldUser" or (tries >= TRIES and _STAYS.search(reason))
        return cls(reason, tries, inf if held else now + wait, now)

    @classmethod
    def read(cls, comment: str) -> Refusal | None:
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
            again = f"again at {datetime.fromtimestamp(self.until).astimezone().isoformat('T', 'seconds')}"
        return f"Slurm says {self.reason}, tried {self.tries} time{'s' * (self.tries != 1)}; {again}"


def noted(comment: str, words: str) -> str:
    """Return a comment of a user's with gangplan's words after it, or without any."""
    own = _NOTE.sub("", comment)
    return f"{own} [gangplan: {plain(words).translate(str.maketrans('[]', '()'))}]".lstrip() if words else own
