"""Whatever happens to pods and nodes, nothing is given away twice, and gangs start whole."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from gangplan import Scheduler
from gangplan.doors.kubernetes.objects import ReadingRules, node_of, pod_of
from gangplan.doors.kubernetes.reconciler import Reconciler

from .api_server import gang, node, pod

RDMA = "rdma/hca"
RARE = ["lose", "fail", "cordon", "taint", "ready", "node", "gone", "other", "restart"]


def pending(thing: Any) -> bool:
    """Return whether a pod has not ended."""
    return bool(thing["status"]["phase"] == "Pending")


class World:
    """Pods and nodes to which random things happen."""

    def __init__(self, seed: int, **given: Any) -> None:
        self.rng, self.now, self.count, self.bound, self.given = random.Random(seed), 1.8e9, 0, 0, given
        self.pods: dict[str, Any] = {}
        self.nodes = {f"n{i}": node(f"n{i}", rack=f"r{i // 2}") for i in range(4)}
        for each in self.nodes.values():
            each["status"]["allocatable"][RDMA] = "3"
        self.restart()

    def restart(self) -> None:
        """Begin anew with what the API server shows."""
        self.reconciler = Reconciler(lambda fleet: Scheduler(fleet, **self.given))

    def put(self, *things: Any) -> None:
        """Create pods."""
        for thing in things:
            self.count += 1
            thing["metadata"] |= {"uid": f"u{self.count}", "creationTimestamp": "2026-11-27T10:00:00Z"}
            self.pods[thing["metadata"]["uid"]] = thing

    def happen(self) -> None:  # noqa: PLR0912
        """Let something happen."""
        rng, name = self.rng, f"g{self.count}"
        pods, at = list(self.pods.values()), rng.choice(list(self.nodes))
        what = rng.choice(["gang"] * 4 + ["end"] * 4 + RARE)
        if what == "gang":
            more = {"nodeSelector": {"kubernetes.io/hostname": at}} if rng.random() < 0.1 else {}
            notes = {"kueue.x-k8s.io/podset-required-topology": "cloud.provider.com/topology-rack"}
            more |= {"annotations": notes} if rng.random() < 0.2 else {}
            size, gpus = rng.choice([(1, 1), (2, 4), (3, 4), (2, 8), (4, 2), (1, 0)])
            labels, priority = {"gangplan/seconds": rng.choice([10, 10**5])}, rng.choice([0, 0, 5])
            made = gang(name, size, gpus, labels=labels, priority=priority, **more)
            if rng.random() < 0.3:
                for each in made:
                    each["spec"]["containers"][0]["resources"]["requests"][RDMA] = "1"
            self.put(*made)
        elif what == "end":
            label = rng.choice(pods)["metadata"]["labels"].get("gangplan/gang") if pods else None
            for each in pods:
                if label and each["metadata"]["labels"].get("gangplan/gang") == label and "nodeName" in each["spec"]:
                    each["status"]["phase"] = "Succeeded"
        elif what in ("lose", "fail") and pods:
            each = rng.choice(pods)
            if what == "fail":
                each["status"]["phase"] = "Failed"
            else:
                del self.pods[each["metadata"]["uid"]]
            if "gangplan/gang" in each["metadata"]["labels"] and rng.random() < 0.7:  # its controller makes another
                again = pod(f"{name}-again", labels=each["metadata"]["labels"])
                again["spec"] = {key: value for key, value in each["spec"].items() if key != "nodeName"}
                self.put(again)
        elif what == "cordon":
            self.nodes[at]["spec"] = {} if self.nodes[at]["spec"] else {"unschedulable": True}
        elif what == "taint":
            taint = {"key": "x", "effect": "NoExecute"}
            self.nodes[at]["spec"] = {} if self.nodes[at]["spec"] else {"taints": [taint]}
        elif what == "ready":
            state = self.nodes[at]["status"]["conditions"][0]
            state["status"] = "True" if state["status"] != "True" else "Unknown"
        elif what == "node" and len(self.nodes) < 6:
            self.nodes[f"x{self.count}"] = node(f"x{self.count}", rng.choice([4, 8]))
            self.count += 1
        elif what == "gone" and len(self.nodes) > 2:
            del self.nodes[at]
            for uid in [uid for uid, each in self.pods.items() if each["spec"].get("nodeName") == at]:
                del self.pods[uid]
        elif what == "other" and self.free(at) >= 2:
            self.put(pod(f"{name}-other", 2, schedulerName="other", nodeName=at))
        elif what == "restart":
            self.restart()

    def free(self, at: str, what: str = "nvidia.com/gpu") -> int:
        """Return what is free on a node, by default GPUs."""
        live = [x for x in self.pods.values() if x["spec"].get("nodeName") == at and pending(x)]
        asks = [int(x["spec"]["containers"][0]["resources"]["requests"].get(what, 0)) for x in live]
        return int(self.nodes[at]["status"]["allocatable"].get(what, 0)) - sum(asks)

    def step(self) -> None:
        """Have the scheduler take a step, some of whose bindings fail, and check it."""
        self.now += self.rng.choice([0.1, 10.0, 1000.0])
        rules = ReadingRules()
        pods = {uid: pod_of(each, rules) for uid, each in self.pods.items()}
        nodes = {name: node_of(each, rules) for name, each in self.nodes.items()}
        step = self.reconciler.step(pods, nodes, self.now)
        for each in step.evicts:
            del self.pods[each.uid]
        told = Counter(each.gang for each, _ in step.binds)
        for each, at in step.binds:
            there = sum(x.gang == each.gang and x.live and bool(x.node) for x in pods.values())
            done = sum(x.gang == each.gang and not x.live for x in pods.values())
            assert nodes[at].open and not nodes[at].taints
            assert told[each.gang] + there + done >= (each.group.size or 1), each
            selector = self.pods[each.uid]["spec"].get("nodeSelector")
            assert selector in (None, {"kubernetes.io/hostname": at})
            if self.rng.random() < 0.9:
                self.pods[each.uid]["spec"]["nodeName"] = at
                self.bound += 1
            assert self.free(at) >= 0 and self.free(at, RDMA) >= 0, at


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_given_away_twice(seed: int) -> None:
    """Bindings keep to GPUs, selectors and open nodes, and a gang is bound whole; in the end all that fits runs."""
    world = World(seed, **({"price": 0.0} if seed % 2 else {}))
    for _ in range(60):
        world.happen()
        world.step()
    for each in world.nodes.values():
        each["spec"], each["status"]["conditions"][0]["status"] = {}, "True"
    for _ in range(150):
        world.step()
        for each in world.pods.values():
            if "nodeName" in each["spec"] and world.rng.random() < 0.3:
                each["status"]["phase"] = "Succeeded"
    assert world.bound > 20
    live = Counter(each["metadata"]["labels"].get("gangplan/gang") for each in world.pods.values() if pending(each))
    for each in filter(pending, world.pods.values()):
        labels = each["metadata"]["labels"]
        if "nodeName" not in each["spec"] and not (
            "nodeSelector" in each["spec"] or each["metadata"]["annotations"] or RDMA in str(each)
        ):
            assert live[labels["gangplan/gang"]] < int(labels["gangplan/size"]), each
