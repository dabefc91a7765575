"""Kubernetes: gangs of pods on a stand-in of the API server, with what goes wrong there."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("kubernetes")
from kubernetes import client

from gangplan import Scheduler
from gangplan.doors.kubernetes.extender import Offers, serve
from gangplan.doors.kubernetes.following import FollowLoop, Server
from gangplan.doors.kubernetes.objects import NODE, ReadingRules, node_of, pod_of
from gangplan.doors.kubernetes.reconciler import Reconciler
from gangplan.doors.kubernetes.requests import quantity
from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet

from .api_server import ApiServer, gang, node, pod


def until(true: Callable[[], Any], seconds: float = 60.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """Return an API server with two nodes."""
    found = ApiServer()
    found.put(node("n0"), node("n1"))
    yield found
    found.close()


class Process:
    """The scheduler in threads, to be stopped and started again."""

    def __init__(self, server: ApiServer, make: Callable[[Fleet], Scheduler] | None = None, **given: Any) -> None:
        api = client.ApiClient(client.Configuration(host=server.url))
        self.reconciler = Reconciler(make or (lambda fleet: Scheduler(fleet, **given)))
        self.loop = FollowLoop(Server(api), self.reconciler, ReadingRules())
        self.thread = threading.Thread(target=self.loop.run, daemon=True)
        self.thread.start()

    def end(self) -> None:
        """Stop."""
        self.loop.end()
        self.thread.join(60)


@pytest.fixture
def start(server: ApiServer) -> Iterator[Callable[..., Process]]:
    """Return what starts the scheduler."""
    found: list[Process] = []

    def begin(*make: Any, **given: Any) -> Process:
        found.append(Process(server, *make, **given))
        return found[-1]

    yield begin
    for process in found:
        process.end()


def test_gangs_start_whole(server: ApiServer, start: Callable[..., Process]) -> None:
    """A gang waits until all its pods are there, goes on one node if it fits there, and others wait for its GPUs."""
    first, second = gang("a", 2, 4), gang("b", 2, 7)
    server.put(first[0])
    start()
    server.put(pod("alone", 1), *second)
    until(lambda: len(server.where()) == 3)
    assert "a-0" not in server.where()
    server.put(first[1])
    until(lambda: "conditions" in server.things["pods"]["a-1"]["status"])
    said = server.things["pods"]["a-1"]["status"]["conditions"][0]
    assert (said["type"], said["status"], said["message"]) == ("PodScheduled", "False", "gangplan: it does not fit")
    for thing in second:
        server.change("pods", thing["metadata"]["name"], lambda x: x["status"].update(phase="Succeeded"))
    until(lambda: len(server.where()) == 5)
    assert len({server.where()["a-0"], server.where()["a-1"]}) == 1


def test_racks_priorities_and_constraints(server: ApiServer, start: Callable[..., Process]) -> None:
    """A gang that asks for it is in one rack, the higher priority starts first, selectors and taints hold."""
    server.put(node("n2", rack="r1"), node("n3", rack="r1"), node("t0", taints=[{"key": "x", "effect": "NoSchedule"}]))
    notes = {"kueue.x-k8s.io/podset-required-topology": "cloud.provider.com/topology-rack"}
    rack = gang("rack", 2, 8, annotations=notes)
    place = pod("place", 8, nodeSelector={"kubernetes.io/hostname": "n1"})
    low, high = gang("low", 1, 8, priority=1), gang("high", 1, 8, priority=9)
    server.put(place)
    start()
    until(server.where)
    server.put(*rack)
    until(lambda: len(server.where()) == 3)
    server.put(*low, *high)
    until(lambda: len(server.where()) == 4)
    where = server.where()
    assert where["place"] == "n1" and {where["rack-0"], where["rack-1"]} == {"n2", "n3"}
    assert where["high-0"] == "n0" and "low-0" not in where
    server.put(pod("tolerant", 8, tolerations=[{"key": "x", "operator": "Exists"}]))
    until(lambda: server.where().get("tolerant") == "t0")


def test_nodes_come_go_and_close(server: ApiServer, start: Callable[..., Process]) -> None:
    """Nobody starts on a node that is cordoned or not ready; a new node is used, one that is gone is not."""
    server.change("nodes", "n0", lambda x: x["spec"].update(unschedulable=True))
    server.change("nodes", "n1", lambda x: x["status"]["conditions"][0].update(status="Unknown"))
    server.put(*gang("a", 2, 4))
    start()
    until(lambda: "conditions" in server.things["pods"]["a-1"]["status"])
    assert server.where() == {}
    server.put(node("n2"))
    until(lambda: [*server.where().values()] == ["n2", "n2"])
    server.remove("pods", "a-0", "a-1")
    server.remove("nodes", "n2")
    server.put(*gang("b", 4, 4))
    until(lambda: "conditions" in server.things["pods"]["b-1"]["status"])
    assert server.where() == {}
    server.change("nodes", "n0", lambda x: x["spec"].pop("unschedulable"))
    server.change("nodes", "n1", lambda x: x["status"]["conditions"][0].update(status="True"))
    until(lambda: Counter(server.where().values()) == {"n0": 2, "n1": 2})


def test_pods_of_others_hold_gpus(server: ApiServer, start: Callable[..., Process]) -> None:
    """GPUs, cores and memory that pods of another scheduler hold are not given away."""
    other = {"schedulerName": "default-scheduler"}
    server.put(pod("x", 6, nodeName="n0", **other), pod("y", 6, nodeName="n1", **other), *gang("a", 2, 4))
    start()
    server.put(pod("small", 2))
    until(lambda: "small" in server.where())
    server.remove("pods", "x", "y")
    until(lambda: len(server.where()) == 3)
    server.remove("pods", "a-0", "a-1", "small")
    huge = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "95.5"}}}]}
    server.put(pod("cores", nodeName="n0", **other, **huge), *gang("z", 4, 2))
    until(lambda: Counter(server.where().values())["n1"] == 4)


def test_a_pod_is_replaced(server: ApiServer, start: Callable[..., Process]) -> None:
    """A pod that takes the place of a failed one gets its GPUs; if the node is lost, it goes elsewhere."""
    server.put(*gang("a", 2, 8))
    start()
    until(lambda: len(server.where()) == 2)
    server.change("pods", "a-0", lambda x: x["status"].update(phase="Failed"))
    labels = {"gangplan/gang": "a", "gangplan/size": 2}
    server.put(pod("again", 8, labels=labels))
    until(lambda: server.where().get("again") == server.where()["a-0"])
    lost = server.where()["a-1"]
    server.change("nodes", lost, lambda x: x["status"]["conditions"][0].update(status="Unknown"))
    server.remove("pods", "a-1")
    server.put(node("n2"), pod("third", 8, labels=labels))
    until(lambda: server.where().get("third") == "n2")


def test_watches_are_cut(server: ApiServer, start: Callable[..., Process]) -> None:
    """What happens while a watch is cut is not missed, whether or not it can go on where it was (410)."""
    start()
    server.put(*gang("a", 2, 4))
    until(lambda: len(server.where()) == 2)
    lists = dict(server.lists)
    server.cut()
    server.put(*gang("b", 2, 2))
    until(lambda: len(server.where()) == 4)
    assert server.lists == lists
    server.remove("pods", "a-0", "a-1")
    server.cut(forget=True)
    server.put(*gang("c", 2, 4))
    until(lambda: len(server.where()) == 4)
    assert server.lists["pods"] > lists["pods"]


def test_bindings_are_refused(server: ApiServer, start: Callable[..., Process]) -> None:
    """What is refused is tried again; a pod that another scheduler was faster to bind keeps its place."""
    refused: list[str] = []

    def refuse(name: str, _: str) -> int | None:
        refused.append(name)
        return {1: 409, 2: 500}.get(len(refused))

    server.refuse = refuse
    server.put(*gang("a", 2, 8))
    start()
    until(lambda: len(server.where()) == 2)
    assert len(server.bindings) == 2 and len(refused) >= 4

    server.remove("pods", "a-0", "a-1")
    server.refuse = lambda name, _: 409 if name == "b-0" else None
    server.put(*gang("b", 2, 4))
    until(lambda: "b-1" in server.where())
    other = "n0" if server.where()["b-1"] == "n1" else "n1"
    server.change("pods", "b-0", lambda x: x["spec"].update(nodeName=other))
    server.put(pod("half", 4), pod("more", 4))
    until(lambda: {"half", "more"} <= server.where().keys())
    server.put(pod("big", 8))
    until(lambda: "conditions" in server.things["pods"]["big"]["status"])
    assert {server.where()["half"], server.where()["more"]} == {"n0", "n1"} and "big" not in server.where()


def test_restart(server: ApiServer, start: Callable[..., Process]) -> None:
    """A new process finds who runs where, completes a gang of which half was bound, and gives nothing away twice."""
    server.refuse = lambda name, _: 500 if name in ("b-1", "b-2") else None
    server.put(*gang("a", 2, 4), *gang("b", 3, 2))
    first = start()
    until(lambda: len(server.where()) == 3)
    first.end()
    server.refuse = lambda *_: None
    server.put(*gang("c", 2, 1), *gang("d", 2, 8))
    second = start()
    until(lambda: len(server.where()) == 7)
    assert not {"d-0", "d-1"} & server.where().keys()
    use = Counter[str]()
    for name, at in server.where().items():
        use[at] += int(server.things["pods"][name]["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"])
    assert max(use.values()) <= 8
    second.end()


def test_a_log_goes_on(server: ApiServer, start: Callable[..., Process], tmp_path: Path) -> None:
    """With a log the scheduler remembers, and jobs that ended meanwhile are forgotten."""
    log = tmp_path / "log.jsonl"
    server.put(*gang("a", 2, 4), *gang("b", 2, 4))
    first = start(log=log)
    until(lambda: len(server.where()) == 4)
    first.end()
    first.reconciler._scheduler = None  # which holds the log
    server.remove("pods", "b-0", "b-1")
    server.put(*gang("c", 2, 4))
    second = start(lambda fleet: Scheduler.open(log))
    until(lambda: len(server.where()) == 4)
    second.end()
    second.reconciler._scheduler = None
    again = Scheduler.open(log)
    assert sorted(name.partition(".")[0] for name in again.running) == ["team/a", "team/c"]


def test_preemption(server: ApiServer, start: Callable[..., Process]) -> None:
    """With a price of stops, a short gang has a long one deleted and told why, and starts once its GPUs are free."""
    server.put(*gang("long", 2, 8, labels={"gangplan/seconds": 10**6}))
    start(price=0.0)
    until(lambda: len(server.where()) == 2)
    failing = ["long-1"]
    server.spoil = lambda name: 500 if name in failing and not failing.remove(name) else None
    server.put(*gang("short", 2, 8, labels={"gangplan/seconds": 10}))
    until(lambda: all("deletionTimestamp" in server.things["pods"][f"long-{i}"]["metadata"] for i in (0, 1)))
    for i in (0, 1):
        said = next(
            x for x in server.things["pods"][f"long-{i}"]["status"]["conditions"] if x["type"] != "PodScheduled"
        )
        assert (said["type"], said["status"], said["reason"]) == ("DisruptionTarget", "True", "PreemptionByScheduler")
    time.sleep(0.3)
    assert "short-0" not in server.where()
    server.remove("pods", "long-0", "long-1")
    until(lambda: {"short-0", "short-1"} <= server.where().keys())


def test_sizes_of_objects(server: ApiServer, start: Callable[..., Process]) -> None:
    """A JobSet and a PodGroup say how many pods start together; a reason that was refused is said again."""
    server.things |= {"jobsets": {}, "podgroups": {}}
    meta = {"namespace": "team"}
    jobs = [{"replicas": 2, "template": {"spec": {"parallelism": 2, "completions": 2}}}, {"template": {"spec": {}}}]
    group = {"kind": "PodGroup", "metadata": {"name": "g", **meta}, "spec": {"minMember": 2}}
    server.put(group, {"kind": "JobSet", "metadata": {"name": "j", **meta}, "spec": {"replicatedJobs": jobs}})
    server.put(*(pod(f"j{i}", 1, labels={"jobset.sigs.k8s.io/jobset-name": "j"}) for i in range(4)))
    server.put(pod("g0", 1, labels={"scheduling.x-k8s.io/pod-group": "g"}))
    refused = ["g0"]
    server.spoil = lambda name: 500 if name in refused and not refused.remove(name) else None
    start()
    for name, words in (("j0", "4 of the 5 pods"), ("g0", "1 of the 2 pods")):
        until(lambda name=name, words=words: words in str(server.things["pods"][name]["status"].get("conditions")))
    assert server.where() == {} and not refused
    server.put(pod("j4", 1, labels={"jobset.sigs.k8s.io/jobset-name": "j"}))
    server.put(pod("g1", 1, labels={"scheduling.x-k8s.io/pod-group": "g"}))
    until(lambda: len(server.where()) == 7)


def test_command(server: ApiServer, tmp_path: Path) -> None:
    """`gangplan kubernetes` reads a kubeconfig, schedules, and ends with 0 at SIGTERM."""
    config = tmp_path / "config"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        f"clusters: [{{name: c, cluster: {{server: '{server.url}'}}}}]\n"
        "users: [{name: u, user: {token: t}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
    )
    command = [sys.executable, "-P", "-m", "gangplan", "kubernetes", "--kubeconfig", str(config), "--log", "k.jsonl"]
    server.put(*gang("a", 2, 8))
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until(lambda: len(server.where()) == 2)
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and server.url in out, errors
    assert (tmp_path / "k.jsonl").exists()
    done = subprocess.run(
        [*command[:5], "--kubeconfig", "none"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr


def extended(server: ApiServer, url: str, name: str, whole: bool) -> Any:
    """Do for a pod as kube-scheduler does: filter, prioritize, bind; return why it stays where there is no node."""
    nodes, it = list(server.things["nodes"].values()), server.things["pods"][name]
    asked = {"Pod": it, "Nodes": {"items": nodes}} if whole else {"pod": it, "nodenames": [*server.things["nodes"]]}
    left = httpx.post(f"{url}/filter", json=asked).json()
    names = [x["metadata"]["name"] for x in left["Nodes"]["items"]] if whole else left["NodeNames"]
    if not names:
        return left["FailedNodes"]
    scores = httpx.post(f"{url}/prioritize", json={"Pod": it, "NodeNames": [*server.things["nodes"]]}).json()
    assert [row["Host"] for row in scores if row["Score"] == 10] == names
    server.change("pods", name, lambda x: x["spec"].update(nodeName=names[0]))
    return None


@pytest.mark.parametrize("whole", [True, False])
def test_kube_scheduler_asks(server: ApiServer, whole: bool) -> None:
    """As an extender it lets no pod of a gang start before all can, sends each to its node, and binds nothing."""
    given = {"schedulerName": "default-scheduler"}
    offers, reconciler = Offers(), Reconciler(lambda fleet: Scheduler(fleet, together=False))
    answering = serve(offers, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{answering.server_port}"
    api = client.ApiClient(client.Configuration(host=server.url))
    loop = FollowLoop(Server(api), reconciler, ReadingRules("default-scheduler"), offers)
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    try:
        first = gang("a", 3, 4, **given)
        server.put(*first[:2], pod("alone", 2, **given))
        until(lambda: NODE in server.things["pods"]["alone"]["metadata"]["annotations"])
        assert {*extended(server, url, "a-0", whole)} == {"n0", "n1"}
        assert extended(server, url, "alone", whole) is None
        server.put(first[2])
        until(lambda: all(NODE in server.things["pods"][f"a-{i}"]["metadata"]["annotations"] for i in range(3)))
        assert [extended(server, url, f"a-{i}", whole) for i in range(3)] == [None] * 3
        assert max(Counter(x for name, x in server.where().items() if name != "alone").values()) == 2
        server.put(pod("full", 8, **given))
        until(lambda: "does not fit" in str(extended(server, url, "full", whole)))
        assert not server.bindings
        for body in ("[]", "{", '{"Pod": 1}', '{"Pod": {"metadata": {}}, "NodeNames": {}}', "[" * 10**5):
            assert httpx.post(f"{url}/filter", content=body).status_code == 400
        assert httpx.post(f"{url}/bind", content="{}").status_code == 404
        with pytest.raises(InstanceError, match="extender"):
            serve(offers, "127.0.0.1", answering.server_port)
    finally:
        loop.end()
        thread.join(60)
        answering.shutdown()
        answering.server_close()


def test_reading() -> None:
    """Quantities, requests with init containers, sidecars and overhead, and affinities are read as Kubernetes does."""
    assert [quantity(x) for x in ("500m", "2", "1Gi", "1e3", "64M", 3)] == [0.5, 2.0, 2.0**30, 1000.0, 64e6, 3.0]
    init = [
        {"name": "big", "resources": {"requests": {"cpu": "3"}}},
        {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
    ]
    thing = pod("p", 2, initContainers=init, overhead={"cpu": "250m"}, labels={"jobset.sigs.k8s.io/jobset-name": "s"})
    thing["metadata"] |= {"uid": "u", "creationTimestamp": "2026-11-27T10:00:00Z"}
    found = pod_of(thing, ReadingRules())
    assert found.needs == (2, 3.25, 2.0**30) and found.gang == "team/s"
    at = node_of(node("n0"), ReadingRules())
    terms = [
        ("kubernetes.io/hostname", "In", ["n0"], True),
        ("kubernetes.io/hostname", "NotIn", ["n0"], False),
        ("none", "Exists", [], False),
        ("none", "DoesNotExist", [], True),
        ("none", "Gt", ["1"], False),
    ]
    for key, operator, values, right in terms:
        term = {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        thing["spec"]["affinity"] = {"nodeAffinity": required}
        assert (not at.refuses(pod_of(thing, ReadingRules()).where)) is right
