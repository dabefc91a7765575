"""List scheduling with lookahead (Bittencourt, Sakellariou, Madeira, PDP 2010)."""

from __future__ import annotations

from ...run import Run
from .greedy import construct, together
from .model import Prepared
from .rank import mean_rank, ranked
from .room import Room
from .schedule import Partial


def list_schedule(run: Run, p: Prepared) -> None:
    """Offer the plan that puts each op where its consumers can end first.

    A consumer is judged on the best device, as if the op in question were its only input that is missing; one that is
    colocated with something placed on its device; a backward twin, which comes much later, by what it will have to wait
    for that is known today. The longest waiting consumer counts, ties go to the earlier end of the op itself.
    """
    order = ranked(p, mean_rank(p))
    together(run, p, order, "list_schedule")
    if not run.stopped:
        construct(run, p, order, _look, "list_schedule")


def _look(partial: Partial, room: Room, v: int, choice: list[int]) -> int:
    p, cost = partial.decoder.p, {}
    group = int(p.group_of[v])
    for d in choice:
        if partial.stopped():
            raise TimeoutError
        end = worst = partial.would_end(v, d)
        for w in partial.decoder.after[v]:
            g = int(p.group_of[w])
            home = d if g == group else room.where[g]
            there = [home] if home >= 0 else [x for x, able in enumerate(room.allowed[g]) if able]
            worst = max(worst, min(_end_of(partial, v, d, end, w, x) for x in there))
        cost[d] = worst, end
    return min(choice, key=cost.__getitem__)


def _end_of(partial: Partial, v: int, d: int, end: float, w: int, x: int) -> float:
    """Return when op w could end on device x, if v ends on d at `end`, judged by the inputs that are known."""
    decoder = partial.decoder
    ready = end + decoder.delay[decoder.level[d][x]][v]
    for u in decoder.before[w]:
        if u != v and partial.device[u] >= 0:
            ready = max(ready, partial.finish[u] + decoder.delay[decoder.level[partial.device[u]][x]][u])
    # an op that follows v on its own device waits for it
    free = max(partial.free(x), end) if x == d else partial.free(x)
    return max(ready, free) + decoder.seconds[x][w]
