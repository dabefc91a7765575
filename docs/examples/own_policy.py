"""A policy of one's own on a trace, beside the classic ones: ``python own_policy.py [TRACE] [NODES]``.

The same from the command line: ``gangplan simulate TRACE --cluster 8x8 --policy own_policy.py:Patience,sjf,fifo``.
"""

import sys

from gangplan.instances.generators.jobs import arrivals
from gangplan.instances.readers.traces import read_trace
from gangplan.simulator.engine import check_policy, simulate_named
from gangplan.simulator.metrics import summary


class Patience:
    """Shortest first, but an hour of waiting makes up for an hour of running."""

    steady = False  # the order of two jobs may change while they wait

    def select(self, view, jobs):
        """Return a number for each job that waits; the least goes first."""
        return view.left(jobs) - (view.now - view.workload.submit[jobs])


def main(path: str | None = None, nodes: int = 4) -> dict[str, float]:
    """Print the mean and the longest job completion times, and return the means; without a file jobs are drawn."""
    jobs = read_trace(path).workload if path else arrivals(400, 0.003, 1, gpus="1:6,2:2,8:1", duration="lognormal")
    check_policy(Patience, traces=2)  # each job is done, equal runs decide alike
    means = {}
    for name, policy in {"Patience": Patience, "sjf": "sjf", "fifo": "fifo"}.items():
        figures = summary(simulate_named(jobs, nodes, 8, policy, discipline="overtake", consolidate=True))
        means[name] = figures.mean_jct
        print(f"{name:<9} mean JCT {figures.mean_jct:8.0f} s, 99% within {figures.p99_jct:8.0f} s")
    return means


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
