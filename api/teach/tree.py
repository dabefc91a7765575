"""Branch and bound, node by node: the library's own, which proves bounds of certificates, on a plain MILP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_counts
from gangplan.solvers.certificates.branch import BranchSearch

from ..plot.colours import GREY, INK
from ..plot.scene import Axis, Dots, Key, Lines, Mark, Panel, Scene, Words
from .names import Text
from .programme import Programme, Row, milp

_COLOURS = {
    "branched": "#9aa5b1",
    "bound": "#d9822b",
    "infeasible": "#c23030",
    "incumbent": "#0f9960",
    "left": "#ffffff",
}


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node as it was looked at.

    Attributes:
        number: nodes before it.
        parent: the number of its parent, `None` of the root.
        fixed: what distinguishes it from its parent, such as ``x[op3,gpu1] <= 0``; empty for the root.
        bound: the value of its relaxation; infinite if that has no solution. Seconds, or what the goal is in.
        incumbent: what the best plan known after it costs, `None` if none is.
        status: ``branched``; closed by its ``bound``; ``infeasible``; ``incumbent``, in whole numbers and better than
            what was known; ``left`` for want of nodes.
        column: what it branches on, empty for a leaf.
    """

    number: int
    parent: int | None
    depth: int
    fixed: str
    bound: float
    incumbent: float | None
    status: str
    column: str = ""


def branch_and_bound(
    problem: Any, below: float | None = None, rows: Sequence[Row] = (), most: int = 2000
) -> Iterator[TreeNode]:
    """Solve the plain MILP of a problem by branch and bound, and yield each node once it was looked at.

    It is the search that makes certificates (`gangplan.solvers.certificates.branch`): the node with the least bound
    first, the column by trying some (strong branching), relaxations by HiGHS. A node is closed once its duals, rounded
    to rationals, prove in exact arithmetic what the incumbent costs, up to 1e-7 of that.

    Args:
        problem: a problem with a plain model, or a `Programme`.
        below: objective of a plan that is known, the incumbent to start from; see `gangplan.teach.milp`.
        rows: to be added, such as `gangplan.teach.symmetry` or the rows of cuts.
        most: number of nodes; those beyond are ``left``.
    """
    require_counts(most=most)
    programme = problem if isinstance(problem, Programme) else milp(problem, below)
    programme = replace(programme, rows=(*programme.rows, *rows))
    dear = sum(max(c.cost * c.low, c.cost * c.high) for c in programme.columns)
    known, goal = below, dear * programme.unit if below is None else below
    if not goal > 0:
        raise InstanceError("problem", "any plan costs nothing")
    model = programme.exact(goal / programme.unit)
    search = BranchSearch(model, Fraction(goal), lambda: inf, most)
    unit, names = float(model.unit), [column.name for column in programme.columns]
    said: dict[int, tuple[int | None, int, str]] = {0: (None, 0, "")}
    for number, step in enumerate(search.steps()):
        parent, depth, fixed = said.pop(step.node)
        bound, status, column = step.value * unit, "left", ""
        if step.split is not None:
            j, k, below, beyond = step.split
            status, column = "branched", names[j]
            said[below] = number, depth + 1, f"{column} <= {k}"
            said[beyond] = number, depth + 1, f"{column} >= {k + 1}"
        elif step.infeasible:
            status, bound = "infeasible", inf
        elif step.closed:
            status = "bound"
        elif step.whole:
            status, known = "incumbent", bound
            search.aim(Fraction(bound))
        yield TreeNode(number, parent, depth, fixed, bound, known, status, column)


def text_tree(nodes: Iterable[TreeNode]) -> Text:
    """Return a tree as text: a line a node, below its parent and further in, with its number in the order seen."""
    nodes = [*nodes]
    wide = max((2 * node.depth + len(node.fixed or "root") for node in nodes), default=0)
    lines = [f"{'node':<{wide}}  number      bound  incumbent"]
    for node in _in_order(nodes):
        name = "  " * node.depth + (node.fixed or "root")
        known = "-" if node.incumbent is None else f"{node.incumbent:.6g}"
        says = f"branches on {node.column}" if node.column else node.status
        lines.append(f"{name:<{wide}}  {node.number:>6} {node.bound:>10.6g} {known:>10}  {says}")
    return Text("\n".join(lines))


def draw_tree(nodes: Iterable[TreeNode]) -> Scene:
    """Draw a tree: a dot a node with its bound, colour by status, beside what it fixes.

    It takes trees that were cut short: draw `nodes[:k]` for each k and one sees it grow.
    """
    nodes = [*nodes]
    if not nodes:
        raise InstanceError("nodes", "there are none to draw")
    place = _places(nodes)
    leaves, depth = max(x for x, _ in place.values()) + 1, 1 - min(y for _, y in place.values())
    steps = [(place[n.parent], place[n.number], n.fixed) for n in nodes if n.parent is not None]
    fixed = []
    for (at, above), (x, y), words in steps:
        down = 0.4 if "<=" in words else 0.65  # so that those of two children are not on one line
        fixed.append((at + down * (x - at), above + down * (y - above), words, 7.0, INK))
    bounds = ["-" if node.bound == inf else f"{node.bound:.3g}" for node in nodes]
    dots = Dots(np.array([place[n.number] for n in nodes]), [_COLOURS[n.status] for n in nodes], 20.0, edge=INK)
    marks: list[Mark] = [Lines([step[:2] for step in steps], GREY), dots, Words(dots.at, bounds, 7.0)]
    keys = [Key(status, (c,), "o") for status, c in _COLOURS.items() if any(node.status == status for node in nodes)]
    width = max(5.0, min(24.0, 1.3 * leaves + 0.5))
    axes = Axis(-0.6, leaves - 0.4), Axis(0.4 - depth, 0.4)
    panel = Panel("tree", *axes, marks, keys, left=0.25, width=width - 0.5, height=1.1 * depth, below=0.1, bare=True)
    panel = panel.add(Words.of(fixed, halo=["#ffffff"] * len(fixed)))
    return Scene("Branch and bound", f"{len(nodes)} nodes", [[panel]], width)


def _children(nodes: Iterable[TreeNode]) -> Callable[[TreeNode | None], list[TreeNode]]:
    under: dict[int | None, list[TreeNode]] = {}
    for node in nodes:
        under.setdefault(node.parent, []).append(node)
    return lambda node: sorted(under.get(None if node is None else node.number, []), key=lambda n: ">=" in n.fixed)


def _in_order(nodes: Sequence[TreeNode]) -> Iterator[TreeNode]:
    """Yield each node before its children, those up to k before those beyond."""
    children = _children(nodes)
    todo = children(None)
    while todo:
        node = todo.pop()
        yield node
        todo += reversed(children(node))


def _places(nodes: Sequence[TreeNode]) -> dict[int, tuple[float, float]]:
    """Return where each node is drawn: leaves side by side, others above the middle of their children."""
    children, place, leaves = _children(nodes), dict[int, tuple[float, float]](), 0
    for node in reversed([*_in_order(nodes)]):
        below = [place[child.number][0] for child in children(node)]
        place[node.number] = sum(below) / len(below) if below else float(-leaves), float(-node.depth)
        leaves += not below
    left = min(x for x, _ in place.values())
    return {number: (x - left, y) for number, (x, y) in place.items()}
