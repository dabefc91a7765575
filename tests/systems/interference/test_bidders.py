"""A market whose agents are processes: what it decides is the same, and what becomes of jobs when one dies or stops."""

import os
import signal
import time
from functools import partial

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.systems.interference.agents import Team
from gangplan.systems.interference.baselines import run
from gangplan.systems.interference.bidders import Actors, Agent, Here, Message, Processes, Remote
from gangplan.systems.interference.case import owners
from gangplan.systems.interference.environment import check
from gangplan.systems.interference.market import Market
from tests.systems.interference.test_agents import bidder, case

STOP = 3600.0
"""When something befalls an agent, seconds."""


class Befalls:
    """A policy beside which something is done, once, at a time."""

    def __init__(self, policy, **deeds):
        self.policy, self.deeds = policy, [(float(name[1:]), deed) for name, deed in deeds.items()]

    def place(self, env):
        """Do what is due, then decide."""
        while self.deeds and env.now >= self.deeds[0][0]:
            self.deeds.pop(0)[1]()
        self.policy.place(env)


def plan(env):
    """Return what was decided: when and where."""
    return env.start.tolist(), [env.rows(job) for job in range(len(env.start))]


def kept(env, owner):
    """Return nothing if each job ran once, to its end, on the racks of its owner."""
    of, jobs = owners(env.case.fleet), range(len(env.start))
    return check(env.outcome()) + [job for job in jobs if {of[s] for s in env.rows(job)} != {owner[job]}]


@pytest.mark.parametrize("ask", [None, 1])
def test_same_as_here(ask):
    """Where nobody dies or is late, agents in processes decide what those in one do, message for message."""
    found = case(servers=32, jobs=60)
    here, there = (Market(found, bidder, ask=ask, bidders=kind) for kind in (Here, Processes))
    assert plan(run(found, here)) == plan(run(found, there))
    for name in ("messages", "size", "passed", "rounds"):
        assert getattr(here.traffic, name) == getattr(there.traffic, name)
    assert here.traffic.wire == 0 < there.traffic.wire


def test_killed(caplog):
    """A process that is killed loses no job, which the log says: what happens is what `fails` says, to the job."""
    found = case(servers=32, jobs=90)
    market = Market(found, bidder, bidders=Processes)
    pid = market.bidders.pids[1]
    env = run(found, Befalls(market, t3600=lambda: (os.kill(pid, signal.SIGKILL), time.sleep(0.2))))
    assert market.bidders.lost == {1}
    assert [line.split(";")[0] for line in caplog.messages] == ["agent 1: is no more"]
    assert kept(env, market.owner) == []
    assert not (market.owner[env.start >= STOP] == 1).any()
    assert (market.owner[env.start < STOP] == 1).any()
    assert plan(env) == plan(run(found, Market(found, bidder, fails={1: STOP})))


def test_stopped():
    """A process that does not answer is passed over until it does, and no job is lost or runs twice."""
    found = case(servers=16, jobs=60)
    market = Market(found, bidder, bidders=lambda cases, local: Processes(cases, local, deadline=1.5))
    pid = market.bidders.pids[1]

    def go_on():
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.5)

    env = run(found, Befalls(market, t3600=lambda: os.kill(pid, signal.SIGSTOP), t7200=go_on))
    assert market.bidders.lost == set()
    assert kept(env, market.owner) == []
    began = env.start[market.owner == 1]
    assert not ((began >= STOP) & (began < 2 * STOP)).any()
    assert (began >= 2 * STOP).any()


class Whims(Remote):
    """Agents here, of which some, by a seed, answer after the deadline or only when they are asked anew, or die."""

    def __init__(self, cases, local, seed, dies=0.0):
        self.rng, self.dies, self.agents = np.random.default_rng(seed), 0.0, [Agent(case, local) for case in cases]
        self.answers, self.alive = {}, set(range(len(cases)))
        super().__init__(len(cases), 1.0)
        self.dies = dies

    def _send(self, k, message):
        if len(self.alive) > 1 and self.rng.random() < self.dies:
            self.alive.discard(k)
        if k not in self.alive and self.rng.random() < 0.5:
            raise BrokenPipeError
        self.answers[k] = self.agents[k].answer(message)

    def _ready(self, agents, seconds):
        return list(agents) if seconds is None else [k for k in agents if self.rng.random() < 0.7]

    def _receive(self, k):
        if k not in self.alive:
            raise EOFError
        return self.answers.pop(k)


