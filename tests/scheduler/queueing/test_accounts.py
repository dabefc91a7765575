"""Shares of queues: max-min fair as a linear programme has it, guarantees, limits, and what others lend."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from gangplan import InstanceError, Scheduler
from gangplan.instances.placement import Demand, Fleet, GangJob
from gangplan.scheduler.settings import ROUNDING, Limit, Quota, Sharing, parent

EXACT = 1e-6
"""Of the cluster: HiGHS keeps constraints to a ten-millionth."""


def by_lp(quotas: dict[str, Quota], wanted: dict[str, float]) -> dict[str, float]:
    """Return max-min fair shares over guarantees: level by level of the tree, the least excess is raised by LPs."""
    want = {path: min(wanted.get(path, 0.0), quota.most) for path, quota in quotas.items()}
    for path in sorted(quotas, key=lambda path: -path.count(".")):
        below = [x for x in quotas if parent(x) == path]
        if below:
            want[path] = min(quotas[path].most, sum(want[x] for x in below))
    has = {"": 1.0}
    for above in ("", *sorted(quotas, key=lambda path: path.count("."))):
        siblings = [x for x in quotas if parent(x) == above]
        has |= _lexicographic(siblings, quotas, want, has[above]) if siblings else {}
    return {path: has[path] for path in wanted}


def _lexicographic(
    names: list[str], quotas: dict[str, Quota], want: dict[str, float], whole: float
) -> dict[str, float]:
    """Raise the least excess by weight as far as it goes, fix who cannot have more, and so on."""
    least = {x: min(want[x], quotas[x].share) for x in names}
    fixed: dict[str, float] = {}
    while len(fixed) < len(names):
        open_, left = [x for x in names if x not in fixed], whole - sum(fixed.values()) + EXACT

        # variables: the excess t, then the share of each open queue: x >= least + t * weight unless it wants less
        def solve(
            fair: float | None, more: str | None = None, open_: list[str] = open_, left: float = left
        ) -> np.ndarray:
            n = len(open_)
            cost = np.zeros(n + 1)
            cost[0 if more is None else 1 + open_.index(more)] = -1.0
            rows = [np.concatenate([[quotas[x].weight], -np.eye(n)[i]]) for i, x in enumerate(open_)]
            total = np.concatenate([[0.0], np.ones(n)])
            bounds = [(0.0 if fair is None else fair, fair), *((least[x], max(want[x], least[x])) for x in open_)]
            limits = [*(-least[x] for x in open_), left]
            found = linprog(cost, A_ub=np.array([*rows, total]), b_ub=np.array(limits), bounds=bounds)
            assert found.status == 0, found.message
            return np.asarray(found.x)

        fair = float(solve(None)[0])
        before = len(fixed)
        for x in open_:
            most = float(solve(max(0.0, fair - EXACT), x)[1 + open_.index(x)])
            if most <= least[x] + fair * quotas[x].weight + 10 * EXACT:
                fixed[x] = min(max(want[x], least[x]), least[x] + fair * quotas[x].weight)
        assert len(fixed) > before
    return fixed


def by_water(quotas: dict[str, Quota], wanted: dict[str, float]) -> dict[str, float]:
    """Return the same by water that rises over guarantees until nothing is left, level by level of the tree."""
    want = {path: min(wanted.get(path, 0.0), quota.most) for path, quota in quotas.items()}
    below = {above: [x for x in quotas if parent(x) == above] for above in ("", *quotas)}
    for path in sorted(quotas, key=lambda path: -path.count(".")):
        if below[path]:
            want[path] = min(quotas[path].most, sum(want[x] for x in below[path]))
    has = {"": 1.0}
    for above in ("", *sorted(quotas, key=lambda path: path.count("."))):
        some = {x: min(want[x], quotas[x].share) for x in below[above]}
        left, open_ = has[above] - sum(some.values()), [x for x in some if some[x] < want[x]]
        while open_ and left > ROUNDING**2:
            most = max(quotas[x].weight for x in open_)
            weights = {x: quotas[x].weight / most for x in open_}
            rise = min(left / sum(weights.values()), *((want[x] - some[x]) / w for x, w in weights.items() if w))
            for x in open_:
                some[x] += rise * weights[x]
            left -= rise * sum(weights.values())
            open_ = [x for x in open_ if some[x] < want[x] - ROUNDING**2]
        has |= some
    return {path: has[path] for path in wanted}


def drawn(rng: random.Random) -> tuple[dict[str, Quota], dict[str, float]]:
    """Return a tree of queues, and what its leaves want."""
    quotas: dict[str, Quota] = {}
    shares = [rng.random() for _ in range(rng.randint(1, 4))]
    for i, part in enumerate(shares):
        share = rng.choice((0.0, part / sum(shares) * rng.choice((0.5, 1.0))))
        quotas[f"q{i}"] = Quota(share, max(share, rng.choice((1.0, 1.0, 0.6))), weight=rng.choice((1.0, 2.0, 0.5)))
        for j in range(rng.choice((0, 0, 2, 3))):
            less = share / 3 * rng.random()
            quotas[f"q{i}.{j}"] = Quota(less, max(less, rng.choice((1.0, 0.3))), weight=rng.choice((1.0, 3.0)))
    leaves = [path for path in quotas if not any(parent(x) == path for x in quotas)]
    return quotas, {path: rng.choice((0.0, rng.random() * 0.5, 2.0)) for path in leaves}


def test_fair_shares_are_those_of_linear_programmes() -> None:
    """Water that rises over guarantees gives what lexicographic linear programmes do, on 100 drawn trees."""
    rng = random.Random(11)
    for _ in range(100):
        quotas, wanted = drawn(rng)
        assert by_water(quotas, wanted) == pytest.approx(by_lp(quotas, wanted), abs=1e-4)


def test_single_gpu_jobs_fill_the_cluster_with_fair_shares() -> None:
    """What queues hold after one decision differs from their fair shares by no more than one job, on 20 drawn trees."""
    rng, fleet = random.Random(5), Fleet.regular(racks=2, nodes=8, gpus=8)
    for _ in range(20):
        quotas, wanted = drawn(rng)
        scheduler = Scheduler(fleet, "heuristic", sharing=Sharing(quotas))
        jobs = [(path, i) for path, share in wanted.items() for i in range(min(128, round(share * 128)))]
        rng.shuffle(jobs)
        for path, i in jobs:
            scheduler.submit(GangJob(f"{path}/{i}", "any", (1,)), rng.random() * 1e4, queue=path)
        starts = [start.job.partition("/")[0] for start in scheduler.decide(60.0).starts]
        fair = by_water(quotas, {path: min(1.0, round(x * 128) / 128) for path, x in wanted.items()})
        for path, share in fair.items():
            assert abs(starts.count(path) - share * 128) <= 1.0 + 1e-6, (path, quotas, wanted, fair)


def cluster(**sharing: object) -> Scheduler:
    """Return a scheduler of four nodes of eight GPUs where a stop costs nothing."""
    return Scheduler(Fleet.regular(racks=1, nodes=4, gpus=8), "heuristic", price=0.0, sharing=sharing)


def fill(scheduler: Scheduler, count: int, queue: str, now: float = 0.0, **terms: object) -> None:
    """Submit jobs of one GPU for ten hours."""
    for _ in range(count):
        name = f"{queue}{len(scheduler.waiting) + len(scheduler.running)}"
        scheduler.submit(GangJob(name, "any", (1,)), 36000.0, now=now, queue=queue, **terms)


def test_an_idle_guarantee_is_borrowed_and_reclaimed() -> None:
    """A queue borrows all 32 GPUs; the other has its 8 and half of the rest back once the least run time is over."""
    scheduler = cluster(queues={"a": 0.5, "b": 0.25}, least_run=60.0)
    fill(scheduler, 40, "a")
    assert len(scheduler.decide(60.0).starts) == 32
    fill(scheduler, 20, "b", now=30.0)
    assert not scheduler.decide(60.0).stops
    stops = scheduler.decide(60.0, now=60.0).stops
    assert [(x.cause, x.job[0], x.other[0]) for x in stops] == [("reclaim", "a", "b")] * 12
    assert not scheduler.decide(60.0, now=1000.0).stops  # both hold an eighth above what they are owed


def test_a_guarantee_that_is_not_lent_stays_free() -> None:
    """Of a quarter that a queue keeps, nobody else takes a GPU; of one that it half lends, half; the rest is taken."""
    for lends, free in ((0.0, 8), (0.5, 4), (1.0, 0)):
        scheduler = cluster(queues={"a": 0.5, "b": Quota(0.25, lends=lends)})
        fill(scheduler, 40, "a")
        scheduler.decide(60.0)
        assert scheduler.idle == free
    for held in range(9):
        scheduler = cluster(queues={"a": 0.5, "b": Quota(0.25, lends=0.0)})
        fill(scheduler, held, "b")
        fill(scheduler, 40, "a")
        scheduler.decide(60.0)
        assert scheduler.idle == 8 - held


def test_nobody_takes_what_is_not_lent() -> None:
    """What queues do not lend and do not hold is free after each decision, on 12 drawn clusters with trees."""
    bound = 0
    for seed in range(12):
        rng = random.Random(seed)
        shares = {"a": 0.5, "b": 0.25, "c": 0.25} | ({"a.x": 0.3, "a.y": 0.2} if seed % 2 else {})
        quotas = {path: Quota(share, lends=rng.choice((0.0, 0.3, 1.0))) for path, share in shares.items()}
        leaves = [x for x in quotas if not any(parent(y) == x for y in quotas)]
        s = Scheduler(Fleet.regular(1, 4, 8), "heuristic", price=rng.choice((None, 0.0)), sharing={"queues": quotas})

        def kept(path: str, s: Scheduler = s, quotas: dict[str, Quota] = quotas) -> float:
            jobs = [x for x in s._state.running.values() if f"{x.request.terms.queue}.".startswith(f"{path}.")]
            mine = quotas[path].share * (1 - quotas[path].lends) * 32 - sum(x.gpus for x in jobs)
            return max(mine, sum(kept(x, s, quotas) for x in quotas if parent(x) == path), 0.0)

        for i in range(30):
            gang = GangJob(f"j{i}", "any", (rng.choice((1, 2, 8)),))
            with suppress(InstanceError):  # what it asks for is never lent
                s.submit(gang, rng.random() * 1e4, now=60.0 * i, queue=rng.choice(leaves), priority=rng.randint(0, 1))
            if s.running and rng.random() < 0.3:
                s.finish(rng.choice(s.running))
            s.decide(60.0)
            free = sum(kept(path) for path in quotas if not parent(path))
            assert s.idle >= free - 1e-6, (seed, i, s.idle, free)
            bound += s.idle < free + 1 and len(s.waiting) > 0
    assert bound > 20


def test_what_is_not_lent_is_there_at_once() -> None:
    """A job within its guarantee takes back what was borrowed, and not what a third queue keeps for itself."""
    s = cluster(queues={"a": 0.5, "b": 0.25, "c": Quota(0.25, lends=0.0)})
    fill(s, 30, "b")
    assert len(s.decide(60.0).starts) == 24
    fill(s, 8, "a", now=1000.0)
    assert {(x.job[0], x.other[0]) for x in s.decide(60.0).stops} == {("b", "a")} and s.idle == 8
    fill(s, 8, "c", now=2000.0)
    decision = s.decide(60.0)
    assert [x.job[0] for x in decision.starts] == ["c"] * 8 and not decision.stops


def test_a_node_that_is_down_changes_no_share() -> None:
    """Of two nodes a queue may hold one, whether or not both are up."""
    s = Scheduler(Fleet.regular(1, 2, 8), sharing={"queues": {"a": Quota(0.5, most=0.5), "b": 0.5}})
    fill(s, 12, "a")
    s.fail_node("node0")
    assert len(s.decide(60.0).starts) == 8
    fill(s, 1, "a")
    s.repair_node("node0")
    assert not s.decide(60.0).starts


def test_what_is_left_over_is_reclaimed_by_weight() -> None:
    """Of 32 GPUs that nobody is guaranteed, a queue of three times the weight has 24 back, and then nobody stops."""
    s = cluster(queues={"a": Quota(weight=1.0), "b": Quota(weight=3.0)})
    fill(s, 40, "a")
    s.decide(60.0)
    fill(s, 40, "b", now=60.0)
    assert [(x.cause, x.job[0]) for x in s.decide(60.0).stops] == [("reclaim", "a")] * 24
    for now in (120.0, 180.0):
        assert not s.decide(60.0, now=now).stops


def test_who_borrows_by_now_keeps_no_room_from_who_does_not() -> None:
    """The first that is due borrows once another of its queue starts: the next has its own node kept free."""
    fleet = Fleet.regular(racks=1, nodes=2, gpus=4, labels={"x": [0], "y": [1]})
    s = Scheduler(fleet, "heuristic", patience=0.001, sharing={"queues": {"b": 0.5}, "aging": None})
    s.submit(GangJob("left", "any", (2,), requires=("x",)), 2000.0, now=0.0)
    s.submit(GangJob("right", "any", (4,), requires=("y",)), 1000.0)
    s.decide(60.0)
    for job, seconds, priority in (
        (GangJob("first", "any", (4,)), 10.0, 3),
        (GangJob("beside", "any", (1,)), 500.0, 2),
        (GangJob("next", "any", (1,), requires=("x",), whole_nodes=True), 10.0, 2),
        (GangJob("last", "any", (1,)), 5000.0, 1),
    ):
        s.submit(job, seconds, now=10.0, queue="b", priority=priority)
    assert [x.job for x in s.decide(60.0, now=50.0).starts] == ["beside"]


def test_the_most_and_limits_bind() -> None:
    """A queue holds no more than its most, a user no more GPUs and jobs than the limit, and `explain` says which."""
    scheduler = cluster(queues={"a": Quota(0.25, most=0.5)})
    fill(scheduler, 40, "a")
    assert len(scheduler.decide(60.0).starts) == 16
    assert "at most 50.0%" in scheduler.explain(scheduler.waiting[0]).why
    scheduler = cluster(limits={"*": 5, "ann": Limit(jobs=2)})
    fill(scheduler, 10, "", user="bob")
    fill(scheduler, 10, "", user="ann")
    assert len(scheduler.decide(60.0).starts) == 7
    assert "user bob holds 5 GPUs of at most 5" in str(scheduler.explain(scheduler.waiting[0]))


def test_users_of_a_queue_share_it_by_what_they_used() -> None:
    """Who used the cluster for hours comes after who did not, and by and by less so."""
    scheduler = cluster(fair_users=True, halflife=3600.0)
    for i in range(32):
        scheduler.submit(GangJob(f"ann{i}", "any", (1,)), 7200.0, now=0.0, user="ann")
    scheduler.decide(60.0)
    for i in range(32):
        scheduler.finish(f"ann{i}", now=7200.0)
    for i in range(40):
        scheduler.submit(GangJob(f"ann{i + 100}", "any", (1,)), 100.0, user="ann")
        scheduler.submit(GangJob(f"bob{i}", "any", (1,)), 100.0, user="bob")
    shares = [start.job[:3] for start in scheduler.decide(60.0).starts]
    # ann's mean is .75 of the cluster; bob's is 0 until an hour has gone by, so all go to him
    assert shares.count("bob") == 32
    for i in range(32):
        scheduler.finish(f"bob{i}", now=7300.0)
    for name in scheduler.waiting:
        scheduler.withdraw(name)
    scheduler.submit(GangJob("bob", "any", (1,)), 3600.0, now=50400.0, user="bob")
    scheduler.decide(60.0)
    scheduler.finish("bob", now=54000.0)
    for user in ("bob", "ann"):
        for i in range(40):
            scheduler.submit(GangJob(f"{user}{i + 200}", "any", (1,)), 100.0, user=user)
    # an hour of one GPU just now is more than two of all 32 that were over 13 half-lives ago
    assert {start.job[:3] for start in scheduler.decide(60.0).starts} == {"ann"}


def test_the_largest_of_the_shares_counts() -> None:
    """A queue whose jobs need many cores has its share once it has that of the cores (dominant resource fairness)."""
    scheduler = cluster(queues={"a": Quota(0.5, most=0.5)})
    for i in range(20):
        scheduler.submit(GangJob(f"a{i}", "any", (1,), Demand(cpu=24.0)), 100.0, queue="a")
    assert len(scheduler.decide(60.0).starts) == 8  # 192 of 384 cores, 8 of 32 GPUs
    scheduler = cluster(queues={"a": 0.0, "b": 0.0})
    for i in range(40):
        scheduler.submit(GangJob(f"a{i}", "any", (1,), Demand(cpu=24.0)), 100.0, queue="a")
        scheduler.submit(GangJob(f"b{i}", "any", (1,), Demand(cpu=1.0)), 100.0, queue="b")
    starts = [start.job[0] for start in scheduler.decide(60.0).starts]
    # 11 / 16 of the cores and 21 / 32 of the GPUs: alike, where 16 and 16 would be so by GPUs
    assert (starts.count("a"), starts.count("b")) == (11, 21)


def test_queues_are_named_and_checked() -> None:
    """Errors name the queue and what is wrong; nothing has changed then."""
    scheduler = cluster(queues={"a": 0.5, "a.x": 0.3})
    for queue, words in (("b", "not declared"), ("a", "has queues below"), ("a.xx", "did you mean a.x")):
        with pytest.raises(InstanceError, match=words):
            scheduler.submit(GangJob("j", "any", (1,)), 1.0, queue=queue)
    for wrong, words in (
        ({"queues": {"a": 1.5}}, "sharing.queues.a.share"),
        ({"queues": {"a": 0.7, "b": 0.4}}, "sum up to 1.1"),
        ({"queues": {"a.x": 0.7}}, "'a' is not declared"),
        ({"queus": {}}, "did you mean queues"),
        ({"limits": {"*": -1}}, "limits"),
    ):
        with pytest.raises(InstanceError, match=words):
            cluster(**wrong)
    with pytest.raises(InstanceError, match="never may start"):
        cluster(limits={"*": 4}).submit(GangJob("j", "any", (8,)), 1.0, user="ann")


def test_a_snapshot_has_what_was_used() -> None:
    """A restored scheduler of queues, users and classes decides as the first does."""
    sharing = {"queues": {"a": 0.5, "b": 0.25}, "fair_users": True, "halflife": 600.0}
    one, other = cluster(**sharing), cluster(**sharing)
    for i in range(60):
        one.submit(
            GangJob(f"j{i}", "any", (1 + i % 3,)),
            100.0 + i,
            now=float(i),
            queue=("a", "b", "")[i % 3],
            user=f"u{i % 5}",
        )
        one.decide(60.0)
    one.finish(one.running[0], now=500.0)
    other.restore(one.snapshot())
    assert other.snapshot() == one.snapshot()
    first, second = one.decide(60.0, now=600.0), other.decide(60.0, now=600.0)
    assert (first.starts, first.stops) == (second.starts, second.stops)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: Sharing.of({"queues": {"a": {"shares": 0.5}}}), "queues.a.shares: is unknown; did you mean share"),
        (lambda s: Sharing.of({"limits": {"ann": {"gpu": 4}}}), "limits.ann.gpu: is unknown; did you mean gpus"),
        (lambda s: s.submit(GangJob("x", "m", (1,)), queue="c"), "queue: 'c' is not declared; there are a, b"),
        (lambda s: s.submit(GangJob("x", "m", (1,)), user=None), "user: None is not a name"),
        (lambda s: s.submit(GangJob("x", "m", (1,)), after=("x",)), "after: 'x' would come after itself"),
        (lambda s: s.submit(GangJob("x", "m", (1,), gpu_types=("V100",))), "gpu_types: the cluster has A100, not V100"),
        (lambda s: s.submit(GangJob("x", "m", (99,))), "with 99 workers never fits: 99 GPUs, more than the 8"),
        (lambda s: s.reserve(1, 10.0, 20.0, queues=["zz"]), "queues: 'zz' is not one of a, b"),
        (lambda s: s.restore(None), "snapshot: None is not what snapshot returned"),
        (lambda s: Fleet.regular(racks=0, nodes=1), "racks: 0 is not positive"),
        (lambda s: GangJob("x", "m", "4"), r"write \(4,\)"),
    ],
)
def test_errors_say_what_there_is(call: Any, words: str) -> None:
    """What is refused is named with what there is instead, and nothing has changed."""
    scheduler = Scheduler(Fleet.regular(1, 1, 8), sharing={"queues": {"a": 0.5, "b": 0.5}})
    before = scheduler.snapshot()
    with pytest.raises(InstanceError, match=words):
        call(scheduler)
    assert scheduler.snapshot() == before
