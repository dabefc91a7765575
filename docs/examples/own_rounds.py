"""Jobs in rounds of leases, under each policy: what `gangplan simulate --rounds` plays, from Python."""

import numpy as np

from gangplan.simulator.rounds import ROUND_POLICIES, RoundJobs, parse_cluster, simulate_rounds, summary


def main(n: int = 60) -> dict[str, float]:
    """Print mean JCT and worst finish-time fairness, and return the means."""
    rng = np.random.default_rng(0)
    jobs = RoundJobs(
        names=tuple(f"job{i}" for i in range(n)),
        gpus=2 ** rng.integers(0, 3, n),
        steps=rng.integers(10_000, 1_000_000, n),
        speed=rng.uniform(5.0, 10.0, (n, 1)) * [4.0, 2.0, 1.0] ** rng.uniform(0.2, 1.2, (n, 1)),
        weight=np.ones(n),
        submit=np.cumsum(rng.exponential(600.0, n)),
    )
    means = {}
    for policy in ROUND_POLICIES:
        figures = summary(simulate_rounds(jobs, parse_cluster("8xV100+8xP100+8xK80"), policy))
        means[policy] = figures.mean_jct
        print(policy, figures.mean_jct, figures.worst_rho)
    return means


if __name__ == "__main__":
    main()
