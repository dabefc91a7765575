"""What Kubernetes says of pods and nodes, and what the door does: nothing is given away twice, nothing is ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gangplan import Scheduler
from gangplan.doors.kubernetes.objects import ReadingRules, node_of, pod_of
from gangplan.doors.kubernetes.reconciler import Reconciler

from ..api_server import Thing, gang, node, pod

RUNS = {"schedulerName": "default-scheduler", "nodeName": "n0"}
"""Fields of a pod that another scheduler has bound."""
WHEN = "requiredDuringSchedulingIgnoredDuringExecution"


class Cluster:
    """Pods and nodes, and the door's steps on them: bindings are carried out, and pods that are told to go leave."""

    def __init__(self, *things: Thing, **given: Any) -> None:
        self.given, self.now, self.waits = given, 1.8e9, dict[str, str]()
        self.pods, self.nodes = dict[str, Thing](), dict[str, Thing]()
        self.evicted: list[str] = []
        self.restart()
        self.put(*things)

    def restart(self) -> None:
        """Begin anew with what the API server shows."""
        self.reconciler = Reconciler(lambda fleet: Scheduler(fleet, **self.given))

    def put(self, *things: Thing) -> None:
        """Create pods and nodes."""
        for thing in things:
            meta = thing["metadata"]
            meta |= {"uid": meta["name"], "creationTimestamp": "2026-11-27T10:00:00Z"}
            (self.pods if thing["kind"] == "Pod" else self.nodes)[meta["name"]] = thing

    def step(self, seconds: float = 1.0, **sizes: Any) -> dict[str, str]:
        """Make a step, and return where pods are."""
        self.now, rules = self.now + seconds, ReadingRules()
        pods = {uid: pod_of(x, rules) for uid, x in self.pods.items()}
        given = [{name: node_of(x, rules) for name, x in self.nodes.items()}, self.now, *([sizes] if sizes else [])]
        step = self.reconciler.step(pods, *given)
        for each, at in step.binds:
            self.pods[each.uid]["spec"]["nodeName"] = at
        self.evicted += [each.uid for each in step.evicts]
        self.waits = {key.partition("/")[2]: why for key, why in step.waits.items()}
        return {uid: x["spec"]["nodeName"] for uid, x in self.pods.items() if "nodeName" in x["spec"]}


def asking(thing: Thing, **more: str) -> Thing:
    """Return a pod that asks for more."""
    thing["spec"]["containers"][0]["resources"]["requests"] |= {key.replace("__", "/"): x for key, x in more.items()}
    return thing


def having(thing: Thing, **more: str) -> Thing:
    """Return a node that has more."""
    thing["status"]["allocatable"] |= {key.replace("__", "/"): x for key, x in more.items()}
    return thing


def named(name: str, what: Callable[[str], Thing], count: int) -> list[Thing]:
    """Return some pods that are alike."""
    return [what(f"{name}{i}") for i in range(count)]


