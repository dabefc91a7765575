"""TopDRL's ground: gangs that are faster the closer their GPUs are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import process_time
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.intake import cluster_sizes
from gangplan.instances.placement import Fleet
from gangplan.instances.published import DATA
from gangplan.instances.workload import Workload
from gangplan.learned.training.online.recipe import RECIPE as GNN
from gangplan.simulator.ground import Figure, Ground, Maker, refuse, setting
from gangplan.simulator.picking import EnginePick, Picks

if TYPE_CHECKING:
    from gangplan.simulator.outcome import Outcome

    from .suites import ClusterSuite

Drawn = tuple[Workload, NDArray[np.float64] | None]


@dataclass(frozen=True)
class Topdrl(Ground):
    """Let gangs arrive on a cluster where closer GPUs are faster, and compare who picks the next job and its GPUs.

    The cluster and the jobs are TopDRL's (JPDC 204, 2025) unless a suite or a size says otherwise.

    Attributes:
        suite: the workloads, see `SUITES`, or the suite itself.
        data: folder of published traces.
        cluster, jobs, arrival, length, gpus: instead of the suite's.
        draws: seed of policies that draw; `None` for that of the workload.
    """

    figures: ClassVar[Mapping[str, Figure]] = {
        "mean_jct": Figure("mean JCT", "s"),
        "p95_jct": Figure("p95", "s"),
        "makespan": Figure("makespan", "s"),
        "throughput": Figure("GPU s/s"),
        "communication": Figure("cost"),
        "ms_per_decision": Figure("ms a decision"),
    }
    sees = ("gpus", "seconds", "waited")
    usual = ("fcfs", "sjf", "ljf", "random", "tetris", "smallest", "least_work")

    suite: str | ClusterSuite = setting(  # noqa: RUF009
        "small", "small, large, expensive, mixed, loaded, uncertain, rush, philly, pollux", many=True
    )
    data: str = setting(DATA, "folder of traces, for philly and pollux", metavar="FOLDER")
    cluster: str | None = setting(None, "racks x nodes in a rack x GPUs  [default: 2x4x4]")
    jobs: int | None = setting(None, "that arrive")
    arrival: float | None = setting(None, "probability that a job arrives in a step")
    length: int | None = setting(None, "of the longest job, steps")
    gpus: int | None = setting(None, "of the largest job")
    draws: int | None = setting(0, "seed of policies that draw")

    @cached_property
    def on(self) -> ClusterSuite:
        """The suite with these sizes."""
        from gangplan.simulator.gangs.mixes import MIXES

        from .suites import TRACES, ClusterSuite, suite

        if isinstance(self.suite, ClusterSuite):
            return self.suite
        found, name = suite(self.suite, self.data), self.suite
        asked = {x: getattr(self, x) for x in ("jobs", "arrival", "length", "gpus")}
        sizes = {key: value for key, value in asked.items() if value is not None}
        if name in TRACES and (self.cluster or sizes):
            field = "cluster" if self.cluster else next(iter(sizes))
            raise InstanceError(field, f"is that of the trace in suite {name!r}")
        if sizes:
            if name == "uncertain":
                raise InstanceError(next(iter(sizes)), f"is fixed in suite {name!r}")
            mix = replace(MIXES[name], **sizes)
            found = replace(found, draw=lambda seed: (mix.draw(seed), None))
        if self.cluster is not None:
            fleet = Fleet.regular(*cluster_sizes(self.cluster, "racks x nodes x GPUs", "2x4x4"))
            found = replace(found, fleet=fleet)
        return found

    @property
    def case(self) -> str:  # type: ignore[override]
        """The suite's name."""
        return self.on.name

    def draw(self, seed: int) -> Drawn:
        """See `Ground`."""
        return self.on.draw(seed)

    def arrays(self, drawn: Drawn) -> Sequence[NDArray[Any]]:
        """See `Ground`."""
        return drawn[0].submit, drawn[0].gpus, drawn[0].duration

    def about(self, drawn: Drawn) -> str:
        """See `Ground`."""
        return f"{drawn[0].n_jobs} jobs on {self.on.fleet.n_nodes} nodes, {self.on.fleet.n_gpus} GPUs"

    @classmethod
    def policies(cls) -> str:
        """See `Ground`."""
        from .policies import OTHERS
        from .rules import SCORES

        return f"rules, each also as RULE+DISCIPLINE+ALLOCATOR: {', '.join(SCORES)}; {', '.join(OTHERS)}; or weights"

    def policy(self, name: str) -> Maker:
        """See `Ground`; one policy for all that is drawn, whose random choices begin with `draws`."""
        from .policies import make_policy

        if self.draws is None:
            return lambda drawn, seed: make_policy(name, seed, self.on)
        return self.always(make_policy(name, self.draws, self.on))

    def always(self, policy: Any) -> Maker:
        """Return what gives a policy for all that is drawn; what it loads at first counts for nothing."""
        warm = False

        def make(drawn: Drawn, seed: int) -> Any:
            nonlocal warm
            if not warm:
                if hasattr(policy, "step"):
                    policy.step = self.on.step
                work, told = drawn
                few = np.arange(min(2, work.n_jobs))
                self.run(policy, (work.take(few), None if told is None else told[few]))
                warm = True
            return policy

        return make

    def native(self, policy: Picks) -> Any:
        """See `Ground`; a job gets the closest GPUs."""
        from gangplan.simulator.engine import EngineScheduler
        from gangplan.simulator.gangs.allocate import Close

        return EngineScheduler((EnginePick(policy, Close()),), "overtake")

    def play(self, policy: Any, drawn: Drawn) -> Mapping[str, float]:
        """See `Ground`."""
        from gangplan.simulator.check import check
        from gangplan.simulator.metrics import summary

        outcome, communication, seconds = self.run(policy, drawn)
        refuse(check(outcome))
        found = summary(outcome)
        each = 1000 * seconds / outcome.workload.n_jobs
        figures = (found.mean_jct, found.p95_jct, found.makespan, found.work_rate, communication, each)
        return dict(zip(self.figures, figures, strict=True))

    def run(self, policy: Any, drawn: Drawn) -> tuple[Outcome, float, float]:
        """Return a schedule, its mean communication cost, and the processor time of the policy.

        A scheduler of the engine that may stop jobs is always told how long they take.
        """
        from gangplan.simulator.engine import EngineScheduler, simulate
        from gangplan.simulator.gangs.arrays import begin, cluster_of, jobs_of

        from .simulate import costs, outcome_of

        (work, expected), on = drawn, self.on
        jobs, cluster = jobs_of(work, on.proximity, expected), cluster_of(on.fleet, on.proximity)
        begun = process_time()
        if isinstance(policy, EngineScheduler):
            told = None if policy.preemptive else expected
            outcome = simulate(work, on.fleet, policy, speeds=on.proximity, told=told)
            cost = np.mean(list(costs(outcome, on.fleet, on.proximity).values()))
            return outcome, float(cost), process_time() - begun
        state = begin(jobs, cluster)
        policy.finish(jobs, cluster, state)
        seconds = process_time() - begun
        return outcome_of(work, on.fleet, on.proximity, jobs, cluster, state), float(state.cost.mean()), seconds

    def bound(self, drawn: Drawn, time_limit: float) -> float:
        """See `Ground`."""
        from .simulate import bound

        return bound(drawn[0], self.on.fleet, self.on.proximity)


def judge(policy: Any) -> tuple[list[Topdrl], tuple[str, ...]]:
    """Compare a policy of an online cluster with the rules that are best here; see `Recipe.judge`."""
    grounds = [Topdrl(name) for name in ("small", "expensive", "mixed", "loaded", "uncertain", "rush")]
    return grounds, ("patient", "least_work", "sjf", "tetris")


RECIPE = replace(GNN, judge=judge)
