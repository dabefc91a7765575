# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 3. Formulations
#
# A formulation turns a scheduling question into numbers that a solver reads. You will write one down, measure why
# symmetry hurts, read a solver's log, and watch a branch and bound close its tree.
#
# You need: Python, the idea of a linear programme, notebook 1. Time: 45 to 60 minutes. Six exercises, each with a
# check. Everything runs offline on a laptop. We count nodes, never seconds: nodes do not depend on what else your
# machine does.

# %%
import re
import tempfile
from itertools import combinations, permutations, product
from pathlib import Path

import highspy
import numpy as np
from ortools.sat.python import cp_model

import gangplan
from gangplan import teach
from gangplan.instances import Cluster, DeviceType, Level, OpGraph, PartitionProblem, StepProblem, TreeTopology

folder = Path(tempfile.mkdtemp())


def on(seconds, edges=(), send=1.0, fast=1, slow=0, factor=3.0, problem=PartitionProblem, **more):
    """Return ops of so many seconds on fast GPUs, and on slow ones that take `factor` times as long."""
    n, source, target = len(seconds), *np.array(edges, dtype=int).reshape(-1, 2).T
    time = np.array([seconds, [factor * x for x in seconds]], dtype=float)
    names = tuple(f"op{v}" for v in range(n))
    output = np.zeros(n)
    output[source] = send
    graph = OpGraph(names, ("fast", "slow"), time, np.ones(n), np.zeros(n), output, source, target, output[source])
    topology = TreeTopology.regular((Level("node", bandwidth=1.0),), (fast + slow,))
    kinds = np.array([0] * fast + [1] * slow, dtype=np.int32)
    types = (DeviceType("fast"), DeviceType("slow"))[: 1 + (slow > 0)]
    return problem(graph, Cluster(types, kinds, topology), **more)


# %% [markdown]
# ## A model, letter by letter
#
# Six ops of 5, 4, 4, 3, 3 and 2 seconds share equal GPUs. No edges yet, any op may go anywhere. The load of a GPU is
# the sum of its ops; the objective is the largest load. The field calls this $P\,||\,C_{\max}$.
#
# The library has this model twice: as a mixed-integer linear programme (MILP) and for CP-SAT. Both have these
# letters.

# %%
SECONDS = [5, 4, 4, 3, 3, 2]
problem = on(SECONDS, fast=3, variant="free")
teach.formulation(problem)

# %% [markdown]
# A slot is a GPU here, and $y$ is given: all are of one type. Without edges there is no $k$. (C) and (V) are for
# pipelines and for convex plans: skip them.
#
# Here is the MILP itself: columns (variables) with bounds, rows (constraints) with names. A row's name has its letter
# and what it is about: `A[op0]` says that op 0 is on one GPU.

# %%
programme = teach.milp(problem)
for row in programme.rows:
    terms = " ".join(f"{a:+g} {programme.columns[j].name}" for j, a in row.terms.items())
    print(f"{row.name:16} {row.least} <= {terms} <= {row.most}".replace("None <= ", "").replace(" <= None", ""))

# %% [markdown]
# Look at `L[gpu0]`. Its letter says: *if* the slot is of this type, the load is at most $Z$. A linear row has no
# *if*, so the row has 21 $y$ on the left and 21 on the right. With $y = 1$ they cancel; with $y = 0$ the row holds
# whatever $x$ is. Such a number is called big M. It must be at least what the row can exceed. It should not be more:
# you will see why.
#
# **Exercise 3.1.** How large is a model? Return the number of $x$ columns and the numbers of rows (A), (L) and (K) of
# the MILP, for so many ops and edges on so many equal GPUs. The op at the tail of each edge has an output to send.


# %% exercise="3.1"
def size(ops, edges, gpus):
    """Return (columns x, rows A, rows L, rows K)."""
    ...


