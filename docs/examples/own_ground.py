"""A ground of one's own: a cluster with arrivals, on which policies are compared. `Ground` says what methods return."""

# ruff: noqa: D102, RUF012
from dataclasses import dataclass

from gangplan.instances.generators.jobs import arrivals
from gangplan.simulator.check import check
from gangplan.simulator.engine import simulate_named
from gangplan.simulator.ground import Figure, Ground, check_ground, refuse, setting
from gangplan.solvers.schedule.workload_bounds import mean_jct_bound


@dataclass(frozen=True)
class Morning(Ground):
    """Jobs on two nodes of eight GPUs, in the order that a policy says."""

    figures = {"mean_jct": Figure("mean JCT", "s")}  # the first is compared; less is better
    usual = ("fifo", "sjf")
    jobs: int = setting(50, "jobs that arrive")

    def draw(self, seed):
        return arrivals(self.jobs, gpus="1:4,8:1", seed=seed)

    def arrays(self, drawn):
        return drawn.submit, drawn.gpus, drawn.duration

    def policy(self, name):
        return lambda drawn, seed: name

    def play(self, policy, drawn):
        outcome = simulate_named(drawn, 2, 8, policy)
        refuse(check(outcome))  # what does not hold is no result
        return {"mean_jct": float((outcome.finish - drawn.submit).mean())}

    def bound(self, drawn, time_limit):
        return mean_jct_bound(drawn, 16)


check_ground(Morning)