@pytest.mark.parametrize(
    ("has", "what", "count", "bound", "word"),
    [
        ({"rdma__hca": "1"}, lambda x: asking(pod(x, 1), rdma__hca="1"), 2, 1, "rdma/hca"),
        ({}, lambda x: asking(pod(x, 1), rdma__hca="1"), 1, 0, "rdma/hca"),
        ({}, lambda x: asking(pod(x), **{"nvidia.com__mig-1g.10gb": "1"}), 1, 0, "mig-1g.10gb"),
        ({"ephemeral-storage": "100Gi"}, lambda x: asking(pod(x, 1), **{"ephemeral-storage": "60Gi"}), 2, 1, "storage"),
        ({"pods": "3"}, lambda x: pod(x, 1), 5, 3, "pods"),
        ({"hugepages-2Mi": "1Gi"}, lambda x: asking(pod(x), **{"hugepages-2Mi": "700Mi"}), 2, 1, "hugepages-2Mi"),
        ({}, lambda x: pod(x, resources={"requests": {"cpu": "60"}}), 2, 1, ""),
        ({}, lambda x: pod(x, 1, overhead={"memory": "600Gi"}), 2, 1, ""),
        ({}, lambda x: pod(x, 1, initContainers=[{"name": "i", "resources": {"requests": {"x/y": "1"}}}]), 1, 0, "x/y"),
        ({}, lambda x: pod(x, containers=[{"name": "m", "ports": [{"hostPort": 80}]}]), 2, 1, "host port 80/TCP"),
        ({}, lambda x: pod(x, containers=[{"name": "m", "resources": {"limits": {"nvidia.com/gpu": 5}}}]), 2, 1, ""),
        ({}, lambda x: pod(x, 1, resourceClaims=[{"name": "gpu"}]), 1, 0, "resource claims"),
    ],
)
def test_what_is_asked_is_counted(has: Any, what: Any, count: int, bound: int, word: str) -> None:
    """Pods hold whatever they ask of a node by name, and the reason of those that wait names what is too little."""
    cluster = Cluster(having(node("n0"), **has), *named("p", what, count))
    for _ in range(4):
        where = cluster.step()
    assert len(where) == bound and len(cluster.waits) == count - bound
    assert all(word in why for why in cluster.waits.values())


def test_gangs_heed_what_is_counted_by_node() -> None:
    """Pods of a gang spread over nodes that each have one of what they ask for, and one on the wrong node moves on."""
    rdma = {"rdma__hca": "1"}
    cluster = Cluster(*(having(node(f"n{i}"), **rdma) for i in range(3)), together=False)
    cluster.put(*(asking(x, **rdma) for x in gang("a", 2, 1)), *(asking(x, **rdma) for x in gang("b", 2, 1)))
    assert len({*cluster.step().values()}) == 2 and len(cluster.step()) == 2
    for uid in [uid for uid in cluster.step() if uid.startswith(("a", "b"))]:
        cluster.pods[uid]["status"]["phase"] = "Succeeded"
    assert len(cluster.step()) == 4


@pytest.mark.parametrize(
    "other",
    [
        pod("x", 8, labels={"gangplan/seconds": "1h"}, **RUNS),
        pod("x", 8, labels={"gangplan/gang": "g", "gangplan/size": "two"}, **RUNS),
        pod("x", **RUNS, containers=[{"name": "m", "resources": {"requests": {"nvidia.com/gpu": "eight"}}}]),
        pod("x", 8, **RUNS | {"schedulerName": "gangplan"}, resourceClaims=[{"name": "c"}]),
        pod("x", 8, **RUNS | {"schedulerName": "gangplan"}, labels={"kueue.x-k8s.io/queue-name": "nowhere"}),
    ],
)
def test_a_pod_that_cannot_be_read_holds_its_gpus(other: Thing) -> None:
    """GPUs of a running pod are not given away whatever its labels say; if its requests make no sense, its node's."""
    cluster = Cluster(node("n0"), other, pod("new", 8), sharing={"queues": {"known": 0.5}})
    for _ in range(3):
        assert "new" not in cluster.step()
    cluster.put(node("n1"))
    assert [cluster.step(), cluster.step()][-1]["new"] == "n1"


def test_lost_gpus_and_replaced_seats() -> None:
    """A node whose GPUs are fewer than its pods hold gets nobody, and who was to have GPUs that others took goes on."""
    cluster = Cluster(node("n0"), pod("x", 6, **RUNS))
    cluster.step()
    having(cluster.nodes["n0"], **{"nvidia.com/gpu": "5"})
    cluster.put(pod("new", 1))
    cluster.step()
    assert "new" not in cluster.step()
    cluster.put(node("n1"))
    assert cluster.step()["new"] == "n1"


