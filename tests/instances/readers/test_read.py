"""The readers on real files as their publishers ship them, and their options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError, PartitionPlan, dump, verify
from gangplan.instances.devices import LINK_BANDWIDTH, catalogue
from gangplan.instances.readers import parse, read

MSR = "msr-placement/throughput"

# ops, edges, accelerators as in the files; a class with one forward and one backward op makes them twins
MSR_FILES = {
    "layer-bert24_inference": (32, 55, 6, 0),
    "layer-bert24_training": (64, 110, 6, 64),
    "layer-gnmt_inference": (96, 122, 6, 0),
    "layer-gnmt_training": (192, 244, 6, 192),
    "layer-inceptionv3_inference": (326, 363, 6, 0),
    "layer-inceptionv3_training": (652, 726, 6, 652),
    "layer-resnet50_inference": (177, 193, 6, 0),
    "layer-resnet50_training": (354, 386, 6, 354),
    "operator-bert_l-3_inference": (235, 250, 3, 0),
    "operator-resnet50_inference": (604, 619, 6, 0),
}
# the human experts' splits and what they are published to reach
EXPERTS = {
    "bert24_inference": 20.084,
    "bert24_training": 49.4049,
    "gnmt_inference": 46.2085,
    "gnmt_training": 137.154,
    "inceptionv3_inference": 102.482,
    "resnet50_inference": 43.9183,
}
# table of the PAC-ML paper's five jobs: ops and edges forward and backward, one training step in ms, Input op included
PAC_ML = {
    "alexnet": (46, 47, 721.22),
    "gnmt": (96, 117, 89.42),
    "resnet18": (142, 159, 733.37),
    "squeezenet1_0": (136, 153, 760.00),
    "vgg16": (82, 83, 690.51),
}


@pytest.mark.parametrize("name", MSR_FILES)
def test_msr_counts(data: Path, name: str) -> None:
    """Ops, edges, devices and twins are as many as the file says, accelerators before the one CPU."""
    ops, edges, accelerators, twins = MSR_FILES[name]
    problem = read(data / MSR / f"{name}.json")
    graph, cluster = problem.graph, problem.cluster
    assert (graph.n_ops, graph.n_edges, (graph.twin >= 0).sum()) == (ops, edges, twins)
    assert cluster.counts().tolist() == [accelerators, 1]
    assert cluster.type_of.tolist() == [0] * accelerators + [1]
    assert [(t.name, t.host) for t in cluster.device_types] == [("accelerator", False), ("cpu", True)]
    assert cluster.device_types[0].memory == 17185374208.0


@pytest.mark.parametrize("name", EXPERTS)
def test_experts_reach_their_published_values(data: Path, name: str) -> None:
    """Reader and verifier together give the human experts' splits their published maximum loads."""
    problem = read(data / MSR / f"layer-{name}.json", variant="free")
    split = json.loads((data / f"msr-placement/experts/{name}_expert.json").read_text())
    where = {str(op): d for d, part in enumerate(split["fpgas"]) for op in part["nodes"]}
    where |= {str(op): problem.cluster.n_devices - 1 for part in split["cpus"] for op in part["nodes"]}
    device = np.array([where[op] for op in problem.graph.names])
    verdict = verify(problem, PartitionPlan(problem.graph.names, device, device))
    assert verdict.violations == ()
    assert verdict.objective == pytest.approx(EXPERTS[name], rel=1e-5)


@pytest.mark.parametrize("name", PAC_ML)
def test_pipedream_training_graphs(data: Path, name: str) -> None:
    """With its Input ops a profile gives PAC-ML's graph: as many ops and edges, the same step time."""
    ops, edges, milliseconds = PAC_ML[name]
    graph = read(data / f"pipedream/{name}.txt", keep_inputs=True).graph
    assert (graph.n_ops, graph.n_edges) == (ops, edges)
    assert graph.time.sum() * 1e3 == pytest.approx(milliseconds, abs=0.005)
    n = ops // 2
    # 1-based: the twin of i is 2n - (i - 1)
    assert graph.twin.tolist() == [2 * n - i - 1 for i in range(2 * n)]
    assert (graph.colocation == graph.colocation[graph.twin]).all()
    assert (graph.memory == graph.memory[graph.twin]).all()


