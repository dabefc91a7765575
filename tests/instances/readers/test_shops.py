"""Job shops come in and go out as step problems."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.shops import FT06
from gangplan.instances import Cluster, DeviceType, InstanceError, OpGraph, StepPlan, StepProblem, verify
from gangplan.instances.documents import content_hash
from gangplan.instances.readers import read
from gangplan.instances.readers.shops import parse_flexible, parse_jobshop, read_jobshop, write_jobshop
from gangplan.solvers.method import suite

INF = np.inf
TINY = "2 2\n0 3 1 2\n1 2 0 4\n"
"""Machine 0 has 3 + 4 = 7 s to do, and does it without a break if both jobs start at once: the optimum is 7."""
TAILLARD = "Jobs, Machines, Seeds\n2 2 840612802 398197754 9 7\nTimes\n3 2\n2 4\nMachines\n1 2\n2 1\n"


def test_fisher_and_thompson(tmp_path: Path) -> None:
    """A file comes out as it went in, and its machines, times and chains are those of the lines."""
    (tmp_path / "ft06.txt").write_text("# a comment\n" + FT06)
    problem = read_jobshop(tmp_path / "ft06.txt")
    graph = problem.graph
    assert (graph.n_ops, graph.n_edges, problem.cluster.n_devices) == (36, 30, 6)
    assert graph.time[2, 0] == 1 and np.isinf(graph.time[0, 0]) and np.isfinite(graph.time).sum() == 36
    write_jobshop(problem, tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_text() == FT06


def test_the_makespan_is_that_of_the_shop() -> None:
    """The optimum by enumeration is the one by hand, and a plan in which a machine does two things at once is none."""
    problem = parse_jobshop(TINY)
    assert suite("step").optimum(problem) == 7.0
    device = [0, 1, 1, 0]
    assert verify(problem, StepPlan(problem.graph.names, device, [0.0, 3.0, 0.0, 3.0])).objective == 7.0
    assert verify(problem, StepPlan(problem.graph.names, device, [0.0, 3.0, 0.0, 2.0])).objective is None


def test_taillard() -> None:
    """The same shop as Taillard writes it, with words or bare, is the same problem."""
    bare = "2 2\n3 2\n2 4\n1 2\n2 1\n"
    for text in (TAILLARD, bare, "# of Taillard\n" + bare):
        one, two = parse_jobshop(TINY), parse_jobshop(text)
        assert one.graph.names == two.graph.names and (one.time() == two.time()).all()


RULE = " +++++++++++++++++++++++++++++\n"
LIBRARY = (
    f" These are 2 instances.\n{RULE}\n instance ft06\n\n{RULE} Fisher and Thompson 6x6 instance\n {FT06}{RULE}"
    + (f" instance tiny\n{RULE} a title\n {TINY}{RULE}   + EOF +\n")
)


def test_read_takes_job_shops(tmp_path: Path) -> None:
    """`read` knows a job shop from other texts, and takes one of several by its name."""
    (tmp_path / "jobshop1.txt").write_text(LIBRARY)
    for name, text in (("ft06", FT06), ("tiny", TINY)):
        (tmp_path / "one.txt").write_text(text)
        one, two = read(tmp_path / "one.txt"), read(tmp_path / "jobshop1.txt", shop=name)
        assert one.objective == "step" and content_hash(one) == content_hash(two)
    for options, words in (
        ({}, "jobshop1.txt: shop: which of ft06, tiny"),
        ({"shop": "ft10"}, "shop: 'ft10' is not one of ft06, tiny"),
        ({"shop": "tiny", "devices": 3}, "devices: 3 says not of which of 2 types"),
    ):
        with pytest.raises(InstanceError, match=words):
            read(tmp_path / "jobshop1.txt", **options)
    with pytest.raises(InstanceError, match="shop: 'x' does not apply: the file has one without a name"):
        read(tmp_path / "one.txt", shop="x")


FLEXIBLE = "2 2 1.5\n2 2 1 3 2 5 1 2 2\n1 1 2 4\n"
"""Op 0 takes 3 s on machine 0 or 5 s on machine 1; machine 1 has 2 + 4 s more to do, without a break only from 0 on."""


def test_flexible(tmp_path: Path) -> None:
    """An operation of a flexible job shop has a time on each of its machines, and the optimum is that by hand."""
    (tmp_path / "a.fjs").write_text(FLEXIBLE)
    problem = read(tmp_path / "a.fjs")
    assert problem.time().tolist() == [[3.0, INF, INF], [5.0, 2.0, 4.0]] and not problem.is_shop()
    assert suite("step").optimum(problem) == 6.0
    assert content_hash(read_jobshop(tmp_path / "a.fjs")) == content_hash(problem)
    with pytest.raises(InstanceError, match=r"op 'job0\.0' has 2 work centres, not one"):
        write_jobshop(problem, tmp_path / "x.txt")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2 2\n1 1 1 3\n", "content: has 1 rows where 2 jobs are announced"),
        ("1 2\n2 1 1 3\n", "line 2: machines of operation: '' is not a whole number of 1 or more"),
        ("1 2\n1 2 1 3\n", "line 2: has 4 numbers where 6 are expected"),
        ("1 2\n1 1 1 3 4\n", "line 2: has 5 numbers where 4 are expected"),
        ("1 2\n1 1 3 3\n", "line 2: machine: '3' is not one of 1 to 2"),
        ("1 2\n1 2 1 3 1 4\n", "line 2: machine: '1' is there twice"),
        ("1 2\nx 1 1 3\n", "line 2: operations: 'x' is not a whole number"),
    ],
)
def test_bad_flexible_files(text: str, words: str) -> None:
    """An error names line, field and value."""
    with pytest.raises(InstanceError, match=words):
        parse_flexible(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# nothing\n", "content: there is no line with the numbers of jobs and machines"),
        ("2\n", "line 1: '2' is not the numbers"),
        ("2 x\n", "line 1: machines: 'x' is not a whole number of 1 or more"),
        ("0 2\n", "line 1: jobs: '0' is not a whole number of 1 or more"),
        ("2 2\n0 3 1 2\n", "content: has 1 rows where 2 jobs have 2, or 4 as Taillard has them"),
        ("1 2\n\n0 3 1\n", "line 3: has 3 numbers where 4 are expected"),
        ("1 2\n0 3 2 2\n", "line 2: machine: '2' is not one of 0 to 1"),
        ("1 2\n0 3 1.5 2\n", "line 2: machine: '1.5' is not a whole number of 0 or more"),
        ("1 2\n0 -3 1 2\n", "line 2: time: '-3' is not a number of 0 or more"),
        ("1 2\n0 nan 1 2\n", "line 2: time: 'nan' is not a number of 0 or more"),
        ("1 2\n0 inf 1 2\n", "line 2: time: 'inf' is not a number of 0 or more"),
        (
            TAILLARD.replace("Machines\n", "Mach\n"),
            "content: has 5 rows where 2 jobs have 2, or 4 as Taillard has them",
        ),
        (TAILLARD.replace("Times", "Machines").replace("s\n1", "x\n1"), "line 3: times come before machines"),
        (TAILLARD.replace("2 1\n", "2 3\n"), "line 8: machine: '3' is not one of 1 to 2"),
        (TAILLARD.replace("1 2\n2 1", "0 2\n2 1"), "line 7: machine: '0' is not a whole number of 1 or more"),
    ],
)
def test_bad_files(text: str, words: str) -> None:
    """An error names line, field and value."""
    with pytest.raises(InstanceError, match=words):
        parse_jobshop(text)


def test_an_error_names_the_file(tmp_path: Path) -> None:
    """What is wrong in a file is told with its name."""
    (tmp_path / "bad.txt").write_text("1 1\n0 x\n")
    with pytest.raises(InstanceError, match=r"bad.txt: line 2: time: 'x' is not a number"):
        read_jobshop(tmp_path / "bad.txt")


def problem(
    edges: list[tuple[int, int]], times: list[list[float]], memory: float = 0.0, size: float = 0.0
) -> StepProblem:
    """Return a problem of two ops on two machines."""
    zero = np.zeros(len(times[0]))
    names = tuple("abc"[: len(times[0])])
    ends = np.array(edges, dtype=int).reshape(-1, 2).T
    graph = OpGraph(names, ("x", "y"), times, zero + memory, zero, zero, *ends, np.full(len(edges), size))
    return StepProblem(graph, Cluster.flat((DeviceType("x"), 1), (DeviceType("y"), 1), bandwidth=1.0))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (problem([(0, 1), (0, 2)], [[1, INF, INF], [INF, 1, 1]]), "graph: op 'a' has several successors"),
        (problem([(0, 2), (1, 2)], [[1, INF, INF], [INF, 1, 1]]), "graph: op 'c' has several predecessors"),
        (problem([(0, 1)], [[1, 1], [INF, 1]]), "graph.time: op 'b' has 2 work centres, not one"),
        (problem([(0, 1)], [[1, INF], [INF, 1]], memory=5.0), "graph.memory: 5 is not 0"),
        (problem([(0, 1)], [[1, INF], [INF, 1]], size=3.0), "graph.edge_bytes: 3 is not 0"),
        (problem([(0, 1)], [[1, 1], [INF, INF]]), "graph: the job of op 'a' does not visit each machine once"),
    ],
)
def test_what_is_no_job_shop(tmp_path: Path, made: StepProblem, words: str) -> None:
    """A problem of another shape is refused, and says where."""
    with pytest.raises(InstanceError, match=words):
        write_jobshop(made, tmp_path / "x.txt")
    assert not (tmp_path / "x.txt").exists()