NO = {"key": "x", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("spec", "taints", "runs"),
    [
        ({}, [NO | {"key": "node.kubernetes.io/disk-pressure"}], False),
        ({}, [NO | {"key": "node.kubernetes.io/network-unavailable"}], False),
        ({}, [NO | {"effect": "NoExecute"}], False),
        ({}, [NO | {"effect": "PreferNoSchedule"}], True),
        ({"tolerations": [{"operator": "Exists"}]}, [NO, NO | {"effect": "NoExecute"}], True),
        ({"tolerations": [{"key": "x", "operator": "Exists", "effect": "NoSchedule"}]}, [NO], True),
        ({"tolerations": [{"key": "x", "effect": "NoExecute"}]}, [NO], False),
        ({"tolerations": [{"key": "x", "value": "1"}]}, [NO | {"value": "1"}], True),
        ({"tolerations": [{"key": "x", "value": "2"}]}, [NO | {"value": "1"}], False),
        ({"tolerations": [{"key": "x", "operator": "Larger", "value": "1"}]}, [NO | {"value": "1"}], False),
        ({"affinity": {"podAntiAffinity": {WHEN: [{"topologyKey": "kubernetes.io/hostname"}]}}}, [], False),
        ({"affinity": {"nodeAffinity": {WHEN: {"nodeSelectorTerms": []}}}}, [], False),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, [], False),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, [], True),
        ({"schedulingGroup": {"podGroupName": "g"}}, [], False),
        ({"annotations": {"kueue.x-k8s.io/podset-required-topology": "topology.kubernetes.io/zone"}}, [], False),
    ],
)
def test_constraints_hold_or_are_said(spec: Any, taints: list[Any], runs: bool) -> None:
    """Taints, tolerations and topology hold as Kubernetes has them, and what cannot be heeded is the reason to wait."""
    cluster = Cluster(node("n0", taints=taints), pod("p", 1, **spec))
    assert ("p" in cluster.step()) is runs and ("p" in cluster.waits) is not runs
    assert all(x["key"] in cluster.waits.get("p", x["key"]) for x in taints)


def test_cordon_is_a_taint() -> None:
    """A cordoned node takes pods that tolerate it alone, and keeps those it has with their priority."""
    cluster = Cluster(node("n0"), node("n1", unschedulable=True), pod("low", 8), price=1.0)
    cluster.step()
    cluster.nodes["n0"]["spec"]["unschedulable"] = True
    tolerates = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    cluster.put(pod("p", 8), pod("t", 8, tolerations=tolerates))
    assert cluster.step() == {"low": "n0", "t": "n1"} and "unschedulable" in cluster.waits["p"]


def test_gangs_say_what_they_lack() -> None:
    """A gang without a size, with two, or with too few or too many pods says so."""
    labels = {"gangplan/gang": "none"}
    two = [pod(f"two{i}", 1, labels={"gangplan/gang": "two", "gangplan/size": 2 + i}) for i in range(2)]
    cluster = Cluster(node("n0"), pod("none", 1, labels=labels), *two, *gang("few", 3, 1, size=4))
    cluster.put(*gang("many", 3, 1, size=2), pod("bad", 1, labels={"gangplan/gang": "bad", "gangplan/size": "-1"}))
    assert {*cluster.step()} == {"many-0", "many-1"}
    cluster.step()
    for name, words in {
        "none": "states its size", "two0": "different sizes: 2, 3", "two1": "different sizes: 2, 3",
        "few-0": "3 of the 4 pods", "many-2": "the 2 pods", "bad": "'-1' is no number of pods",
    }.items():  # fmt: skip
        assert words in cluster.waits[name]


def test_a_gang_waits_for_nodes() -> None:
    """A gang that is larger than the cluster says so, and starts once a node is added."""
    cluster = Cluster(node("n0"), *gang("a", 2, 8))
    assert cluster.step() == {} and "too few" in cluster.waits["a-0"]
    cluster.put(node("n1"))
    assert len(cluster.step()) == 2