def test_all_pipedream_files(data: Path) -> None:
    """All 14 profiles are read, and lose their Input ops; the largest has 1,251 ops with its own."""
    files = sorted(p for p in (data / "pipedream").glob("*.txt") if p.name != "LICENSE.txt")
    assert len(files) == 14
    kept = [read(path, training=False, keep_inputs=True).graph.n_ops for path in files]
    dropped = [read(path, training=False).graph.n_ops for path in files]
    inputs = [path.read_text().count(" -- Input") for path in files]
    assert max(kept) == 1251
    assert [a - b for a, b in zip(kept, dropped, strict=True)] == inputs


def test_pipedream_lists_are_summed(data: Path) -> None:
    """The three activations of gnmt's node7 (an LSTM and its two states) add up."""
    graph = read(data / "pipedream/gnmt.txt", training=False).graph
    i = graph.names.index("node7")
    assert graph.activation_bytes[i] == 6291456.0 + 131072.0 + 131072.0
    assert graph.memory[i] == graph.activation_bytes[i] + 50364416.0


def test_latency_files_are_read_too(data: Path) -> None:
    """The latency inputs have the same format, and eight CPU cores."""
    for path in (data / "msr-placement/latency").glob("*.json"):
        assert read(path).cluster.counts()[1] == 8


def test_format_is_told_by_content(data: Path, tmp_path: Path) -> None:
    """A file's name says nothing: each format is found under a wrong one, and with a byte-order mark."""
    json_as_text = tmp_path / "graph.txt"
    json_as_text.write_bytes((data / MSR / "layer-bert24_inference.json").read_bytes())
    text_as_json = tmp_path / "graph.json"
    text_as_json.write_bytes(b"\xef\xbb\xbf" + (data / "pipedream/vgg16.txt").read_bytes())
    assert read(json_as_text).graph.device_types == ("accelerator", "cpu")
    assert read(text_as_json).graph.n_ops == 80


PROFILE = """\
node1 -- Input0 -- forward_compute_time=9.0, backward_compute_time=0.0, activation_size=0.0, parameter_size=0.0
node3 -- Linear(4, 2) -- forward_compute_time=3.0, backward_compute_time=5.0, activation_size=8.0, parameter_size=40.0
node2 -- ReLU() -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=[10.0; 6.0], parameter_size=0
\tnode1 -- node2
\tnode2 -- node3
"""
PLACEMENT: dict[str, Any] = {
    "maxSizePerFPGA": 100.0,
    "maxFPGAs": 2,
    "maxCPUs": 1,
    "nodes": [
        {"id": 7, "supportedOnFpga": 1, "cpuLatency": 10, "fpgaLatency": 1.0, "isBackwardNode": False, "colorClass": 5},
        {"id": 9, "supportedOnFpga": 0, "cpuLatency": 20, "fpgaLatency": 2.0, "isBackwardNode": 0, "size": 30.0},
        {"id": 8, "supportedOnFpga": True, "cpuLatency": 30, "fpgaLatency": 3.0, "isBackwardNode": 1, "colorClass": 5},
    ],
    "edges": [{"sourceId": 7, "destId": 9, "cost": 0.5}, {"sourceId": 9, "destId": 8, "cost": 0.25}],
}


def test_pipedream_by_hand() -> None:
    """A profile of two ops and an input becomes a training graph in seconds and bytes."""
    graph = parse(PROFILE).graph
    assert graph.names == ("node2", "node3", "node3/backward", "node2/backward")
    assert graph.time.tolist() == [[0.001, 0.003, 0.005, 0.002]]
    assert graph.memory.tolist() == [16.0, 48.0, 48.0, 16.0]
    assert graph.parameter_bytes.tolist() == [0.0, 40.0, 0.0, 0.0]
    # forward node2 -> node3; its mirror image with the gradient of the same 16 bytes; loss at node3
    edges = list(zip(graph.source.tolist(), graph.target.tolist(), graph.edge_bytes.tolist(), strict=True))
    assert edges == [(0, 1, 16.0), (2, 3, 16.0), (1, 2, 8.0)]
    assert graph.colocation.tolist() == [0, 1, 1, 0]