# %% check="3.1"
@teach.Check("return four numbers: columns x, rows A, rows L, rows K")
def _(check):
    graphs = [(6, [], 3), (4, [(0, 1), (1, 2), (2, 3)], 2), (5, [(0, 4), (1, 4)], 4)]
    for ops, gpus in zip(*map(check.rng.permutation, ([3, 4, 5, 6, 7, 8], [2, 3, 4, 5, 6, 7])), strict=True):
        edges = [edge for edge in combinations(range(ops), 2) if check.rng.random() < 0.4]
        graphs.append((int(ops), edges, int(gpus)))
    for ops, edges, gpus in graphs:
        built = teach.milp(on([1] * ops, edges, fast=gpus, variant="free"))
        letters = [row.letter for row in built.rows]
        expected = (sum(c.name.startswith("x[") for c in built.columns), *(letters.count(letter) for letter in "ALK"))
        found = check.ask(size, ops, len(edges), gpus)
        assert found is not None, "size() returns nothing yet"
        assert len(found) == 4, f"four numbers, not {found}"
        words = f"{ops} ops, {len(edges)} edges, {gpus} GPUs"
        assert found[0] == expected[0], f"{words}: x is for an op and a GPU: {expected[0]} columns, not {found[0]}"
        assert found[1] == expected[1], f"{words}: (A) is for every op: {expected[1]} rows, not {found[1]}"
        assert found[2] == expected[2], f"{words}: (L) is for every GPU: {expected[2]} rows, not {found[2]}"
        assert found[3] == expected[3], f"{words}: (K) is 2 rows for an edge and a GPU: {expected[3]}, not {found[3]}"


# %% [markdown]
# ## The relaxation
#
# Drop "whole number" and a MILP becomes a linear programme, its *relaxation*. Its optimum is a lower bound: every
# plan is a solution of it. Each row has a dual: the rate at which the bound rises with the row's right side.

# %%
four = on(SECONDS, fast=4, variant="free")
relaxed = teach.relaxation(four)
print(relaxed)
print("values", {name: round(x, 3) for name, x in relaxed.values.items() if not name.startswith("y")})
print("duals ", {name: round(y, 3) for name, y in relaxed.duals.items() if name[0] in "AL"})

# %% [markdown]
# The relaxation cuts ops into pieces until all GPUs are equally busy: $21 / 4 = 5.25$. The dual of `A[op0]` is what
# op 0 adds to that, a quarter of its 5 seconds. The duals of (L) are negative, since more on the right of a $\le$
# lowers the bound. Without the sign they weigh the GPUs, and their weights add up to 1.
#
# **Exercise 3.2.** Duals are a proof that you can check without a solver. If GPU $d$ has weight $w_d \ge 0$ and
# $\sum_d w_d = 1$, then $Z \ge \sum_d w_d \cdot \text{load}_d \ge \sum_v \min_d w_d\, p_{dv}$. Return that bound.


# %% exercise="3.2"
def bound_of(weights, times):
    """Return the bound that weights of GPUs prove; times[d][v] are seconds of op v on GPU d."""
    ...


# %% check="3.2"
@teach.Check("return a number")
def _(check):
    equal = [SECONDS] * 4
    assert check.ask(bound_of, [0.25] * 4, equal) is not None, "bound_of() returns nothing yet"
    assert abs(bound_of([0.25] * 4, equal) - 5.25) < 1e-9, "equal weights on equal GPUs prove sum / 4 = 5.25"
    assert abs(bound_of([0.5, 0.5, 0, 0], equal)) < 1e-9, "a GPU of weight 0 takes all ops for nothing: this proves 0"

    def least(weights, times):
        """Return the least weighted load of all placements."""
        load = np.array(weights)[:, None] * np.array(times)
        return min(sum(load[d, v] for v, d in enumerate(on)) for on in product(*[range(len(load))] * load.shape[1]))

    draws = ((check.rng.dirichlet([1] * 3).tolist(), check.rng.uniform(1, 9, (3, 4)).tolist()) for _ in range(8))
    check.against(bound_of, least, draws, "no placement has a smaller sum of weight times load")
    mixed = on([7, 6, 2, 2, 2, 1], fast=2, slow=2, variant="free")
    solved = teach.relaxation(mixed)
    weights = [-solved.duals.get(f"L[gpu{d}]", 0.0) for d in range(4)]
    proved = bound_of(weights, [[7, 6, 2, 2, 2, 1]] * 2 + [[21, 18, 6, 6, 6, 3]] * 2)
    assert abs(proved - solved.bound) < 1e-6, f"the duals of (L) prove the bound {solved.bound:.4f}, not {proved:.4f}"


# %% [markdown]
# ## Branch and bound
#
# The relaxation has $x$ between 0 and 1. Choose one and solve two problems: $x \le 0$ and $x \ge 1$. A node is closed
# when its bound is no better than the best plan known (the *incumbent*), when it has no solution, or when its
# solution is whole. This is the search with which the library proves certificates, on the plain model.