@pytest.mark.parametrize("dies", [0.0, 0.02])
@pytest.mark.parametrize("seed", range(3))
def test_whims(seed, dies):
    """Whoever is late or dies, before or after it was awarded a job, each job runs once, to its end."""
    found = case(jobs=40)
    market = Market(found, bidder, ask=None if seed % 2 else 1, bidders=lambda *words: Whims(*words, seed, dies))
    env = run(found, market)
    assert kept(env, market.owner) == []
    assert (len(market.bidders.lost) > 0) <= (dies > 0)


LIES = {
    "nan": lambda job, rows: {job: (rows, np.nan)},
    "infinite": lambda job, rows: {job: (rows, -np.inf)},
    "stranger": lambda job, rows: {10**6: (rows, 0.0)},
    "elsewhere": lambda job, rows: {job: ({10**6: (1, 1)}, 0.0)},
    "full": lambda job, rows: {job: ({0: (99, 99)}, 0.0)},
    "nothing": lambda job, rows: {job: ({0: (0, 0)}, 0.0)},
    "negative": lambda job, rows: {job: ({0: (-1, 1)}, 0.0)},
    "words": lambda job, rows: {job: "cheap"},
}


class Liar(Here):
    """Agents here, of which the first answers nonsense, as one elsewhere might: its own racks stay as they are."""

    def __init__(self, cases, local, lie):
        super().__init__(cases, local)
        self.lie = lie

    def ask(self, asks):
        """Replace every bid of the first agent."""
        honest = {k: ask for k, ask in asks.items() if k != 0}
        found = super().ask(honest)
        if 0 in asks:
            bids = super().ask({0: Message(asks[0].jobs)})[0]
            found[0] = {}
            for job, (rows, _) in bids.items():
                found[0] |= self.lie(job, rows)
        return found


@pytest.mark.parametrize("lie", LIES)
def test_nonsense(lie, caplog):
    """Whatever an agent answers, every job runs once, on the others' racks, and the log says whose bids are ignored."""
    found = case(servers=16, jobs=40)
    market = Market(found, bidder, bidders=lambda *words: Liar(*words, LIES[lie]))
    env = run(found, market)
    assert kept(env, market.owner) == []
    assert not (market.owner == 0).any()
    assert any(line.startswith("agent 0: ") for line in caplog.messages)


@pytest.mark.parametrize("kind", [Market, partial(Team, forward="emptiest")])
def test_late(kind):
    """An agent that is late for a while begins nothing then, its jobs wait or go elsewhere, and all run."""
    found = case(servers=16, jobs=60)
    team = kind(found, bidder, late={1: (STOP, 2 * STOP)})
    env = run(found, team)
    assert kept(env, team.owner) == []
    began = env.start[team.owner == 1]
    assert not ((began >= STOP) & (began < 2 * STOP)).any()
    assert (began < STOP).any()
    assert (began >= 2 * STOP).any()


def test_no_ray(monkeypatch):
    """Without Ray the error says how to install it."""
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(InstanceError, match=r"pip install \"\.\[ray\]\""):
        Market(case(), bidder, bidders=Actors)


def test_ray():
    """On a Ray cluster of three nodes, one of which is killed, no job is lost and the others go on."""
    pytest.importorskip("ray")
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    try:
        nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
        ray.init(cluster.address, log_to_driver=False)
        found = case(servers=32, jobs=90)
        market = Market(found, bidder, bidders=Actors)
        env = run(found, Befalls(market, t3600=lambda: cluster.remove_node(nodes[0], allow_graceful=False)))
        assert len(market.bidders.lost) == 1
        assert kept(env, market.owner) == []
        assert not np.isin(market.owner[env.start >= STOP + found.interval], list(market.bidders.lost)).any()
    finally:
        ray.shutdown()
        cluster.shutdown()