def test_gangs_of_others_are_gangs() -> None:
    """Pod groups of Kueue and of coscheduling, sets of JobSet and of LeaderWorkerSet start whole."""
    kueue = {
        "labels": {"kueue.x-k8s.io/pod-group-name": "k"},
        "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"},
    }
    leader = {
        "labels": {"leaderworkerset.sigs.k8s.io/group-key": "l"},
        "annotations": {"leaderworkerset.sigs.k8s.io/size": "2"},
    }
    jobset, group = (
        {"labels": {"jobset.sigs.k8s.io/jobset-name": "j"}},
        {"labels": {"scheduling.x-k8s.io/pod-group": "g"}},
    )
    sizes = {"jobsets": {"team/j": 2}, "podgroups": {"team/g": 2}}

    def pods(first: bool) -> list[Thing]:
        rows = {"k": kueue, "l": leader, "j": jobset, "g": group}
        return [pod(f"{name}{first:d}", 2, **{key: {**x} for key, x in given.items()}) for name, given in rows.items()]

    cluster = Cluster(node("n0"), node("n1"), *pods(True))
    assert cluster.step(**sizes) == {} and len(cluster.waits) == 4
    cluster.put(*pods(False))
    assert len(cluster.step(**sizes)) == 8
    cluster.put(node("n2"), pod("g3", 2, **group))
    assert "g3" in cluster.step(**sizes)


def test_queues_by_label() -> None:
    """A label names the queue; one that is not declared is the reason to wait."""
    labels = [{"gangplan/queue": "a"}, {"kueue.x-k8s.io/queue-name": "b"}]
    cluster = Cluster(
        node("n0"), *(pod(f"p{i}", 1, labels=x) for i, x in enumerate(labels)), sharing={"queues": {"a": 0.5}}
    )
    assert {*cluster.step()} == {"p0"} and "'b' is not declared" in cluster.waits["p1"]


def test_who_never_preempts() -> None:
    """No pod is told to go for one whose policy is never, for a higher one without it is."""
    cluster = Cluster(node("n0"), pod("low", 8, priority=0), price=1.0)
    cluster.step()
    cluster.put(pod("calm", 8, priority=1000, preemptionPolicy="Never"))
    assert [cluster.step(10.0), cluster.step(1000.0)][-1] == {"low": "n0"} and cluster.evicted == []
    cluster.put(pod("high", 8, priority=2000))
    cluster.step(10.0)
    cluster.step()
    assert {*cluster.evicted} == {"low"} and len(cluster.evicted) == 2  # told again until the server shows it
    cluster.pods["low"]["metadata"]["deletionTimestamp"] = "2026-11-27T10:00:00Z"
    assert cluster.step() == {"low": "n0"} and len(cluster.evicted) == 2
    del cluster.pods["low"]
    assert cluster.step() == {"high": "n0"}


@pytest.mark.parametrize(("rdma", "stops"), [("8", True), ("1", False)])
def test_stops_free_what_is_counted_by_node(rdma: str, stops: bool) -> None:
    """A higher gang has others stop that hold what it asks for beside GPUs, but nobody whose end would not help it."""
    cluster = Cluster(having(node("n0"), rdma__hca="8"), pod("x", **RUNS), price=1.0)
    cluster.pods["x"] = asking(cluster.pods["x"], rdma__hca=str(8 - int(rdma)))
    cluster.put(asking(pod("low", 8), rdma__hca=rdma))
    cluster.step()
    cluster.put(asking(pod("high", 4, priority=9), rdma__hca="4"))
    cluster.step(1000.0)
    assert (cluster.evicted == ["low"]) is stops and ("hca" in cluster.waits["high"]) is not stops