# %%
small = on([2, 2, 2], fast=2, variant="free")
tree = list(teach.branch_and_bound(small))
teach.text_tree(tree)

# %% [markdown]
# The root says 3, the first plan found says 4. Nothing below 4 is left once every leaf says 4. The picture shows the
# same.

# %%
teach.draw_tree(tree)

# %% [markdown]
# ## Why symmetry hurts
#
# GPUs are equal. Swap the names of two and you have another solution of the model, but the same plan. The relaxation
# cannot tell them apart, and branch and bound must refute each copy.
#
# **Exercise 3.3.** A plan uses $k$ of $g$ equal GPUs. How many solutions of the model are this one plan under other
# names?


# %% exercise="3.3"
def copies(used, gpus):
    """Return how many ways there are to name the GPUs of a plan."""
    ...


# %% check="3.3"
@teach.Check("return a whole number")
def _(check):
    assert check.ask(copies, 1, 4) is not None, "copies() returns nothing yet"
    check.against(
        copies,
        lambda used, gpus: sum(1 for _ in permutations(range(gpus), used)),  # each group has a GPU of its own
        [(used, gpus) for gpus in check.rng.permutation(range(1, 8)).tolist() for used in range(1, gpus + 1)],
        "the first group has all GPUs to choose from, the next one fewer",
        close=1e-12,
    )


# %% [markdown]
# The cure: allow fewer names. The largest op is on GPU 0; the second largest on GPU 0 or 1, and so on.
# `teach.symmetry` has these rows, the same that the library's certified search and its CP-SAT models have (letter S).
# They are simple and leave some copies: with ops 0, 1 and 2 together on GPU 0 the other three GPUs still have $3! = 6$
# names.

# %%
print(*(row.name for row in teach.symmetry(four)), sep="  ")
print(f"{'ops':24} GPUs  nodes  with (S)")
for seconds in (SECONDS, [5, 5, 4, 4, 3, 3, 2]):
    for gpus in (2, 3, 4):
        one = on(seconds, fast=gpus, variant="free")
        plain, named = (len(list(teach.branch_and_bound(one, rows=rows))) for rows in ((), teach.symmetry(one)))
        print(f"{seconds!s:24} {gpus:4} {plain:6} {named:9}")

# %% [markdown]
# The more GPUs, the more copies: with four GPUs the rows save nine nodes in ten or so. But where the first relaxation
# happens to be whole, and best, the rows can only cost nodes. So measure on several instances, and never on one.
#
# **Exercise 3.4.** Break some of the symmetry yourself. Return rows that fix the op of 5 s to GPU 0 of `four`, and
# nothing else. A row is `teach.Row(name, least, most, {column number: coefficient})`; `programme.columns[j].name` is
# a column's name.


# %% exercise="3.4"
def my_rows(programme):
    """Return rows that put op0 on gpu0."""
    ...


# %% check="3.4"
@teach.Check('return a list of rows, like [teach.Row("mine", 1, None, {0: 1})]')
def _(check):
    built = teach.milp(four)
    mine = check.ask(my_rows, built)
    assert mine, "my_rows() returns no row yet"
    mine, places = list(mine), [(0,) * 6, (0, 1, 2, 3, 0, 1), *check.rng.integers(0, 4, (200, 6)).tolist()]
    for place in places:
        loads = [sum(p for p, d in zip(SECONDS, place, strict=True) if d == gpu) for gpu in range(4)]
        value = {f"x[op{v},gpu{d}]": float(place[v] == d) for v in range(6) for d in range(4)} | {"Z": max(loads)}
        value |= {f"L[gpu{d}]": load for d, load in enumerate(loads)}
        at = [value.get(column.name, 1.0) for column in built.columns]
        sums = [(row, sum(a * at[j] for j, a in row.terms.items())) for row in mine]
        kept = all(
            (row.least is None or total >= row.least - 1e-9) and (row.most is None or total <= row.most + 1e-9)
            for row, total in sums
        )
        told = f"your rows {'allow' if kept else 'forbid'} ops 0 to 5 on GPUs {[int(d) for d in place]}"
        assert kept or place[0], f"{told}: fix one op to one GPU, no more"
        assert not kept or place[0] == 0, f"{told}: op 0, of 5 s, is not on GPU 0 there"


