"""The reader of OpenB's lists: units, GPU requests, and each way of being broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement.job import Demand, Task
from gangplan.instances.readers.openb import read_nodes, read_pods

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,393216,8,G2\nn2,32000,131072,0,\n"
HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
POD = "p0,6500,12288,1,460,,LS\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a path for a list."""
    return tmp_path / "list.csv"


def test_nodes(file: Path) -> None:
    """Milli-cores become cores, MiB bytes, and nodes without GPUs stay."""
    file.write_text(NODES)
    fleet = read_nodes(file)
    assert fleet.names == ("n0", "n1", "n2")
    assert fleet.cpu.tolist() == [64.0, 96.0, 32.0]
    assert fleet.memory.tolist() == [2.0**38, 393216 * 2.0**20, 2.0**37]
    assert fleet.gpus.tolist() == [2, 8, 0]
    assert [fleet.gpu_types[i] for i in fleet.gpu_type[:2]] == ["P100", "G2"]


def test_pods(file: Path) -> None:
    """A fraction is a share of one GPU, several GPUs are whole, and gpu_spec names models between bars."""
    file.write_text(HEAD + POD + "p1,88000,327680,8,1000,G2|P100,BE\np2,12500,57344,0,0,,BE\n")
    pods = read_pods(file)
    assert pods.names == ("p0", "p1", "p2")
    assert pods.skipped == 0
    assert pods.tasks == (
        Task(Demand(0.46, 6.5, 12288 * 2.0**20)),
        Task(Demand(8, 88.0, 327680 * 2.0**20), ("G2", "P100")),
        Task(Demand(0, 12.5, 57344 * 2.0**20)),
    )


def test_lists_with_other_columns(file: Path) -> None:
    """Memory and gpu_spec may be absent, columns may come in any order, and names may repeat."""
    file.write_text("gpu_milli,name,extra,num_gpu,cpu_milli\n1000,a,x,1,4000\n1000,a,y,2,8000\n")
    assert read_pods(file).tasks == (Task(Demand(1, 4.0, 0.0)), Task(Demand(2, 8.0, 0.0)))


@pytest.mark.parametrize(
    ("spec", "types"),
    [
        ("", ()),
        ("nan", ()),
        ("T4", ("T4",)),
        ("V100M16|V100M32", ("V100M16", "V100M32")),
        ("P100|T4|V100M16|V100M32", ("P100", "T4", "V100M16", "V100M32")),
        ("T4||G2|", ("G2", "T4")),
    ],
)
def test_types_of_a_pod(file: Path, spec: str, types: tuple[str, ...]) -> None:
    """Types are named between bars, empty names are none as in the publisher's own tool, and nan is any type."""
    file.write_text(f"{HEAD}p0,11300,49152,1,1000,{spec},LS\np1,11300,49152,0,0,{spec},LS\n")
    assert [task.gpu_types for task in read_pods(file).tasks] == [types, ()]


def test_node_lists_with_other_columns(file: Path) -> None:
    """Columns of nodes come in any order, others are left alone, and a node without GPUs has no model or nan."""
    file.write_text(
        "model,gpu,zone,sn,memory_mib,cpu_milli\nnan,0,a,n0,1024,32000\n,0,a,n1,1024,32000\nT4,2,b,n2,1024,1000\n"
    )
    fleet = read_nodes(file)
    assert (fleet.names, fleet.gpu_types, fleet.gpus.tolist()) == (("n0", "n1", "n2"), ("T4",), [0, 0, 2])
    file.write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,1000,1,0,nan\n")
    assert read_nodes(file).n_gpus == 0


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("p1,6000,12288,1,460", "line 3: columns: the row has 5 of them, not 7"),
        ("p1,6000,12288,1,460,,LS,more", "line 3: columns: the row has 8 of them, not 7"),
        ("p1,six,12288,1,460,,LS", "line 3: cpu_milli: 'six' is not a number"),
        ("p1,nan,12288,1,460,,LS", "line 3: cpu_milli: 'nan' is not"),
        ("p1,-6,12288,1,460,,LS", "line 3: cpu_milli: '-6' is not"),
        ("p1,6000,1.5,1,460,,LS", "line 3: memory_mib: '1.5' is not"),
        ("p1,6000,12288,1,0,,LS", "line 3: gpu_milli: 0 is not from 1 to 1000"),
        ("p1,6000,12288,1,1001,,LS", "line 3: gpu_milli: 1001 is not from 1 to 1000"),
        ("p1,6000,12288,2,500,,LS", "line 3: gpu_milli: 500 is a share, of 2 GPUs"),
        (",6000,12288,1,460,,LS", "line 3: name: is empty"),
    ],
)
def test_bad_rows(file: Path, row: str, words: str) -> None:
    """A wrong row is refused with file, line and field, or left out and counted."""
    file.write_text(f"{HEAD}{POD}{row}\n{POD}")
    with pytest.raises(InstanceError) as error:
        read_pods(file)
    assert str(error.value).startswith(f"{file}: {words}")
    left = read_pods(file, skip_bad=True)
    assert (len(left.tasks), left.skipped) == (2, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "content: the file is empty"),
        ("sn,cpu_milli,memory_mib,gpu\nn0,1,1,1\n", "header: sn, cpu_milli, memory_mib, gpu lacks model"),
        ("sn,sn,cpu_milli,memory_mib,gpu,model\n", "header: 'sn' is there 2 times"),
        ("sn,cpu_milli,memory_mib,gpu,model\n", "content: has no row"),
        (f"{NODES}n0,1000,1000,1,T4\n", "line 5: sn: 'n0' is a duplicate"),
        (f"{NODES}n3,1000,1000,1,\n", "line 5: model: is missing for 1 GPUs"),
    ],
)
def test_bad_nodes(file: Path, text: str, words: str) -> None:
    """A wrong node list is refused with what is wrong where."""
    file.write_text(text)
    with pytest.raises(InstanceError) as error:
        read_nodes(file)
    assert str(error.value).startswith(f"{file}: {words}")


def test_no_file(file: Path) -> None:
    """A missing file and a binary one are refused by name."""
    with pytest.raises(InstanceError, match="no such file"):
        read_nodes(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InstanceError, match="byte 0xff at offset 0 is not UTF-8 text"):
        read_pods(file)


def test_published_lists(data: Path) -> None:
    """The published lists have the published sizes."""
    fleet = read_nodes(data / "openb" / "openb_node_list_gpu_node.csv")
    pods = read_pods(data / "openb" / "openb_pod_list_default.csv")
    assert (fleet.n_nodes, fleet.n_gpus, len(fleet.gpu_types)) == (1213, 6212, 7)
    assert (len(pods.tasks), pods.skipped) == (8152, 0)
    assert sum(task.demand.gpu for task in pods.tasks) == pytest.approx(6086.8)
