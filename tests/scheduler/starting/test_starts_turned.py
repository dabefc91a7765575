"""A job that is due comes to borrow while it is held: those within their guarantees go before who borrows."""

from __future__ import annotations

from gangplan import Fleet, Scheduler
from gangplan.instances.placement import Demand, GangJob
from gangplan.scheduler import Quota, Sharing


def test_the_next_is_held_in_the_same_decision() -> None:
    """`wide` keeps `mine` off all nodes until `more` of its queue starts; `other`, which borrows, is behind both."""
    queues = {"a": Quota(0.5), "b": Quota(0.25), "a.x": Quota(0.1), "a.y": Quota(0.4)}
    s = Scheduler(Fleet.regular(1, 2, 8), "heuristic", sharing=Sharing(queues=queues), patience=1.0, max_wait=1.0)
    s.submit(GangJob("one", "m", (1,)), 40000.0, now=0.0)
    s.decide(60.0, now=0.0)
    s.submit(GangJob("all", "m", (1,), Demand(8)), 200000.0, now=0.0)
    s.submit(GangJob("rest", "m", (7,)), 30000.0, now=0.0)
    s.decide(60.0, now=0.0)
    s.submit(GangJob("wide", "m", (1,), Demand(8)), 1.0, now=0.0, queue="a.y")
    s.submit(GangJob("mine", "m", (3,)), 11000.0, now=0.0, queue="b")
    s.submit(GangJob("more", "m", (2,)), 5000.0, now=9000.0, queue="a.x")
    s.submit(GangJob("other", "m", (5,)), 600.0, now=9000.0)
    s.decide(60.0, now=9000.0)
    s.finish("rest", now=30000.0)
    assert [x.job for x in s.decide(60.0, now=30000.0).starts] == ["more"]
    assert [x.job for x in s.decide(60.0, now=30000.0).starts] == ["mine"]