# %% [markdown]
# ## Big M
#
# Now time: ops with inputs, one at a time on a GPU, the makespan as the objective (`step`). Its (D) has a big M for
# each pair: $s_v \ge e_u - M (\dots)$. How large must $M$ be? As large as $e_u - s_v$ can be, so the latest end in any
# plan of interest will do. A known plan makes that small: `below` is its makespan. It also closes nodes, as the
# incumbent from the start. Here are both savings, apart: $M$, and the limit on $Z$ from which it comes, from row to
# row, the incumbent from left to right.

# %%
EDGES = [(0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5)]
step = on(SECONDS, EDGES, fast=2, problem=StepProblem)
best = gangplan.solve(step, time_limit=10, workers=1).objective
for below in (None, 2 * best, best):
    some = teach.milp(step, below)
    alone, known = (len(list(teach.branch_and_bound(some, incumbent))) for incumbent in (None, best))
    bound = teach.relaxation(some).bound
    print(f"Z up to {some.columns[0].high:5.2f}: bound {bound:5.2f}, {alone:3} nodes, {known:3} with the plan known")

# %% [markdown]
# The bound of the relaxation is the longest path in all rows: half an op before, half an op after, and (D) says
# nothing. A tight $M$ helps deeper in the tree, where some order is fixed; an $M$ that is hardly smaller may cost nodes
# by chance. CP-SAT does without big M: it reasons about intervals that must not overlap.
#
# ## Cuts
#
# A *cut* is a row that all plans keep and the relaxation's solution breaks. Suppose a plan of 12 s is known for the
# mixed cluster below. Then $\sum_v p_v x_v \le 12$ on each GPU is a knapsack. Ops that do not fit together are a
# *cover*: not all of them are there.

# %%
tight = on([6, 6, 6, 1, 1, 1], fast=2, slow=2, variant="free")
print("before", teach.relaxation(tight, below=12))
for cut in teach.cuts(tight, below=12):
    print(f"{cut.after.bound:6.3f}  {cut.kind}: {cut.words}")

# %% [markdown]
# An op of 6 s takes 18 on a slow GPU, more than 12: a cover of one op. The relaxation put pieces of such ops there. The
# first cut forbids that on one slow GPU and gains nothing, since the pieces go to the other: symmetry again.
#
# **Exercise 3.5.** Find a cover yourself. Ops of 5, 4, 4, 3 and 2 seconds, 11 seconds of room, and the relaxation
# says $x = (1, 0.75, 0.5, 0.25, 0)$ on this GPU. Return a set of ops that do not fit together, such that the cut is
# violated: the sum of their $x$ is above their number less 1.

# %% exercise="3.5"
cover = None


# %% check="3.5"
@teach.Check("cover is a set of numbers of ops, such as {0, 3}")
def _(check):
    weight, point, room = [5, 4, 4, 3, 2], [1, 0.75, 0.5, 0.25, 0], 11

    assert cover is not None and len(cover), "cover is a set of numbers of ops, such as {0, 3}"
    assert {*cover} <= {0, 1, 2, 3, 4}, "ops are 0 to 4"
    assert len({*cover}) == len([*cover]), "each op is in a set once"
    taken = sum(weight[v] for v in cover)
    assert taken > room, f"these ops take {taken} s: they fit, so plans may have them all, and this cut is wrong"
    left, right = sum(point[v] for v in cover), len(cover) - 1
    assert left > right, f"the cut says {left} <= {right}, which the point keeps: take ops with x near 1"


# %% [markdown]
# ## Files for other solvers
#
# A formulation is worth more if others can solve it. The suffix chooses the format: `.lp` and `.mps` have the MILP;
# `.mzn` (MiniZinc), `.opb` (pseudo-Boolean) and `.pbtxt` (CP-SAT) have the CP-SAT model, where a condition is a
# condition.

# %%
teach.export(small, folder / "small.lp")
teach.export(small, folder / "small.mzn")
print((folder / "small.lp").read_text().split("Bounds")[0])
print(*(folder / "small.mzn").read_text().splitlines()[-4:], sep="\n")

# %% [markdown]
# If you have GLPK, CBC or MiniZinc: `glpsol --lp small.lp`, `cbc small.lp solve`, `minizinc small.mzn`. HiGHS came
# with gangplan; here it reads the file as a stranger would.

