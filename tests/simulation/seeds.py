"""One seed, in a process of a pool or in this one."""

from __future__ import annotations

from .check import play_seed
from .shrink import script, shrunk
from .wrong import IGNORED, Wrong

Job = tuple[int, int | None, float, tuple[str, ...]]
Row = tuple[int, int, int, str, str, str]


def one(job: Job) -> Row:
    """Play a seed; return it, its events and decisions, and of what went wrong the rule, the words and a script."""
    seed, events, seconds, ignored = job
    IGNORED.update(ignored)
    try:
        player = play_seed(seed, events)
        return seed, player.done, player.decisions, "", "", ""
    except Wrong as wrong:
        count = len(wrong.events)
        if not seconds:
            return seed, count, 0, wrong.rule, wrong.words, ""
        case, wrong = shrunk(wrong.cluster, wrong, seconds)
        text = f"# seed {seed}, cut to {len(case[1])} events\n" + script(case, wrong)
        return seed, count, 0, wrong.rule, wrong.words, text
