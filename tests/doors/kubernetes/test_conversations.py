"""Conversations with the Kubernetes API, written from its published reference by somebody who had not read the door.

Objects are as API servers 1.31 to 1.34 send them. The server below keeps to the reference where others are lenient: a
binding of a pod that is gated, bound, told to go or another by now is refused, and an unbound pod is gone at once when
it is deleted.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

pytest.importorskip("kubernetes")
import urllib3
from kubernetes import client

from gangplan import Scheduler
from gangplan.doors.kubernetes import following
from gangplan.doors.kubernetes.objects import ReadingRules
from gangplan.doors.kubernetes.reconciler import Reconciler

Thing = dict[str, Any]
TIME = "2026-11-27T10:00:00Z"
GPU, HOST = "nvidia.com/gpu", "kubernetes.io/hostname"
DEFAULTS = [
    {"key": f"node.kubernetes.io/{x}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for x in ("not-ready", "unreachable")
]
"""Tolerations that admission adds to every pod."""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def meta(name: str, **more: Any) -> Thing:
    """Return the metadata that a server sends."""
    managed = [{"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "time": TIME,
                "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {".": {}}}}}]  # fmt: skip
    stamps = {"uid": f"uid-{name}", "creationTimestamp": TIME, "generation": 1}
    return {"name": name, **stamps, "managedFields": managed, **more}


def box(name: str = "main", limits: Thing | None = None, **more: Any) -> Thing:
    """Return a container; extended resources stand in limits and requests alike, as the server defaults them."""
    limits = {"cpu": "1", "memory": "1Gi"} | {key: str(x) for key, x in (limits or {}).items()}
    return {
        "name": name, "image": "registry.example/train:1", "imagePullPolicy": "IfNotPresent", "args": ["-e", "90"],
        "resources": {"limits": limits, "requests": dict(limits)}, "terminationMessagePath": "/dev/termination-log",
        "volumeMounts": [{"name": "kube-api-access-x", "readOnly": True, "mountPath": "/var/run/secrets"}], **more,
    }  # fmt: skip


def pod(name: str, gpus: int = 8, labels: Thing | None = None, notes: Thing | None = None, **spec: Any) -> Thing:
    """Return a pending pod; `at` binds it, `by` names its scheduler."""
    ask = {GPU: gpus} if gpus else {}
    whole: Thing = {
        "containers": [box(limits=ask)], "restartPolicy": "Never", "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst", "serviceAccountName": "default", "securityContext": {}, "enableServiceLinks": True,
        "schedulerName": spec.pop("by", "gangplan"), "priority": 0, "preemptionPolicy": "PreemptLowerPriority",
        "volumes": [{"name": "kube-api-access-x", "projected": {"sources": [], "defaultMode": 420}}],
        "tolerations": [*spec.pop("tolerations", []), *DEFAULTS],
    }  # fmt: skip
    node, status = spec.pop("at", None), {"phase": spec.pop("phase", "Pending"), "qosClass": "Guaranteed"}
    if node:
        whole["nodeName"] = node
        status |= {"hostIP": "10.0.0.1", "startTime": TIME, "conditions": [{"type": "PodScheduled", "status": "True"}]}
    if spec.get("schedulingGates"):
        gated = {"status": "False", "reason": "SchedulingGated", "message": "x"}
        status["conditions"] = [{"type": "PodScheduled"} | gated]
    more = {"deletionTimestamp": TIME, "deletionGracePeriodSeconds": 30} if spec.pop("leaves", False) else {}
    data = meta(name, namespace="team", labels=labels or {}, annotations=notes or {}, **more)
    return {"metadata": data, "spec": whole | spec, "status": status, "kind": "Pod"}


def gang(name: str, count: int, gpus: int = 8, size: int = 2, **more: Any) -> list[Thing]:
    """Return the pods of a gang."""
    labels = {"gangplan/gang": name, "gangplan/size": str(size)}
    return [pod(f"{name}-{i}", gpus, labels, **more) for i in range(count)]


def node(name: str, gpus: Any = 8, taints: Any = (), ready: str = "True", has: Any = None, **spec: Any) -> Thing:
    """Return a node as its kubelet reports it."""
    have = {"cpu": "96", "memory": "1056461784Ki", "ephemeral-storage": "95551679124", "hugepages-1Gi": "0"}
    have |= {"hugepages-2Mi": "0", "pods": "110"} | ({GPU: str(gpus)} if gpus is not None else {}) | (has or {})
    kinds = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": ready}
    beats = {"lastHeartbeatTime": TIME, "lastTransitionTime": TIME, "reason": "Kubelet", "message": "-"}
    status = {
        "capacity": have | {"cpu": "100"} | ({GPU: "8"} if gpus is not None else {}), "allocatable": have,
        "conditions": [{"type": key, "status": x} | beats for key, x in kinds.items()],
        "addresses": [{"type": "Hostname", "address": name}], "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "images": [{"names": ["registry.example/train@sha256:0"], "sizeBytes": 9}], "runtimeHandlers": [{"name": ""}],
        "nodeInfo": {"kubeletVersion": "v1.34.1", "operatingSystem": "linux", "architecture": "amd64"},
    }  # fmt: skip
    labels = {HOST: name, "kubernetes.io/os": "linux", "size": "10", "nvidia.com/gpu.product": f"H{name[-1]}00"}
    spec |= {"podCIDR": "10.0.0.0/24", "taints": list(taints)} if taints else {}
    return {"metadata": meta(name, labels=labels), "spec": spec, "status": status, "kind": "Node"}


class Talk:
    """An API server in memory, and the door that talks to it through its client."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *things: Thing, **given: Any) -> None:
        self.version, self.now = 1000, 1.8e9
        self.kinds: dict[str, dict[str, Thing]] = {"pods": {}, "nodes": {}}
        self.events: list[tuple[int, str, str, Thing]] = []
        self.asked: list[tuple[str, ...]] = []
        self.refuse: Callable[[str, str], tuple[int, str] | None] = lambda *_: None
        self.given = given
        monkeypatch.setattr(following, "time", SimpleNamespace(time=lambda: self.now, monotonic=lambda: self.now))
        self.put(*things)
        self.restart()

    def restart(self) -> None:
        """Have the door begin anew: it lists, then watches."""
        api = client.ApiClient(client.Configuration(host="http://server"))
        api.rest_client.pool_manager = self
        self.server = following.Server(api)
        self.loop = following.FollowLoop(
            self.server, Reconciler(lambda fleet: Scheduler(fleet, **self.given)), ReadingRules()
        )
        self.seen = dict.fromkeys(self.kinds, "")

    # what happens in the cluster

    def put(self, *things: Thing) -> None:
        """Create or change objects."""
        for thing in things:
            rows = self.kinds[thing["kind"].lower() + "s"]
            what = "MODIFIED" if thing["metadata"]["name"] in rows else "ADDED"
            self._note(what, thing)

    def set(self, name: str, act: Callable[[Thing], object]) -> None:
        """Change an object."""
        thing = json.loads(json.dumps(next(rows[name] for rows in self.kinds.values() if name in rows)))
        act(thing)
        self._note("MODIFIED", thing)

    def phase(self, phase: str, *names: str, **status: str) -> None:
        """Have the kubelet report a phase."""
        for name in names:
            self.set(name, lambda x: x["status"].update(phase=phase, **status))

    def gone(self, *names: str) -> None:
        """Have objects gone."""
        for name in names:
            self._note("DELETED", next(rows[name] for rows in self.kinds.values() if name in rows))

    def _note(self, what: str, thing: Thing) -> None:
        self.version += 1
        kind, name = thing["kind"].lower() + "s", thing["metadata"]["name"]
        thing = json.loads(json.dumps(thing))
        thing["metadata"]["resourceVersion"] = str(self.version)
        self.kinds[kind][name] = thing
        if what == "DELETED":
            del self.kinds[kind][name]
        self.events.append((self.version, kind, what, thing))

    # what the door does

    def turn(self, seconds: float = 1.0, rounds: int = 3) -> dict[str, str]:
        """Have the door hear what is new and act, some times; return where pods are."""
        with ThreadPoolExecutor(1) as threads:
            for _ in range(rounds):
                self.now += seconds
                for kind in self.kinds:
                    self.hear(kind)
                self.loop._step(threads)
                self.check()
                assert (self.loop._reconciler.wake or self.now + 1) > self.now, "it would not rest"
        return self.where

    def hear(self, kind: str) -> None:
        """List once, then watch from where the last watch ended, and list anew where that is too old."""
        try:
            if not self.seen[kind]:
                items, self.seen[kind] = self.server.list(kind)
                self.loop._note("LIST", kind, items)
            for what, item in self.server.watch(kind, self.seen[kind]):
                self.seen[kind] = item["metadata"]["resourceVersion"]
                if what != "BOOKMARK":
                    self.loop._note(what, kind, item)
        except following.ApiException as error:
            assert error.status == 410
            self.seen[kind] = ""
            self.hear(kind)

    @property
    def where(self) -> dict[str, str]:
        """Return the nodes of pods that are bound and have not ended."""
        live = [x for x in self.kinds["pods"].values() if x["status"]["phase"] not in ("Succeeded", "Failed")]
        return {x["metadata"]["name"]: x["spec"]["nodeName"] for x in live if x["spec"].get("nodeName")}

    def says(self, name: str, kind: str = "PodScheduled") -> str:
        """Return what a pod's condition says: status, reason and message."""
        rows = self.kinds["pods"][name]["status"].get("conditions", [])
        return next((f"{x['status']} {x.get('reason')} {x.get('message')}" for x in rows if x["type"] == kind), "")

    def check(self) -> None:
        """Have no GPU twice, by Kubernetes' own rule of what a pod asks, on nodes that did not begin so."""
        use = Counter[str]()
        for name, at in self.where.items():
            use[at] += gpus_of(self.kinds["pods"][name]["spec"])
        for name, thing in self.kinds["nodes"].items():
            assert use[name] <= 8, f"{use[name]} GPUs on {name} of {thing['status']['capacity']}"

    # HTTP, as the reference has it

    def request(self, method: str, url: str, body: Any = None, **_: Any) -> urllib3.HTTPResponse:
        """Answer a request of the official client."""
        path, query = urlparse(url).path, {key: x[0] for key, x in parse_qs(urlparse(url).query).items()}
        body = json.loads(body) if body else {}
        if method == "GET":
            kind = path.rpartition("/")[2]
            if kind not in self.kinds:
                return answer(404, {"kind": "Status", "code": 404, "reason": "NotFound"})
            return self._watch(kind, query) if "watch" in query else self._list(kind)
        found = re.fullmatch(r"/api/v1/namespaces/team/pods/([^/]+)(?:/(binding|status|eviction))?", path)
        assert found, path
        name, verb = found[1], found[2] or method.lower()
        self.asked.append((verb, name))
        if code := self._act(name, verb, body):
            return answer(code[0], {"kind": "Status", "status": "Failure", "code": code[0], "message": code[1]})
        return answer(201 if method == "POST" else 200, {"kind": "Status", "status": "Success"})

    def _list(self, kind: str) -> urllib3.HTTPResponse:
        items = [{key: x for key, x in thing.items() if key != "kind"} for thing in self.kinds[kind].values()]
        return answer(200, {"kind": "List", "items": items, "metadata": {"resourceVersion": str(self.version)}})

    def _watch(self, kind: str, query: dict[str, str]) -> urllib3.HTTPResponse:
        since = int(query["resourceVersion"])
        if since > self.version:  # the state is that of a backup
            return answer(504, {"kind": "Status", "code": 504, "message": "Too large resource version"})
        if self.events and since < self.events[0][0] - 1:
            gone = {"kind": "Status", "metadata": {}, "status": "Failure", "reason": "Expired", "code": 410}
            return answer(200, {"type": "ERROR", "object": gone | {"message": f"too old resource version: {since}"}})
        rows = [{"type": what, "object": x} for at, of, what, x in self.events if at > since and of == kind]
        mark = {"kind": kind, "metadata": {"resourceVersion": str(self.version), "creationTimestamp": None}}
        return answer(200, *rows, {"type": "BOOKMARK", "object": mark | {"spec": {"containers": None}, "status": {}}})

    def _act(self, name: str, verb: str, body: Thing) -> tuple[int, str] | None:
        thing = self.kinds["pods"].get(name)
        if thing is None:
            return 404, f'pods "{name}" not found'
        if code := self.refuse(verb, name):
            return code
        data, spec = thing["metadata"], thing["spec"]
        uid = (body.get("preconditions") or body.get("metadata") or {}).get("uid")
        if uid not in (None, data["uid"]):
            return 409, f"the UID in the precondition ({uid}) does not match"
        if verb == "binding":
            for fault, words in (
                ("deletionTimestamp" in data, "is being deleted, cannot be assigned to a host"),
                (spec.get("nodeName"), "is already assigned to node"),
                (spec.get("schedulingGates"), "has non-empty .spec.schedulingGates"),
            ):
                if fault:
                    return 409, f"pod {name} {words}"
            assert body["target"]["kind"] == "Node" and body["metadata"]["name"] == name
            self.set(name, lambda x: x["spec"].update(nodeName=body["target"]["name"]))
            self._condition(name, {"type": "PodScheduled", "status": "True", "reason": None, "message": None})
        elif verb == "status":
            for each in body["status"]["conditions"]:
                self._condition(name, each)
        elif not spec.get("nodeName"):
            self.gone(name)
        else:
            self.set(name, lambda x: x["metadata"].update(deletionTimestamp=TIME, deletionGracePeriodSeconds=30))
        return None

    def _condition(self, name: str, new: Thing) -> None:
        old = self.kinds["pods"][name]["status"].get("conditions", [])
        found = next((x for x in old if x["type"] == new["type"]), {})
        rest = [x for x in old if x["type"] != new["type"]]
        self.set(name, lambda x: x["status"].update(conditions=[*rest, {**found, **new}]))


