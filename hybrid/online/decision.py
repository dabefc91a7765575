"""What a decision is: who starts where, which tier said so, and what else was considered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TIERS = ("lookahead", "learned", "policy", "stops", "heuristic")
"""Who may have decided, the most considered first; a policy of the user's own stands where the learned one does."""


@dataclass(frozen=True, slots=True)
class Start:
    """A job that starts now.

    Attributes:
        job: its name.
        degree: how many workers it has.
        nodes: its GPUs by name of the node.
        tier: who said that it should start.
        seconds: how long it is expected to run.
    """

    job: str
    degree: int
    nodes: Mapping[str, tuple[int, ...]]
    tier: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Stop:
    """A job that stops now, before anyone starts, and waits again; if it is among the starts too, it goes on elsewhere.

    Attributes:
        job: its name.
        nodes: the GPUs it held by name of the node.
        other: the job that starts there.
        left: seconds that it was expected to run still.
        price: seconds that its GPUs will be held without getting on when it runs again.
    """

    job: str
    nodes: Mapping[str, tuple[int, ...]]
    other: str
    left: float
    price: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that could have been decided.

    Attributes:
        action: in words.
        score: the less the better: seconds, or what the tier's own scores are in.
        why_not: why it was not chosen, "" if it was.
    """

    action: str
    score: float
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What `decide` did.

    Attributes:
        number: counted from 1.
        now: of the user's clock.
        starts: the jobs that start, in the order in which they were chosen; they run from now on.
        tier: the most considered tier that had a say.
        notes: what went wrong on the way and who decided instead.
        seconds: of the machine's clock that it took.
        stops: the jobs that stop first; none unless a stop has a price.
        more: whether the deadline came before all that could start did; `decide` goes on where it was.
    """

    number: int
    now: float
    starts: tuple[Start, ...]
    tier: str
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    more: bool = False
    stops: tuple[Stop, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a decision is as it is.

    Attributes:
        decision: its number.
        tier: the most considered tier that had a say.
        candidates: by tier, what was considered.
        waiting: why the first jobs that still wait do, by name.
        objective: mean seconds that the jobs of then have still to be there, as the best candidate's simulation has it;
            `None` if none was run.
        bound: no schedule of these jobs has a smaller mean.
        notes: those of the decision.
    """

    decision: int
    tier: str
    candidates: Mapping[str, tuple[Candidate, ...]]
    waiting: Mapping[str, str]
    objective: float | None
    bound: float | None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as lines to be read."""
        lines = [f"decision {self.decision}, by {self.tier}"]
        for tier, candidates in self.candidates.items():
            lines.append(f"{tier}:")
            lines += [f"  {c.score:12.6g}  {c.action}{'  -- ' + c.why_not if c.why_not else ''}" for c in candidates]
        if self.bound is not None:
            found = "" if self.objective is None else f"{self.objective:.6g} s simulated, "
            lines.append(f"mean time still to be there: {found}at least {self.bound:.6g} s")
        lines += [f"{name} waits: {why}" for name, why in self.waiting.items()]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)
