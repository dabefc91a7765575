"""How long agents of a market take to decide, from 64 to 12,500 servers of eight GPUs: ``python -m benchmarks market``.

Jobs arrive at one a minute for ten servers, 1,000 a minute on 10,000, and the market clears every minute. Seconds are
of one thread's processor: of an agent, those of its bids; of the market, the rest.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import process_time
from typing import Any

import numpy as np

from gangplan.simulator.interference.case import Case
from gangplan.simulator.interference.cases import VALIDATION, poisson
from gangplan.simulator.interference.centres import moved
from gangplan.simulator.interference.environment import Environment
from gangplan.simulator.interference.evaluate import CONSOLIDATE, alone
from gangplan.simulator.interference.greedy import Greedy, Rows
from gangplan.simulator.interference.market import Market

SIZES = (64, 256, 1024, 4096, 10_000, 12_504)
MINUTES, WARM, ASK = 10, 2, 2
"""That are simulated, of which so many first ones do not count; agents asked besides a job's own."""


@dataclass(frozen=True, slots=True)
class Latency:
    """What was measured in a data centre, milliseconds and bytes.

    Attributes:
        servers, agents, jobs: how many there were.
        bids: of each bid.
        agent: of each agent in each minute in which it was asked.
        clearing: of the market in each minute, without the bids.
        size: bytes of messages a job.
    """

    servers: int
    agents: int
    jobs: int
    bids: Sequence[float]
    agent: Sequence[float]
    clearing: Sequence[float]
    size: float


class Timed(Greedy):
    """A bidder that notes how long it takes."""

    def __init__(self, case: Case) -> None:
        super().__init__(alone(case.truth), consolidate=CONSOLIDATE)
        self.spent: list[float] = []

    def offer(self, env: Environment, job: int) -> tuple[Rows, float]:
        """Return the best place of a job, see `Greedy`."""
        begin = process_time()
        found = super().offer(env, job)
        self.spent.append(1e3 * (process_time() - begin))
        return found


def measured(servers: int, network: str = "leaf-spine") -> Latency:
    """Return how long agents take in one data centre."""
    jobs = max(1, servers // 10) * MINUTES
    case = moved(poisson, network, VALIDATION, jobs, servers, 8, load=1.0, interval=60.0)
    submit = case.jobs.submit * (60.0 * MINUTES / case.jobs.submit[-1])
    case = replace(case, jobs=replace(case.jobs, submit=submit))
    made: list[Timed] = []

    def bidder(part: Case) -> Timed:
        made.append(Timed(part))
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
    return Latency(servers, len(market.servers), jobs, bids, agent, clearing, market.traffic.size / jobs)


def table(found: Sequence[Latency]) -> str:
    """Return a table in Markdown."""
    lines = [
        "| servers | GPUs | agents | jobs/min | a bid: median, p99, ms | an agent a minute: p99, ms "
        "| clearing a minute: p99, ms | bytes a job |",
        "|" + "---:|" * 8,
    ]
    for x in found:
        bid = f"{np.median(x.bids):.1f}, {np.quantile(x.bids, 0.99):.1f}"
        lines.append(
            f"| {x.servers:,} | {8 * x.servers:,} | {x.agents:,} | {x.jobs // MINUTES:,} | {bid} "
            f"| {np.quantile(x.agent, 0.99):.1f} | {np.quantile(x.clearing, 0.99):.1f} | {x.size:.0f} |"
        )
    return "\n".join(lines)


def command(commands: Any) -> None:
    """Add the command ``market``."""
    parser = commands.add_parser("market", help="time the agents of a market, from 64 to 12,504 servers")
    parser.add_argument("--servers", type=int, nargs="+", default=list(SIZES), help="in racks of eight")
    parser.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    measured(64)  # compiled code is loaded before anything is timed
    print(table([measured(servers) for servers in options.servers]))
    return 0
