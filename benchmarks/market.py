"""How long agents of a market take to decide, from 64 to 12,504 servers of eight GPUs: ``python -m benchmarks market``.

Jobs arrive at one a minute for ten servers, 1,000 a minute on 10,000, and the market clears every minute. Seconds are
of one thread's processor: of an agent, those of its bids; of the market, the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from time import process_time
from typing import Any

import numpy as np

from gangplan.systems.interference.baselines import CONSOLIDATE, alone
from gangplan.systems.interference.bidders import Local
from gangplan.systems.interference.case import InterferenceCase, moved
from gangplan.systems.interference.cases import VALIDATION, poisson
from gangplan.systems.interference.environment import Environment
from gangplan.systems.interference.greedy import Greedy, Rows
from gangplan.systems.interference.market import Market

from .found import Found, table
from .rows import Task
from .study import Options, Study

SIZES = (64, 256, 1024, 4096, 10_000, 12_504)
MINUTES, WARM, ASK = 10, 2, 2
"""That are simulated, of which so many first ones do not count; agents asked besides a job's own."""
FAST, LEARNED = f"market-ask-{ASK}", f"market-learned-ask-{ASK}"


class Timed:
    """A bidder, and how long it takes."""

    def __init__(self, bidder: Greedy) -> None:
        self._bidder, self.spent = bidder, list[float]()

    def offer(self, env: Environment, job: int) -> tuple[Rows, float]:
        """Return the best place of a job, see `Greedy`."""
        begin = process_time()
        found = self._bidder.offer(env, job)
        self.spent.append(1e3 * (process_time() - begin))
        return found


def by_speeds_alone(case: InterferenceCase) -> Greedy:
    """Return the bidder of `market`."""
    return Greedy(alone(case.truth), consolidate=CONSOLIDATE)


def tasks(options: Options) -> Iterator[Task]:
    """Yield every size, by speeds alone; by learned speeds where `--policy` says so."""
    yield from (Task(case, p, 0) for case in options.chosen(map(str, SIZES)) for p in options.policies or (FAST,))


def measure(task: Task, options: Options) -> Mapping[str, float]:
    """Return how long agents take in one data centre; what is compiled is loaded before anything is timed."""
    from gangplan.systems.interference.policies import learned_bidder

    local: Local = learned_bidder if task.policy == LEARNED else by_speeds_alone
    _loaded(local)
    return measured(int(task.case), local)


@cache
def _loaded(local: Local) -> None:
    measured(64, local)


def measured(servers: int, local: Local = by_speeds_alone, network: str = "leaf-spine") -> Mapping[str, float]:
    """Return milliseconds of bids, agents and clearing, and messages and bytes a job."""
    jobs = max(1, servers // 10) * MINUTES
    case = moved(poisson, network, VALIDATION, jobs, servers, 8, load=1.0, interval=60.0)
    submit = case.jobs.submit * (60.0 * MINUTES / case.jobs.submit[-1])
    case = replace(case, jobs=replace(case.jobs, submit=submit))
    made: list[Timed] = []

    def bidder(part: InterferenceCase) -> Any:
        made.append(Timed(local(part)))
        return made[-1]

    market, env = Market(case, bidder, ask=ASK), Environment(case)
    bids, agent, clearing = [], [], []
    for minute in range(MINUTES):
        for one in made:
            one.spent.clear()
        begin = process_time()
        market.place(env)
        rest = 1e3 * (process_time() - begin)
        if minute >= WARM:
            found = [one.spent for one in made if one.spent]
            bids += [x for spent in found for x in spent]
            agent += [sum(spent) for spent in found]
            clearing.append(rest - sum(map(sum, found)))
        env.end_interval()
    spread = (float(f"{np.quantile(x, q):.4g}") for x in (bids, agent, clearing) for q in (0.5, 0.99))
    told = (round(x / jobs, 1) for x in (market.traffic.messages, market.traffic.size))
    used = round(float(1.0 - env.free[:, 0].sum() / case.capacity[:, 0].sum()), 3)
    return dict(zip(STUDY.figures, (len(market.servers), jobs // MINUTES, used, *spread, *told), strict=True))


def latency(found: Found) -> str:
    """Return a line a size."""
    lines = []
    for size in sorted(set(map(int, found.cases)) & set(_LINES)):
        x = found.runs[str(size), FAST][0].figures
        pairs = (f"{x[name]:{form}}, {x[f'{name}_p99']:{form}}" for name, form in _TOLD.items())
        lines.append((f"{8 * size:,}", f"{x['agents']:,.0f}", f"{x['jobs']:,.0f}", *pairs))
    cost = ("a bid, ms", "an agent a minute, ms", "clearing a minute, ms")
    return table(("GPUs", "agents", "jobs a minute", *cost), lines)


_LINES = (64, 1024, 10_000, 12_504)
"""Sizes in the table."""
_TOLD = {"bid": ".1f", "agent": ".1f", "clearing": ".0f"}
STUDY = Study(
    "market",
    (
        *("agents", "jobs", "used", "bid", "bid_p99", "agent", "agent_p99", "clearing", "clearing_p99"),
        *("messages", "size"),
    ),
    tasks,
    measure,
    {"marl.md": {"market": latency}},
)
"""Agents; jobs a minute; share of the GPUs in use at the end; milliseconds; messages and bytes a job."""
