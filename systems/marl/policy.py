"""MARL's policy: agents of a rack each, task by task the action of the best score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.learned.policy.network import NetworkPolicy
from gangplan.learned.training.interference.models import SpeedPredictor
from gangplan.solvers.processes import one_thread

from ..harmony.episodes import end_intervals
from ..interference.agents import AgentTable, Ask
from ..interference.baselines import CONSOLIDATE, alone
from ..interference.environment import Environment
from ..interference.greedy import Greedy, Rows
from ..interference.market import Market
from .network import Actor, Asked, asked_of, racks_of
from .observe import AgentDecision, AgentSight, RackHierarchy, Row
from .recipe import NAME, MarlSettings

SAME = 0.02
"""By what share a job must be faster elsewhere to be passed on though it fits."""


class AgentTeacher:
    """Says what agents at a table should do.

    At an interval a market is cleared in which a job that was passed on is bid for by its owner alone. Agents do what
    came of it; where it can no longer be done, since they did otherwise before, they place as their own search says.

    Args:
        table: whose parts' truth, without interference, is searched by.
    """

    def __init__(self, table: AgentTable) -> None:
        self._table, self._rows, self._to = table, dict[int, Rows](), dict[int, tuple[int, float]]()
        self._alone = alone(table.case.truth)
        self._search = [Greedy(alone(part.truth), consolidate=CONSOLIDATE) for part in table.cases]
        each = iter(self._search)
        self._market = Market(table.case, lambda part: next(each, self._search[0]))

    def begin(self) -> None:
        """Clear the market of an interval."""
        table, env = self._table, self._table.env.fork()
        own = np.arange(len(table.servers)) == table.owner[:, None]
        self._market.holds = np.where(table.passed_on[:, None], own, table.holds)
        self._market.owner = table.owner.copy()
        env.running.clear()  # nobody's speed depends on others, so a search without them finds the same
        self._market.place(env)
        jobs = env.case.jobs
        speed = self._alone.speeds(env.snapshot()) if env.running else ()
        self._to = {
            job: (int(self._market.owner[job]), float(jobs.epochs[job] / each))
            for job, each in zip(env.running, speed, strict=True)
        }

    def label(self, ask: Ask) -> BoolArray:
        """Return which actions are right, at least one."""
        part, job, groups, found = ask.part, ask.job, len(ask.part.free), np.zeros_like(ask.mask)
        if part.current < 0:
            running, part.running = part.running, []
            self._rows[job], seconds = self._search[ask.agent].offer(part, job)
            part.running = running
            to, least = self._to.get(job, (ask.agent, np.inf))
            if to != ask.agent and ask.mask[groups + to] and seconds > (1 + SAME) * least:
                found[groups + to], self._rows[job] = True, {}
                return found
        done = part.rows(job)
        for s, tasks in self._rows[job].items():
            found[s] = ask.mask[s] and tasks[ask.kind] > done.get(s, (0, 0))[ask.kind]
        if not found.any():
            found[-1] = ask.mask[-1]
        return found if found.any() else ask.mask


class JointStep(NamedTuple):
    """What agents of one cluster decided at the same time.

    Attributes:
        plan: of the cluster.
        racks, state: what agents told one another, see `AgentSight.told`.
        seen: the decisions.
        action, behaviour: what was decided, and the logarithm of its probability.
        right: what the teacher would do, of each decision; empty without one.
    """

    plan: RackHierarchy
    racks: np.ndarray
    state: Row
    seen: list[AgentDecision]
    action: list[int]
    behaviour: list[float]
    right: list[BoolArray]


@dataclass(slots=True)
class PlayedInterval:
    """One interval of one cluster.

    Attributes:
        plan: of the cluster.
        racks: at its beginning, float16 (groups, F).
        extras: for the critic, float32 (agents, `EXTRAS`).
        steps: what was decided.
        reward: of each agent, the shares of their epochs that its jobs did; float64 (agents,).
    """

    plan: RackHierarchy
    racks: np.ndarray
    extras: Row
    steps: list[JointStep] = field(default_factory=list)
    reward: FloatArray = field(default_factory=lambda: np.zeros(0))


class PlayedLane:
    """One environment, its table, and what was played at it."""

    def __init__(self, env: Environment, table: AgentTable, types: int, *, teach: bool = False) -> None:
        self.env, self.table, self.sight = env, table, AgentSight(env, types)
        self.teacher = AgentTeacher(table) if teach else None
        self.played = list[PlayedInterval]()

    def begin(self, *, keep: bool = False) -> None:
        """Begin an interval."""
        self.table.begin(self.env)
        if self.teacher is not None:
            self.teacher.begin()
        if keep:
            racks, extras = self.sight.told(self.table)[0], self.sight.extras(self.env, self.table.owner)
            self.played.append(PlayedInterval(self.sight.plan, racks, extras))

    def look(self, asks: Sequence[Ask]) -> JointStep:
        """Return what agents see that are to decide, and what the teacher says."""
        seen = [self.sight.decision(self.table, ask) for ask in asks]
        right = [] if self.teacher is None else [self.teacher.label(ask) for ask in asks]
        return JointStep(self.sight.plan, *self.sight.told(self.table), seen, [], [], right)

    def pay(self, before: FloatArray, jobs: list[int]) -> None:
        """Note down what an interval came to, of the jobs that ran in it."""
        did = (self.env.done_epochs[jobs] - before) / self.env.case.jobs.epochs[jobs]
        self.played[-1].reward = np.bincount(self.table.owner[jobs], did, len(self.sight.plan.pod)).astype(np.float64)


def batch(network: Actor, steps: Sequence[JointStep]) -> tuple[Asked, Tensor]:
    """Return the decisions of steps as one batch, and what agents told one another."""
    first = np.cumsum([0, *(len(x.plan.pod) for x in steps)])
    shapes = [shape for x in steps for shape in x.plan.inside]
    racks = racks_of(shapes, np.concatenate([x.racks for x in steps]))
    told = network.told(racks, torch.from_numpy(np.concatenate([x.state for x in steps])))
    each = [(x.plan, seen, int(at)) for x, at in zip(steps, first, strict=False) for seen in x.seen]
    plans, seen, begin = zip(*each, strict=True)
    return asked_of(plans, seen, begin), told


def decide(network: Actor, steps: Sequence[JointStep], rng: np.random.Generator | None) -> None:
    """Enter actions and logarithms of their probabilities in steps; the best actions without a generator."""
    flat = network(*batch(network, steps)).double().numpy()
    sizes = np.cumsum([len(seen.mask) for x in steps for seen in x.seen])[:-1]
    logs = iter(np.split(flat, sizes))
    for step in steps:
        for _ in step.seen:
            log = next(logs)
            p = np.exp(log)
            action = int(log.argmax() if rng is None else rng.choice(len(p), p=p / p.sum()))
            step.action.append(action)
            step.behaviour.append(float(log[action]))


def play(
    lanes: Sequence[PlayedLane],
    models: Sequence[SpeedPredictor],
    network: Actor | None,
    rng: np.random.Generator | None = None,
    *,
    keep: bool = True,
) -> None:
    """Play lanes to their ends.

    Args:
        models: predict the speeds of each.
        network: decides; None: the teacher does.
        rng: draws the actions; None to take the best.
    """
    fresh = set(range(len(lanes)))
    with torch.inference_mode():
        while active := [i for i, lane in enumerate(lanes) if not lane.env.done]:
            for i in fresh & set(active):
                lanes[i].begin(keep=keep)
            asked = {i: asks for i in active if (asks := lanes[i].table.asks())}
            steps = {i: lanes[i].look(asks) for i, asks in asked.items()}
            if network is not None and steps:
                decide(network, list(steps.values()), rng)
            for i, step in steps.items():
                if network is None:
                    step.action.extend(int(x.argmax()) for x in step.right)
                for ask, action in zip(asked[i], step.action, strict=True):
                    lanes[i].table.take(ask, action)
                if keep:
                    lanes[i].played[-1].steps.append(step)
            fresh = set(active) - steps.keys()
            _end([(lanes[i], models[i]) for i in sorted(fresh)], keep=keep)


def _end(lanes: Sequence[tuple[PlayedLane, SpeedPredictor]], *, keep: bool) -> None:
    """End the interval in some lanes; speeds are predicted for all those of a model at once."""
    for lane, _ in lanes:
        lane.table.end()
    before = [(list(lane.env.running), lane.env.done_epochs[lane.env.running].copy()) for lane, _ in lanes]
    for model in {id(model): model for _, model in lanes}.values():
        end_intervals([lane.env for lane, x in lanes if x is model], model)
    for (lane, _), (jobs, done) in zip(lanes, before, strict=True):
        if keep:
            lane.pay(done, jobs)


class MarlPolicy(NetworkPolicy):
    """A policy of `gangplan.systems.interference`, see `baselines.Policy` there.

    Args:
        seed: says whose each job is.
        fails: agent -> when it stops for good, seconds, as of `gangplan.systems.interference.agents.Team`.

    Attributes:
        lane: the environment that it was last asked about, with the table of its agents.
    """

    recipe, config, make = NAME, MarlSettings, Actor

    def __init__(
        self, network: Actor, settings: MarlSettings, seed: int = 0, fails: Mapping[int, float] | None = None
    ) -> None:
        super().__init__(network, settings)
        self.seed, self.fails = seed, fails
        self.lane: PlayedLane | None = None

    def place(self, env: Environment) -> None:
        """Let all agents decide, once an interval.

        Raises:
            InstanceError: if the environment has no racks, or other types than the policy is for.
        """
        if self.lane is None or self.lane.env is not env:
            self.lane = PlayedLane(env, AgentTable(env.case, self.seed, self.fails), self.settings.types)
        lane, table = self.lane, self.lane.table
        if not env.waiting:
            return
        with torch.inference_mode(), one_thread():
            lane.begin()
            telling, hear = len(table.views), len(table.views) - 1
            while asks := table.asks():
                table.traffic.count(telling * hear, 4 * self.settings.width)
                step, telling = lane.look(asks), len(asks)
                decide(self.network, [step], None)
                for ask, action in zip(asks, step.action, strict=True):
                    table.take(ask, action)
            table.end()