class Body(io.BytesIO):
    """What an answer holds, closed once it is read, as a connection is."""

    def isclosed(self) -> bool:
        """Return whether all is read."""
        return self.tell() == len(self.getvalue())


def answer(code: int, *rows: Thing) -> urllib3.HTTPResponse:
    """Return an answer of a line each."""
    text = b"".join(json.dumps(x).encode() + b"\n" for x in rows)
    return urllib3.HTTPResponse(Body(text), status=code, preload_content=False, reason="-")


def gpus_of(spec: Thing) -> int:
    """Return what a pod asks by Kubernetes' rule: the more of containers with sidecars, and of initialisation."""

    def ask(each: Thing) -> int:
        return int(each.get("resources", {}).get("requests", {}).get(GPU, 0))

    sidecars, peak = 0, 0
    for each in spec.get("initContainers", []):
        if each.get("restartPolicy") == "Always":
            sidecars += ask(each)
            peak = max(peak, sidecars)
        else:
            peak = max(peak, sidecars + ask(each))
    return max(peak, sidecars + sum(map(ask, spec["containers"])))


def affine(*terms: Thing) -> Thing:
    """Return required affinity to nodes."""
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def match(key: str, how: str, *values: str, field: str = "matchExpressions") -> Thing:
    """Return a term of one requirement."""
    return {field: [{"key": key, "operator": how, **({"values": list(values)} if values else {})}]}


TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
DEAD = [{"key": "node.kubernetes.io/unreachable", "effect": x, "timeAdded": TIME} for x in ("NoSchedule", "NoExecute")]
WAITS = "Unschedulable"
SIDE = {"restartPolicy": "Always"}
PAIR = [node("n0"), node("n1")]

DECIDED: dict[str, tuple[list[Thing], dict[str, str], dict[str, str]]] = {
    # name: (what is there, where pods are then, what conditions say)
    "a plain pod": ([node("n0"), pod("p")], {"p": "n0"}, {}),
    "gated pods are left as they are": (
        [node("n0"), pod("p", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])], {}, {"p": "SchedulingGated x"}),
    "a gang with a gated pod": (
        [*PAIR, *gang("g", 1, size=2), *gang("g", 2, schedulingGates=[{"name": "x"}])[1:]], {},
        {"g-0": WAITS, "g-1": "SchedulingGated x"}),
    "a pending pod that is told to go": ([node("n0"), pod("p", leaves=True)], {}, {}),
    "a running pod that is told to go holds": (
        [node("n0"), pod("x", at="n0", phase="Running", leaves=True), pod("p")], {"x": "n0"}, {"p": WAITS}),
    "ended pods hold nothing": (
        [node("n0"), pod("x", at="n0", phase="Succeeded"), pod("y", at="n0", phase="Failed"), pod("p")],
        {"p": "n0"}, {}),
    "pods of others hold": (
        [node("n0"), pod("x", 4, at="n0", by="default-scheduler", phase="Running"), pod("p", 5), pod("q", 4)],
        {"x": "n0", "q": "n0"}, {"p": WAITS}),
    "pods of others are not touched": ([node("n0"), pod("x", by="default-scheduler")], {}, {"x": ""}),
    "a user names the node": ([node("n0"), pod("x", at="n0"), pod("p")], {"x": "n0"}, {"p": WAITS}),
    "a tainted GPU node": ([node("n0", taints=[TAINT]), pod("p")], {}, {"p": WAITS}),
    "its toleration": (
        [node("n0", taints=[TAINT]), pod("p", tolerations=[{"key": GPU, "operator": "Exists"}])], {"p": "n0"}, {}),
    "an unreachable node": ([node("n0", taints=DEAD, ready="Unknown"), pod("p")], {}, {"p": WAITS}),
    "a toleration of all is none of dead nodes": (
        [node("n0", taints=DEAD, ready="Unknown"), node("n1"), pod("p", tolerations=[{"operator": "Exists"}])],
        {"p": "n1"}, {}),
    "a toleration of another value": (
        [node("n0", taints=[TAINT]), pod("p", tolerations=[{"key": GPU, "operator": "Equal", "value": "absent",
                                                            "effect": "NoSchedule"}])], {}, {"p": WAITS}),
    "terms are alternatives": (
        [*PAIR, pod("p", affinity=affine(match(HOST, "In", "n7"), match(HOST, "In", "n1")))], {"p": "n1"}, {}),
    "an empty term is no node": ([*PAIR, pod("p", affinity=affine({}))], {}, {"p": WAITS}),
    "no key is not in": ([*PAIR, pod("p", affinity=affine(match("none", "NotIn", "x"), ), nodeSelector={HOST: "n1"})],
                         {"p": "n1"}, {}),
    "greater": ([*PAIR, pod("p", affinity=affine(match("size", "Gt", "9")))], {"p": "n0"}, {}),
    "not greater": ([*PAIR, pod("p", affinity=affine(match("size", "Gt", "10")))], {}, {"p": WAITS}),
    "a daemon's pod": (
        [*PAIR, pod("p", affinity=affine(match("metadata.name", "In", "n1", field="matchFields")))], {"p": "n1"}, {}),
    "an init container asks for more": (
        [node("n0"), pod("p", 4, initContainers=[box("i", {GPU: 6})]), pod("q", 3)], {"p": "n0"}, {"q": WAITS}),
    "a sidecar asks beside": (
        [node("n0"), pod("p", 6, initContainers=[box("s", {GPU: 1}, **SIDE)]), pod("q", 2)], {"p": "n0"},
        {"q": WAITS}),
    "an init container after a sidecar": (
        [node("n0"), pod("p", 1, initContainers=[box("s", {GPU: 2}, **SIDE), box("i", {GPU: 5})]), pod("q", 2)],
        {"p": "n0"}, {"q": WAITS}),
    "an init container before a sidecar": (
        [node("n0"), pod("p", 1, initContainers=[box("i", {GPU: 5}), box("s", {GPU: 2}, **SIDE)]), pod("q", 3)],
        {"p": "n0", "q": "n0"}, {}),
    "overhead of a runtime": (
        [node("n0"), pod("p", 1, overhead={"cpu": "95500m", "memory": "1Gi"}, runtimeClassName="kata")], {},
        {"p": WAITS}),
    "pod-level resources": (
        [node("n0"), pod("p", 1, resources={"requests": {"cpu": "95", "memory": "2Gi"}}), pod("q", 1), pod("r", 1)],
        {"p": "n0", "q": "n0"}, {"r": WAITS}),
    "a claim": (
        [node("n0"), pod("p", 0, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one"}])], {},
        {"p": WAITS}),
    "GPUs that are ill": ([node("n0", 7), pod("p"), pod("q", 7)], {"q": "n0"}, {"p": WAITS}),
    "no device plugin yet": ([node("n0", None), pod("p")], {}, {"p": WAITS}),
    "fewer pods than GPUs": (
        [node("n0", has={"pods": "2"}), pod("x", 0, at="n0", by="default-scheduler", phase="Running"), pod("p", 1),
         pod("q", 1)], {"x": "n0", "p": "n0"}, {"q": WAITS}),
    "quantities": (
        [node("n0", has={"cpu": "1500m", "memory": "3e9"}), pod("p", 1, containers=[
            box(limits={"cpu": "0.5", "memory": "1500M", GPU: 1})]), pod("q", 1, containers=[
                box(limits={"cpu": "1k", "memory": "1", GPU: 1})])], {"p": "n0"}, {"q": WAITS}),
    "without GPUs": ([node("n0", None), pod("p", 0)], {"p": "n0"}, {}),
    "incomplete gang": ([*PAIR, *gang("g", 2, size=3)], {}, {"g-0": WAITS, "g-1": WAITS}),
    "a pod that is called as a gang": (
        [*PAIR, pod("g", 1), *gang("g", 2, 1)], {}, {"g": "different sizes: 1, 2", "g-0": "different sizes: 1, 2"}),
    "gang too large": ([*PAIR, *gang("g", 3, size=3)], {}, {"g-0": WAITS, "g-2": WAITS}),
    "a gang beside a pod": ([*PAIR, pod("x", 1, at="n1", phase="Running", by="other"), *gang("g", 2)], {"x": "n1"},
                            {"g-0": WAITS, "g-1": WAITS}),
}  # fmt: skip


@pytest.mark.parametrize("name", DECIDED)
def test_what_is_decided(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods are bound, left or told why as the reference has it, and nothing is said twice."""
    things, where, says = DECIDED[name]
    talk = Talk(monkeypatch, *things)
    assert talk.turn() == where
    for each, words in says.items():
        assert words in talk.says(each) if words else not talk.says(each), (each, talk.says(each))
    asked = len(talk.asked)
    talk.turn(10.0)
    assert talk.asked[asked:] == []


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Talk]:
    """Return what begins a conversation."""
    return lambda *things, **given: Talk(monkeypatch, *things, **given)


Begin = Callable[..., Talk]


def test_a_gate_opens(talk: Begin) -> None:
    """A gang of Kueue starts once its last gate is gone."""
    notes = {"kueue.x-k8s.io/pod-group-total-count": "2"}
    labels = {"kueue.x-k8s.io/pod-group-name": "k", "kueue.x-k8s.io/managed": "true"}
    gates = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}], "notes": notes, "labels": labels}
    it = talk(*PAIR, pod("a", **gates), pod("b", **gates))
    assert it.turn() == {}
    it.set("a", lambda x: x["spec"].pop("schedulingGates"))
    assert it.turn() == {}
    it.set("b", lambda x: x["spec"].pop("schedulingGates"))
    assert sorted(it.turn().values()) == ["n0", "n1"]
    assert [verb for verb, _ in it.asked].count("binding") == 2


def test_a_pod_of_the_same_name(talk: Begin) -> None:
    """A pod that a StatefulSet makes anew under its old name is another: it is told why, and is bound as itself."""
    it = talk(node("n0", 4), pod("web-0", 8))
    it.turn()
    assert "Unschedulable" in it.says("web-0")
    it.gone("web-0")
    new = pod("web-0", 8)
    new["metadata"]["uid"] = "uid-second"
    it.put(new)
    it.turn()
    assert "Unschedulable" in it.says("web-0")
    it.gone("web-0")
    third = pod("web-0", 4)
    third["metadata"]["uid"] = "uid-third"
    it.put(third)
    assert it.turn() == {"web-0": "n0"}
    it.gone("web-0")
    fourth = pod("web-0", 4)
    fourth["metadata"]["uid"] = "uid-fourth"
    it.put(fourth)
    assert it.turn() == {"web-0": "n0"}


def test_refused_bindings(talk: Begin) -> None:
    """A binding that is refused is tried again, without haste, and the pod says why it waits."""
    it = talk(node("n0"), pod("p"))
    it.refuse = lambda verb, _: (403, "denied by policy x") if verb == "binding" else None
    it.turn(rounds=5)
    assert it.where == {} and "policy x" in it.says("p")
    it.refuse = lambda *_: None
    assert it.turn() == {"p": "n0"}


def test_half_a_gang_is_refused(talk: Begin) -> None:
    """The rest of a gang is bound later, and its GPUs are nobody's meanwhile."""
    it = talk(*PAIR, *gang("g", 2))
    it.refuse = lambda verb, name: (500, "request timed out") if (verb, name) == ("binding", "g-1") else None
    assert it.turn().keys() == {"g-0"}
    it.put(pod("p", priority=100))
    assert it.turn().keys() == {"g-0"}
    it.refuse = lambda *_: None
    assert it.turn().keys() == {"g-0", "g-1"}


def test_a_binding_whose_answer_is_lost(talk: Begin) -> None:
    """A binding that was carried out though its answer was an error is not made twice, nor given elsewhere."""
    it = talk(*PAIR, pod("p"))

    def late(verb: str, name: str) -> tuple[int, str] | None:
        if verb == "binding":
            it.refuse = lambda *_: None
            it.set(name, lambda x: x["spec"].update(nodeName="n1"))
            return 504, "timed out"
        return None

    it.refuse = late
    assert it.turn() == {"p": "n1"}
    it.put(pod("q"))
    assert it.turn() == {"p": "n1", "q": "n0"} and [verb for verb, _ in it.asked].count("binding") == 2


def test_the_kubelet_rejects(talk: Begin) -> None:
    """A pod that the kubelet rejects frees its GPUs; the one that its job makes instead is bound, and ends are ends."""
    it = talk(node("n0"), *gang("g", 2, 4))
    it.turn()
    it.phase("Failed", "g-1", reason="UnexpectedAdmissionError", message="Allocate failed, which is unexpected")
    again = pod("g-1b", 4, {"gangplan/gang": "g", "gangplan/size": "2"})
    it.put(again)
    assert it.turn() == {"g-0": "n0", "g-1b": "n0"}
    it.phase("Succeeded", "g-0")
    it.put(pod("p", 8))
    assert it.turn() == {"g-1b": "n0"}
    it.phase("Succeeded", "g-1b")
    assert it.turn() == {"p": "n0"}


def test_the_past_is_gone(talk: Begin) -> None:
    """After 410 all is listed anew: what came and went meanwhile is known, and nothing is bound twice."""
    it = talk(*PAIR, *gang("g", 2))
    it.turn()
    it.gone("g-0", "g-1")
    it.put(pod("p"), pod("q"), pod("r"))
    it.events.clear()
    it.put(node("n2", 0))
    it.version += 50
    it.events = [(it.version, "nodes", "MODIFIED", it.kinds["nodes"]["n2"])]
    assert len(it.turn()) == 2 and "Unschedulable" in it.says("r")


def test_a_device_plugin_registers(talk: Begin) -> None:
    """GPUs that a node gets after it joined are used."""
    it = talk(node("n0", None), pod("p"))
    assert it.turn() == {}
    it.put(node("n0", 8))
    assert it.turn() == {"p": "n0"}


def test_gpus_fall_ill(talk: Begin) -> None:
    """A node whose GPUs fall ill below what its pods hold gets nobody, whoever leaves, until there is room."""
    it = talk(node("n0"), pod("a", 4), pod("b", 4))
    it.turn()
    it.put(node("n0", 4), pod("p", 2))
    assert it.turn().keys() == {"a", "b"}
    it.phase("Succeeded", "a")
    assert it.turn().keys() == {"b"}
    it.put(node("n0", 6))
    assert it.turn().keys() == {"b", "p"}


def test_a_node_is_lost(talk: Begin) -> None:
    """Pods of an unreachable node hold it until they are gone, and are not bound anew elsewhere by themselves."""
    it = talk(*PAIR, *gang("g", 2))
    it.turn()
    it.put(node("n0", taints=DEAD, ready="Unknown"), pod("p"))
    assert it.turn().keys() == {"g-0", "g-1"}
    lost = next(name for name, at in it.where.items() if at == "n0")
    it.set(lost, lambda x: x["metadata"].update(deletionTimestamp=TIME))  # the taint manager
    it.turn()
    it.put(node("n0"))
    assert it.turn().keys() == {"g-0", "g-1"}
    it.gone(lost)
    it.put(pod("g-new", 8, {"gangplan/gang": "g", "gangplan/size": "2"}))
    assert it.turn()["g-new"] == "n0" and "p" not in it.where


def preempted(it: Talk, *victims: str) -> None:
    """Assert that all victims are told why before they are deleted, once each."""
    asked = [row for row in it.asked if row[1] in victims and row[0] in ("status", "delete")]
    assert asked == [(verb, name) for name in victims for verb in ("status", "delete")]
    assert all("True PreemptionByScheduler" in it.says(name, "DisruptionTarget") for name in victims)


def test_preemption(talk: Begin) -> None:
    """A higher gang has a lower one told why and deleted, whole, and starts once the last of its pods is gone."""
    it = talk(*PAIR, *gang("low", 2, priority=-10), price=1.0)
    it.turn()
    it.put(*gang("high", 2, priority=100000, priorityClassName="urgent"))
    assert it.turn(1000.0).keys() == {"low-0", "low-1"}
    preempted(it, "low-0", "low-1")
    it.gone("low-0")
    assert it.turn().keys() == {"low-1"}
    it.gone("low-1")
    assert it.turn().keys() == {"high-0", "high-1"}


def test_nobody_is_deleted(talk: Begin) -> None:
    """Without a price, for a pod that never preempts, for one that would not fit anyway, nobody is deleted."""
    for given, more in (
        ({}, {}),
        ({"price": 1.0}, {"preemptionPolicy": "Never"}),
        ({"price": 1.0}, {"nodeSelector": {HOST: "n7"}}),
        ({"price": 1.0}, {"tolerations": [], "overhead": {"cpu": "97"}}),
        ({"price": 1.0}, {"schedulingGates": [{"name": "x"}]}),
    ):
        it = talk(node("n0"), pod("low"), **given)
        it.turn()
        it.put(pod("high", priority=1000, **more))
        assert it.turn(1000.0) == {"low": "n0"} and ("delete", "low") not in it.asked, more


def test_who_is_first(talk: Begin) -> None:
    """Of pods that wait the higher priority is first, whatever came before."""
    waiting = pod("low"), pod("mid", priority=5), pod("high", priority=9)
    it = talk(node("n0"), pod("x", at="n0", phase="Running"), *waiting)
    it.turn()
    for each in ("x", "high", "mid"):
        it.phase("Succeeded", each)
        it.turn()
    assert [name for verb, name in it.asked if verb == "binding"] == ["high", "mid", "low"]


def test_a_restart_in_the_middle(talk: Begin) -> None:
    """A door that begins anew while pods are told to go neither binds over them nor tells them again."""
    it = talk(node("n0"), *gang("low", 2, 4, priority=0), price=1.0)
    it.turn()
    it.put(pod("high", priority=1000))
    it.turn(1000.0)
    asked = len(it.asked)
    it.restart()
    assert it.turn().keys() == {"low-0", "low-1"}
    assert not [row for row in it.asked[asked:] if row[0] == "delete"]
    it.gone("low-0", "low-1")
    assert it.turn() == {"high": "n0"}


def test_a_node_leaves_and_returns(talk: Begin) -> None:
    """What still is bound to a node that was deleted holds its GPUs when the node is registered again."""
    it = talk(*PAIR, *gang("g", 2))
    it.turn()
    it.gone("n0")
    it.put(pod("p", 1))
    assert it.turn().keys() == {"g-0", "g-1"}
    it.put(node("n0"))
    assert it.turn().keys() == {"g-0", "g-1"} and "Unschedulable" in it.says("p")


def test_deletion_is_refused(talk: Begin) -> None:
    """Nobody is bound over a pod that may not be deleted."""
    it = talk(node("n0"), pod("low"), price=1.0)
    it.turn()
    it.refuse = lambda verb, _: (403, "admission webhook denied the request") if verb == "delete" else None
    it.put(pod("high", priority=1000))
    assert it.turn(1000.0) == {"low": "n0"}
    it.refuse = lambda *_: None
    it.turn()
    it.gone("low")
    assert it.turn() == {"high": "n0"}


def test_a_jobset_restarts(talk: Begin) -> None:
    """Pods of the next attempt start while one of the last is stuck on a dead node, and as one gang."""
    it = talk(*PAIR, node("n2"), *gang("g", 2))
    it.turn()
    dead = it.where["g-0"]
    it.put(node(dead, taints=DEAD, ready="Unknown"))
    it.set("g-0", lambda x: x["metadata"].update(deletionTimestamp=TIME))
    it.phase("Failed", "g-1")
    it.put(*(pod(f"g-{i}b", 8, {"gangplan/gang": "g", "gangplan/size": "2"}) for i in (0, 1)))
    where = it.turn()
    assert sorted(where) == ["g-0", "g-0b", "g-1b"] and len({*where.values()}) == 3


def test_another_is_faster(talk: Begin) -> None:
    """GPUs that another scheduler gives away in the same moment are not given away by the next step."""
    it = talk(*PAIR)
    it.turn()
    it.put(*gang("g", 2))
    it.refuse = lambda verb, _: (500, "-") if verb == "binding" else None
    it.turn(rounds=1)
    it.put(pod("x", 2, at="n0", by="default-scheduler", phase="Running"))
    it.refuse = lambda *_: None
    assert it.turn() == {"x": "n0"} and "Unschedulable" in it.says("g-0")
    it.gone("x")
    assert it.turn().keys() == {"g-0", "g-1"}


def test_what_a_watch_says(talk: Begin) -> None:
    """Bookmarks count, and after any failure that is one of the watch itself, 410 or 504, all is listed anew."""
    it = talk(node("n0"), pod("a"))
    news: list[Any] = []

    def late() -> None:
        it.events.clear()
        it.put(pod("c"))
        it.version += 9
        it.events = [(it.version, "pods", "MODIFIED", it.kinds["pods"]["c"])]

    def restored() -> None:
        it.version -= 5
        it.events.clear()

    idle = [lambda: None]
    acts = [lambda: it.put(pod("b")), lambda: it.put(node("n1")), late, *idle, restored, *idle, *idle]

    def wait(_: float) -> None:
        if acts:
            acts.pop(0)()

    ended = SimpleNamespace(is_set=lambda: not acts, wait=wait)
    following._follow(it.server, "pods", SimpleNamespace(put=news.append), ended)  # type: ignore[arg-type]
    said = [what if what != "LIST" else [x["metadata"]["name"] for x in item] for what, _, item in news]
    assert said == [["a"], "ADDED", ["a", "b", "c"], ["a", "b", "c"]]
