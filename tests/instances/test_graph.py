"""What an op graph refuses beyond single entries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gangplan import InstanceError, OpGraph
from gangplan.instances.graph import components, one_machine, strong_components, with_backward


def graph(time: float = 1.0, memory: float = 0.0) -> OpGraph:
    """Return two ops without an edge."""
    none = np.zeros(0)
    same = {"colocation": [-1, -1], "twin": [-1, -1], "backward": [False, False]}
    ends = {"source": none.astype(int), "target": none.astype(int), "edge_bytes": none}
    sizes = {"memory": [memory, memory], "parameter_bytes": [0, 0], "activation_bytes": [0, 0]}
    return OpGraph(names=("a", "b"), device_types=("gpu",), time=[[time, time]], **sizes, **ends, **same)


@pytest.mark.parametrize("field", ["time", "memory"])
def test_sums_stay_within_floats(field: str) -> None:
    """Values that are finite one by one are refused where their sum would not be."""
    assert graph(**{field: 1e299}).n_ops == 2
    with pytest.raises(InstanceError, match=f"{field}: the values add up"):
        graph(**{field: 1e308})


FORWARD = OpGraph(
    names=("c", "a", "b"),
    device_types=("gpu", "cpu"),
    time=np.array([[3.0, 1.0, 2.0], [np.inf, 10.0, 20.0]]),
    memory=np.array([3.0, 1.0, 2.0]),
    parameter_bytes=np.array([30.0, 10.0, 20.0]),
    activation_bytes=np.array([7.0, 5.0, 6.0]),
    source=np.array([1, 2]),
    target=np.array([2, 0]),
    edge_bytes=np.array([5.0, 6.0]),
    colocation=np.array([4, -1, 4]),
)


def test_with_backward_by_hand() -> None:
    """Classes are kept and shared by the twins, lone ops get new ones, and the loss is at the last op of the order."""
    graph = with_backward(FORWARD, FORWARD.time * 2, FORWARD.memory / 2)
    assert graph.names == ("c", "a", "b", "b/backward", "a/backward", "c/backward")
    # a -> b -> c, though c is listed first; so c/backward -> b/backward -> a/backward, joined by c -> c/backward
    edges = list(zip(graph.source.tolist(), graph.target.tolist(), graph.edge_bytes.tolist(), strict=True))
    assert edges == [(1, 2, 5.0), (2, 0, 6.0), (3, 4, 5.0), (5, 3, 6.0), (0, 5, 7.0)]
    assert graph.colocation.tolist() == [4, 5, 4, 4, 5, 4]
    assert graph.twin.tolist() == [5, 4, 3, 2, 1, 0]
    assert graph.time.tolist() == [[3.0, 1.0, 2.0, 4.0, 2.0, 6.0], [np.inf, 10.0, 20.0, 40.0, 20.0, np.inf]]
    assert graph.memory.tolist() == [3.0, 1.0, 2.0, 1.0, 0.5, 1.5]
    assert graph.parameter_bytes.tolist() == [30.0, 10.0, 20.0, 0.0, 0.0, 0.0]


def test_an_op_named_like_a_twin_is_refused() -> None:
    """Names stay unique: an op that is already called so is an error, not a silent merge."""
    one = OpGraph(
        names=("a", "a/backward"),
        device_types=("gpu",),
        time=np.ones((1, 2)),
        memory=np.zeros(2),
        parameter_bytes=np.zeros(2),
        activation_bytes=np.zeros(2),
        source=np.array([0]),
        target=np.array([1]),
        edge_bytes=np.zeros(1),
    )
    with pytest.raises(InstanceError, match="'a/backward' is a duplicate"):
        with_backward(one, one.time, one.memory)


@pytest.mark.parametrize("field", ["colocation", "twin", "backward"])
def test_what_is_not_given_is_none(field: str) -> None:
    """An op has no class, no twin and no backward pass unless that is said."""
    assert (getattr(replace(graph(), **{field: ()}), field) == {"backward": False}.get(field, -1)).all()
    with pytest.raises(InstanceError, match=field):
        replace(graph(), **{field: [[], 0]})


def test_one_machine_by_hand() -> None:
    """Jackson's schedule interrupts a job for one with a longer tail."""
    # A (0, 4, 0); B comes at 1, takes 2, has 5 behind: B runs 1-3 and ends at 8, A is done at 6
    assert one_machine([(0.0, 4.0, 0.0), (1.0, 2.0, 5.0)]) == 8.0
    # together they take 6 from 0 on, and the shorter tail is 3
    assert one_machine([(0.0, 4.0, 3.0), (1.0, 2.0, 3.0)]) == 9.0
    assert one_machine([]) == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_components_are_scipys(seed: int) -> None:
    """Both kinds of components are those of SciPy, numbered by first nodes, or the reached before who reaches."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    a, b = rng.integers(0, n, (2, int(rng.integers(0, 2 * n))))
    graph = coo_array((np.ones(len(a)), (a, b)), shape=(n, n))
    assert components(a, b, n).tolist() == connected_components(graph, directed=False)[1].tolist()
    label, other = strong_components(a, b, n), connected_components(graph, connection="strong")[1]
    assert ((label[:, None] == label) == (other[:, None] == other)).all()
    assert (label[a] >= label[b]).all()
