"""Branch and bound, node by node: the tree is whole, and ends with the optimum."""

from __future__ import annotations

import pytest

from gangplan import teach
from gangplan.instances import InstanceError
from gangplan.plot.scene import Dots, Lines, Words

from .test_linear import three
from .tiny import OBJECTIVES, tiny


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_optimum(objective: str) -> None:
    """The last incumbent is the optimum, each node has a parent that branched, and no bound is below its parent's."""
    for problem, best in tiny(objective, 1 if objective == "stages" else 3):
        nodes = [*teach.branch_and_bound(problem)]
        assert nodes[-1].incumbent == pytest.approx(best, rel=1e-6)
        assert sum(node.status == "branched" for node in nodes) * 2 == len(nodes) - 1
        for node in nodes[1:]:
            assert node.parent is not None
            above = nodes[node.parent]
            assert (node.depth, above.status) == (above.depth + 1, "branched")
            assert node.bound >= above.bound * (1 - 1e-6) and node.fixed.startswith(above.column)


def test_from_a_known_plan() -> None:
    """An optimum is the incumbent of every node, and no other is found."""
    for problem, best in tiny("latency", 2):
        nodes = [*teach.branch_and_bound(problem, best)]
        assert [node.incumbent for node in nodes] == [pytest.approx(best)] * len(nodes)
        assert "incumbent" not in {node.status for node in nodes}


def test_cut_short() -> None:
    """Of a tree that may have three nodes those without a proof are left, and the whole is still drawn."""
    nodes = [*teach.branch_and_bound(three(7, 3), most=3)]
    assert [node.status for node in nodes] == ["branched", "left", "left"]
    assert teach.text_tree(nodes).count("\n") == 3
    with pytest.raises(InstanceError, match="most: 0 is not"):
        next(teach.branch_and_bound(three(), most=0))


def test_text() -> None:
    """Each node is a line below its parent, with its number, bound, incumbent and what became of it."""
    nodes = [*teach.branch_and_bound(three(), rows=teach.symmetry(three()))]
    lines = teach.text_tree(nodes).splitlines()
    assert len(lines) == len(nodes) + 1
    assert lines[1].split()[:4] == ["root", "0", "3", "-"]
    assert lines[2].startswith("  x[op")
    assert any(line.endswith("incumbent") for line in lines[1:])


def test_drawing() -> None:
    """The figure has a dot and a bound for each node, children below parents, no two in one place."""
    nodes = [*teach.branch_and_bound(three(5, 3))]
    for some in (nodes, nodes[:2]):
        drawing = teach.draw_tree(some)
        assert "<svg" in drawing._repr_html_()
        (tree,) = drawing.panels
        (dots,) = (mark for mark in tree.marks if isinstance(mark, Dots))
        (lines,) = (mark for mark in tree.marks if isinstance(mark, Lines))
        assert len({*map(tuple, dots.at.tolist())}) == len(some)
        assert all(above[1] == below[1] + 1 for above, below in lines.paths)
        texts = [text for mark in tree.marks if isinstance(mark, Words) for text in mark.texts]
        assert len(texts) == 2 * len(some) - 1 and {node.fixed for node in some} - {""} <= {*texts}
        assert {key.label for key in tree.keys} == {node.status for node in some}
    with pytest.raises(InstanceError, match="nodes: there are none"):
        teach.draw_tree([])
