"""Harmony's and MARL's ground: jobs that slow one another down, placed once an interval and never moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import process_time
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.published import DATA
from gangplan.simulator.ground import Figure, Ground, Maker, refuse, setting
from gangplan.simulator.picking import WAIT, DecisionView, Picks, ask

if TYPE_CHECKING:
    from .case import InterferenceCase
    from .environment import Environment


@dataclass(frozen=True)
class Interference(Ground):
    """Let jobs arrive that slow one another down in ways nobody is told, and compare who places their tasks.

    The ground is Harmony's (INFOCOM 2019, ToN 2023); oracles know the truth.

    Attributes:
        case: what arrives, see `cases`.
        data: folder of published data.
        jobs: how many, by default as the case says.
        cluster: seed of the truth, of cases on the testbed.
        make: makes the case of a seed, instead of the one of this name.
    """

    figures: ClassVar[Mapping[str, Figure]] = {
        "mean_jct": Figure("mean JCT", "s"),
        "p95_jct": Figure("p95", "s"),
        "makespan": Figure("makespan", "s"),
        "rate": Figure("placements/s"),
        "messages": Figure("messages/job", aside=True),
        "size": Figure("bytes/job", aside=True),
        "wire": Figure("sent/job", aside=True),
        "round": Figure("round", "s", aside=True),
    }
    sees = ("gpus", "seconds", "waited")
    usual = ("lif", "tetris", "lb", "alone")

    case: str = setting("poisson", "what arrives, see docs/interference.md", many=True)
    data: str = setting(DATA, "folder of data, for cases made of it", metavar="FOLDER")
    jobs: int | None = setting(None, "how many  [default: as the case says]")
    cluster: int = setting(0, "seed of how jobs slow one another down, of drawn cases")
    make: Callable[[int], InterferenceCase] | None = field(default=None, repr=False)

    @cached_property
    def _maker(self) -> Callable[[int], InterferenceCase]:
        from .cases import maker

        words = {} if self.jobs is None else {"jobs": self.jobs}
        words |= {"cluster": self.cluster} if self.cluster else {}
        return self.make or maker(self.case, self.data, **words)

    def draw(self, seed: int) -> InterferenceCase:
        """See `Ground`."""
        return self._maker(seed)

    def arrays(self, drawn: InterferenceCase) -> Sequence[NDArray[Any]]:
        """See `Ground`."""
        jobs, hidden = drawn.jobs, drawn.truth.hidden  # type: ignore[attr-defined]
        return (
            *(jobs.submit, jobs.kind, jobs.workers, jobs.servers, jobs.epochs),
            *(hidden.host, hidden.socket, hidden.quality),
        )

    def about(self, drawn: InterferenceCase) -> str:
        """See `Ground`."""
        from .cases import OF_AGENTS

        nodes = "groups of GPUs" if self.case in OF_AGENTS else "nodes"
        return f"{len(drawn.jobs)} jobs on {drawn.fleet.n_nodes} {nodes}, {drawn.fleet.n_gpus} GPUs"

    @classmethod
    def policies(cls) -> str:
        """See `Ground`."""
        from .baselines import baselines
        from .policies import OTHERS

        names = ", ".join(name for name in (*baselines(), *OTHERS) if not name.endswith("-2-racks"))
        return f"{names}; market and agents also as NAME-2-racks; or weights"

    def policy(self, name: str) -> Maker:
        """See `Ground`."""
        from .policies import make_policy

        make = make_policy(name, self.case)
        return lambda drawn, seed: make(drawn)

    def native(self, policy: Picks) -> InterferencePick:
        """See `Ground`; a job goes where `alone` would put it."""
        return InterferencePick(policy)

    def play(self, policy: Any, drawn: InterferenceCase) -> Mapping[str, float]:
        """See `Ground`."""
        from .agents import AgentTraffic, Team
        from .baselines import run
        from .environment import check

        begin = process_time()
        env = run(drawn, policy)
        seconds, outcome = process_time() - begin, env.outcome()
        refuse(check(outcome))
        jct = outcome.jct
        told = policy.traffic if isinstance(policy, Team) else AgentTraffic(0, 0, [])
        figures = (
            *(float(jct.mean()), float(np.quantile(jct, 0.95)), outcome.makespan),
            env.placements / max(seconds, 1e-9),
            *(x / len(jct) for x in (told.messages, told.size, told.wire)),
            told.seconds / told.rounds if told.rounds else np.nan,
        )
        return dict(zip(self.figures, figures, strict=True))

    def bound(self, drawn: InterferenceCase, time_limit: float) -> float:
        """See `Ground`: alone, without synchronisation, on GPUs that are counted, from the next interval on."""
        from gangplan.instances.workload import Workload
        from gangplan.solvers.schedule.clairvoyant import clairvoyant

        jobs, hidden, n = drawn.jobs, drawn.truth.hidden, len(drawn.jobs)  # type: ignore[attr-defined]
        submit = np.ceil(jobs.submit / drawn.interval) * drawn.interval
        seconds = jobs.epochs * (hidden.step * hidden.batches)[jobs.kind] / jobs.workers
        fastest = Workload(tuple(map(str, range(n))), submit, jobs.workers, seconds)
        plan = clairvoyant(fastest, drawn.fleet.n_gpus, time_limit=time_limit)
        return float((submit - jobs.submit).mean()) + plan.bound


class InterferencePick:
    """A policy that picks the next job, as one of this ground: it goes where `alone` would put it."""

    def __init__(self, policy: Picks) -> None:
        self._policy = policy

    def place(self, env: Environment) -> None:
        """Place the jobs that it picks."""
        from .baselines import CONSOLIDATE, alone
        from .greedy import Greedy

        rule = Greedy(alone(env.case.truth), consolidate=CONSOLIDATE)
        while jobs := list(env.waiting):
            workers = env.case.jobs.workers[jobs].astype(np.float64)
            columns = {"gpus": workers, "seconds": env.profiled[jobs], "waited": env.now - env.case.jobs.submit[jobs]}
            fits = np.array([bool(rule.offer(env, job)[0]) for job in jobs], dtype=bool)
            idle = int(np.maximum(env.free[:, 0], 0).sum())
            at = ask(self._policy, DecisionView(env.now, idle, env.case.fleet.n_gpus, columns, fits))
            if at == WAIT:
                if env.stuck and fits.any():
                    raise InstanceError("policy", f"leaves {len(jobs)} jobs waiting for good")
                return
            env.place_whole(jobs[at], rule.offer(env, jobs[at])[0])


@dataclass(frozen=True)
class Agents(Interference):
    """Let such jobs arrive in a data centre whose racks are owned by agents, and compare what these decide together.

    The ground is MARL's; what agents tell one another is counted.
    """

    usual = ("market-packed", "agents-lif", "agents-alone", "lif-near")

    case: str = setting("leaf-spine", "what arrives, see docs/interference.md", many=True)