def test_msr_by_hand() -> None:
    """Times, sizes, classes and twins of a placement input keep their unit and meaning."""
    problem = parse(json.dumps(PLACEMENT))
    graph = problem.graph
    assert graph.names == ("7", "9", "8")
    assert graph.time.tolist() == [[1.0, np.inf, 3.0], [10.0, 20.0, 30.0]]
    assert graph.memory.tolist() == [0.0, 30.0, 0.0]
    assert graph.colocation.tolist() == [0, -1, 0]
    assert graph.twin.tolist() == [2, -1, 0]
    assert problem.transfer().tolist() == [0.5, 0.25, 0.0]


def test_options_of_a_server() -> None:
    """A profile has no cluster: the options say which, from the catalogue unless overridden."""
    cluster = parse(PROFILE, devices=3, device_type="H100").cluster
    assert cluster.n_devices == 3
    assert cluster.device_types == (catalogue["H100"],)
    assert cluster.topology.slowest_link() == (LINK_BANDWIDTH["H100"], 0.0)
    cluster = parse(PROFILE, memory=5.0, bandwidth=7.0).cluster
    assert cluster.device_types[0].memory == 5.0
    assert cluster.topology.slowest_link() == (7.0, 0.0)


@pytest.mark.parametrize("form", ["placement", "document"])
def test_options_override_a_cluster(form: str) -> None:
    """Options replace what a file says of its accelerators, and leave its hosts alone."""
    text = json.dumps(PLACEMENT)
    text = text if form == "placement" else dump(parse(text))
    problem = parse(text, devices=5, memory=50.0, bandwidth=2.0, variant="free")
    assert problem.cluster.type_of.tolist() == [0, 0, 0, 0, 0, 1]
    assert [t.memory for t in problem.cluster.device_types] == [50.0, None]
    assert problem.transfer().tolist() == [0.25, 0.125, 0.0]
    assert problem.variant == "free"
    assert dump(parse(text, devices=None, memory=None)) == dump(parse(text))


@pytest.mark.parametrize(
    ("text", "option", "value"),
    [
        (json.dumps(PLACEMENT), "keep_inputs", True),
        (json.dumps(PLACEMENT), "device_type", "A100"),
        (dump(parse(PROFILE)), "training", False),
        (PROFILE, "sequence", 3),
        (PROFILE, "devices", 0),
        (PROFILE, "devices", 10**12),
        (PROFILE, "devices", 2.0),
        (PROFILE, "device_type", "K80"),
        (PROFILE, "memory", -1.0),
        (PROFILE, "bandwidth", float("nan")),
        (PROFILE, "variant", "loose"),
        (PROFILE, "training", "yes"),
        (json.dumps(PLACEMENT), "devices", -1),
    ],
)
def test_wrong_options_are_named(text: str, option: str, value: Any) -> None:
    """An option that does not apply, or has a wrong value, is an error that names both and is never ignored."""
    with pytest.raises(InstanceError) as caught:
        parse(text, **{option: value})
    assert caught.value.field == option
    assert repr(value) in caught.value.problem


def test_cpus_may_be_missing() -> None:
    """No CPU is fine; no device at all is not, unless the option gives some."""
    none = PLACEMENT | {"maxCPUs": 0}
    assert parse(json.dumps(none)).cluster.counts().tolist() == [2, 0]
    with pytest.raises(InstanceError, match="maxFPGAs: 0 accelerators and 0 CPUs leave no device"):
        parse(json.dumps(none | {"maxFPGAs": 0}))
    assert parse(json.dumps(none | {"maxFPGAs": 0}), devices=1).cluster.n_devices == 1


def test_repeated_edge_says_nothing_new() -> None:
    """An edge of a placement input that is given twice with one cost counts once."""
    twice = PLACEMENT | {"edges": [*PLACEMENT["edges"], PLACEMENT["edges"][0]]}
    assert dump(parse(json.dumps(twice))) == dump(parse(json.dumps(PLACEMENT)))
