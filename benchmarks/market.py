"""How long agents of a market take to decide, from 64 to 12,500 servers of eight GPUs: ``python -m benchmarks market``.

Jobs arrive at one a minute for ten servers, 1,000 a minute on 10,000, and the market clears every minute. Seconds are
of one thread's processor: of an agent, those of its bids; of the market, the rest.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from gangplan.simulator.interference.bidders import Local
from gangplan.simulator.interference.case import Case
from gangplan.simulator.interference.cases import VALIDATION, poisson
from gangplan.simulator.interference.centres import moved
from gangplan.simulator.interference.environment import Environment
from gangplan.simulator.interference.evaluate import CONSOLIDATE, alone
from gangplan.simulator.interference.greedy import Greedy, Rows
from gangplan.simulator.interference.market import Market

from .cells import table
from .ledger import ROOT, measured_commit
from .records import append_records, read_records

CSV = ROOT / "benchmarks" / "market.csv"
SIZES = (64, 256, 1024, 4096, 10_000, 12_504)
MINUTES, WARM, ASK = 10, 2, 2
"""That are simulated, of which so many first ones do not count; agents asked besides a job's own."""


@dataclass(frozen=True, slots=True)
class MarketRow:
    """What was measured in a data centre, milliseconds and bytes.

    Attributes:
        servers, agents, jobs: how many there were, of the latter in a minute.
        used: share of the GPUs in use at the end.
        bid, bid_p99: of a bid.
        agent, agent_p99: of an agent in a minute in which it was asked, all its bids.
        clearing, clearing_p99: of the market in a minute, without the bids.
        messages, size: a job, and bytes of these.
        date, commit: as in the ledger.
    """

    servers: int
    agents: int
    jobs: int
    used: float
    bid: float
    bid_p99: float
    agent: float
    agent_p99: float
    clearing: float
    clearing_p99: float
    messages: float
    size: float
    date: str
    commit: str


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


def by_speeds_alone(case: Case) -> Greedy:
    """Return the bidder of `market`."""
    return Greedy(alone(case.truth), consolidate=CONSOLIDATE)


def measured(servers: int, network: str = "leaf-spine", local: Local = by_speeds_alone) -> MarketRow:
    """Return how long agents take in one data centre."""
    jobs = max(1, servers // 10) * MINUTES
    case = moved(poisson, network, VALIDATION, jobs, servers, 8, load=1.0, interval=60.0)
    submit = case.jobs.submit * (60.0 * MINUTES / case.jobs.submit[-1])
    case = replace(case, jobs=replace(case.jobs, submit=submit))
    made: list[Timed] = []

    def bidder(part: Case) -> Any:
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
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return MarketRow(servers, len(market.servers), jobs // MINUTES, used, *spread, *told, when, measured_commit())


def latency(path: Path = CSV) -> str:
    """Return a line a size, of its newest row."""
    rows = read_records(path, MarketRow)
    lines = [
        (
            f"{8 * x.servers:,}",
            f"{x.agents:,}",
            f"{x.jobs:,}",
            f"{x.used:.0%}",
            f"{x.bid:.1f}, {x.bid_p99:.1f}",
            f"{x.agent:.1f}, {x.agent_p99:.1f}",
            f"{x.clearing:.0f}, {x.clearing_p99:.0f}",
            f"{x.messages:.0f}, {x.size:.0f}",
        )
        for x in sorted({row.servers: row for row in rows}.values(), key=lambda row: row.servers)
    ]
    cost = ("a bid, ms", "an agent a minute, ms", "clearing a minute, ms", "messages, bytes a job")
    return table(("GPUs", "agents", "jobs a minute", "in use", *cost), lines)


def command(commands: Any) -> None:
    """Add the command ``market``."""
    parser = commands.add_parser("market", help="time the agents of a market, from 64 to 12,504 servers")
    parser.add_argument("--servers", type=int, nargs="+", default=list(SIZES), help="in racks of eight")
    parser.add_argument("--page", action="store_true", help="time nothing; write the page from benchmarks/market.csv")
    parser.add_argument("--learned", action="store_true", help="print rows of bids by learned speeds instead")
    parser.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    from .centres import write_page

    if options.learned:
        from gangplan.learned.interference.policies import learned_bidder

        for servers in (64, *options.servers):
            print(measured(servers, local=learned_bidder))
        return 0
    if not options.page:
        measured(64)  # compiled code is loaded before anything is timed
        for servers in options.servers:
            append_records([measured(servers)], CSV)
    return write_page()