@pytest.mark.parametrize("what", ["plain", "scale-in", "restart", "taint"])
def test_priorities_survive(what: str) -> None:
    """Running gangs give way to higher ones after a node is gone or tainted while a wide gang waits, and a restart."""
    cluster = Cluster(*(node(f"n{i}") for i in range(4)), price=10.0)
    long = {"gangplan/seconds": "360000"}
    for i in range(3):
        cluster.put(*gang(f"low{i}", 1, 8, labels=long))
    cluster.step()
    cluster.put(*gang("wide", 4, 8, labels={"gangplan/seconds": "3600"}))
    idle = {*cluster.nodes} - {*cluster.step().values()}
    if what == "scale-in":
        del cluster.nodes[idle.pop()]
    elif what == "restart":
        cluster.restart()
    elif what == "taint":
        cluster.nodes["n0"]["spec"]["taints"] = [NO]
    cluster.step()
    cluster.put(*gang("high", 2, 8, labels={"gangplan/seconds": "600"}, priority=1000))
    cluster.step(1000.0)
    assert [x for x in cluster.evicted if x.startswith("low")]


def test_pods_have_their_grace() -> None:
    """A gang that is told to stop holds its GPUs until its pods are gone, however soon its controller makes others."""
    cluster = Cluster(node("n0"), *gang("low", 2, 4, terminationGracePeriodSeconds=600), price=1.0)
    cluster.step()
    cluster.put(pod("high", 8, priority=9))
    cluster.step(100.0)
    scheduler = cluster.reconciler._scheduler
    assert scheduler is not None and [x.seconds for x in scheduler.stopping] == [600.0]
    assert {*cluster.evicted} == {"low-0", "low-1"} and "high" not in cluster.step()
    assert cluster.waits["high"] == "it starts after team/low"
    for name in ("low-0", "low-1"):
        cluster.pods[name]["metadata"]["deletionTimestamp"] = "2026-11-27T10:00:00Z"
    again = gang("low", 4, 4, size=2)[2:]
    cluster.put(*again)
    assert cluster.step(300.0).keys() == {"low-0", "low-1"} and "high" in cluster.waits
    del cluster.pods["low-0"]
    assert cluster.step(200.0).keys() == {"low-1"}
    del cluster.pods["low-1"]
    assert cluster.step(10.0) == {"high": "n0"}


def test_a_gang_is_told_while_it_is_bound() -> None:
    """Of a gang that is told to stop while half of it is bound, nobody is bound any more."""
    cluster = Cluster(node("n0"), *gang("low", 2, 4), price=1.0)
    cluster.step()
    del cluster.pods["low-1"]["spec"]["nodeName"]  # the binding failed
    cluster.put(pod("high", 8, priority=9))
    assert cluster.step(100.0) == {"low-0": "n0"} and cluster.evicted == ["low-0"]
    assert cluster.step() == {"low-0": "n0"} and "1 of the 2 pods" in cluster.waits["low-1"]


def test_a_half_bound_gang_is_one_again() -> None:
    """A gang that a restart found half bound may be stopped once it is whole."""
    cluster = Cluster(node("n0"), *gang("low", 2, 4), price=1.0)
    cluster.pods["low-0"]["spec"]["nodeName"] = "n0"
    assert [cluster.step(), cluster.step(), cluster.step()][-1].keys() == {"low-0", "low-1"}
    cluster.put(pod("high", 8, priority=1000))
    cluster.step(1000.0)
    assert {*cluster.evicted} == {"low-0", "low-1"}


def test_waiting_counts_from_the_pod() -> None:
    """A gang that is entered anew, since its pods changed, is due when it would have been."""
    cluster = Cluster(node("n0"), pod("x", 8, **RUNS), pod("p", 8, labels={"gangplan/seconds": "60"}))
    dues = list[float]()
    for limit in (100, 90):
        cluster.pods["p"]["spec"]["activeDeadlineSeconds"] = limit
        cluster.step(5000.0)
        assert cluster.reconciler._scheduler is not None
        dues += [request.due for request in cluster.reconciler._scheduler._state.waiting.values()]
    assert dues[0] == dues[1]