# %%
highs = highspy.Highs()
highs.setOptionValue("output_flag", False)
highs.readModel(str(folder / "small.lp"))
highs.run()
print("optimum", highs.getInfo().objective_function_value, "nodes", highs.getInfo().mip_node_count)

# %% [markdown]
# ## Reading a log
#
# CP-SAT prints a line for each plan (`#1`) and each bound (`#Bound`). A line has the seconds, then `best:` the best
# plan, and `next:[low,high]` where the objective of a better plan can still be. These are lines of a real log: a step
# problem of 22 ops on three GPUs in whole seconds, one worker, stopped after 8 s.

# %%
LOG = """
Starting search at 0.04s with 1 workers.
#Bound   0.04s best:inf   next:[11,261]   main
#1       0.04s best:65    next:[11,64]    main
#2       0.05s best:59    next:[11,58]    main
...
#18      0.12s best:24    next:[11,23]    main
#19      0.12s best:23    next:[11,22]    main
#Bound   7.52s best:23    next:[12,22]    main
"""

# %% [markdown]
# At the end nothing below 12 is possible and a plan of 23 is known. The search was stopped there, so nobody knows
# which of the values from 12 to 23 is optimal. All plans came in 0.12 s; the bound then took seven seconds to rise by
# one. That is usual: plans are found early, proofs come late.
#
# **Exercise 3.6.** Return (best plan, bound, relative gap) as of the last line of such a log. The gap is (plan -
# bound) / plan.


# %% exercise="3.6"
def read_log(log):
    """Return (best, bound, gap) of the last line that has them."""
    ...


# %% check="3.6"
@teach.Check("return three numbers: best, bound, gap")
def _(check):
    found = check.ask(read_log, LOG)
    assert found is not None, "read_log() returns nothing yet"
    assert len(found) == 3, f"three numbers, not {found}"
    assert found[0] == 23, "the best plan is after best:"
    assert found[1] == 12, "the bound is the low end of next:[low,high]; the high end is what a better plan may be"
    assert abs(found[2] - 11 / 23) < 1e-9, "the gap is a share of the plan: (23 - 12) / 23"
    for _ in range(12):
        best, low, text, seconds = 300, 10, ["", "Starting search at 0.04s with 1 workers."], 0.04
        for k in range(1, int(check.rng.integers(3, 12))):
            seconds += float(check.rng.random())
            plan = k == 1 or check.rng.random() < 0.5
            best, low = (
                (best - int(check.rng.integers(1, 20)), low) if plan else (best, low + int(check.rng.integers(1, 9)))
            )
            name, end = (f"#{k}" if plan else "#Bound"), f"best:{best:<5} next:[{low},{best - 1}]"
            text.append(f"{name:<7} {seconds:5.2f}s {end:<28} main")
        log = "\n".join([*text, *check.rng.choice(["#Done 9.00s main", "..."], int(check.rng.integers(3)))])
        right = {log: (best, low, (best - low) / best)}
        check.against(read_log, right.get, [(log,)], "that is on the last line with best: and next:", close=1e-9)


# %% [markdown]
# Now a log of your own machine. Read it from the end: status, objective, best bound, and how many branches and
# conflicts it took.

# %%
teach.export(step, folder / "step.pbtxt")
model = cp_model.CpModel()
model.proto.parse_text_format((folder / "step.pbtxt").read_text())
solver = cp_model.CpSolver()
solver.parameters.num_workers = 1
lines = []
solver.log_callback = lines.append
solver.parameters.log_search_progress, solver.parameters.log_to_stdout = True, False
solver.solve(model)
log = "\n".join(lines).splitlines()
print(
    *(line for line in log if re.match(r"#(\d|Bound|Done)", line)),
    *log[log.index("CpSolverResponse summary:") :],
    sep="\n",
)

# %% [markdown]
# ## What to take along
#
# - A formulation is a choice. The same problem has weak ones and strong ones; the relaxation's bound tells which is
#   which.
# - Symmetry multiplies the tree. Rows that forbid names remove copies; check that a best plan is left.
# - Big M as small as a known plan allows. Find a plan first: it closes nodes too.
# - Plans are found early, proofs come late. Look at both numbers in a log.
# - Count nodes, on several instances.
#
# Next: bounds and duality on placement, and a proof of your own.
