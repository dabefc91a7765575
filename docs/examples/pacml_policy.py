"""A policy of one's own on PAC-ML's cluster: two servers, in the first block in which a job is done in time."""

from pathlib import Path

from gangplan.systems.pacml.arrivals import arrivals
from gangplan.systems.pacml.baselines import make_policy
from gangplan.systems.pacml.check import check
from gangplan.systems.pacml.jobs import read_types
from gangplan.systems.pacml.simulate import Acceptance, simulate

PROFILE = """\
a -- Conv -- forward_compute_time=400.0, backward_compute_time=8.0, activation_size=3e8, parameter_size=1e8
b -- Conv -- forward_compute_time=600.0, backward_compute_time=9.0, activation_size=3e8, parameter_size=1e8
\ta -- b
"""


class Halves:
    """Two servers, in the first block that is free and has the job done in time."""

    def decide(self, state):
        """Return the choice for the job that arrived, or `None` to block it."""
        blocks = state.blocks  # 195 of them; state.fits says which are free
        found = [b for b in state.acceptable.nonzero()[0] if blocks.size[b] == 2]
        return Acceptance(blocks.degree[found[0]], found[0]) if found else None


def main(folder: Path) -> dict[str, float]:
    """Return the share of 200 jobs that each policy blocks; `folder` gets a profile."""
    (folder / "small.txt").write_text(PROFILE)
    types = read_types(folder, ["small"])  # the profiles of a folder, on the published cluster, in seconds
    case = arrivals(types, "A", seed=0, n=200)  # or Fractions(...), load=1.5, poisson=True
    policies = {"halves": Halves(), **{name: make_policy(name) for name in ("constant-4", "smallest+best")}}
    outcomes = {name: simulate(case, policy) for name, policy in policies.items()}
    assert all(check(outcome) == [] for outcome in outcomes.values())
    # blocked_or_running counts jobs that still run at the end, as published
    return {name: outcome.blocked for name, outcome in outcomes.items()}
