# %% [markdown]
# # 4. Bounds and duality, and a proof of your own
#
# Prices prove how good a placement can be at most: if gangs pay for their places, no node may hold more than it is paid
# for. You set prices by hand, find the best ones by a linear programme, and submit a proof to a checker that trusts
# nobody.
#
# **Time**: 60 minutes. **Before**: notebooks 1 and 3, linear programmes. **Needs** the library and SciPy.

# %%
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np

import gangplan
from gangplan import Fleet, GangJob, PlacementProblem, SpeedModel, teach

GANGS = {"vision": 3, "language": 3}
SLOWER = {
    ("vision", "vision"): 0.1,
    ("vision", "language"): 0.5,
    ("language", "vision"): 0.7,
    ("language", "language"): 0.2,
}
NODES = 3
NAMES = [f"{model} {i}" for model, count in GANGS.items() for i in range(1, count + 1)]

models = tuple(GANGS)
speeds = SpeedModel(
    models,
    ("A100",),
    compute=[[0.1, 0.2]],
    gradient=[1e8, 1e9],
    overlap=[0.5, 0.5],
    host=[[SLOWER[a, b] for b in models] for a in models],
    gpu=np.ones((2, 2)),
)
gangs = tuple(GangJob(name, name.split()[0], workers=(2,)) for name in NAMES)
problem = PlacementProblem(Fleet.regular(racks=1, nodes=NODES, gpus=4), gangs, speeds)
print(problem)

# %% [markdown]
# ## The problem
#
# Six **gangs** of two workers each are placed on three nodes of four GPUs: three train a vision model, three a language
# model. Gangs on one node share its host and slow one another down. `SLOWER[a, b]` is what a gang of model `b` adds to
# the time of a gang of model `a` beside it, as a share: a vision gang beside a language gang takes 1.5 times as long.
# The objective is the sum of these **slowdowns**; a gang alone on a node has slowdown 1. A gang may also be split, a
# worker here and a worker there; we leave that out, the checker below does not, and all numbers here are the same.
# (The first cell tells the library all this; of its other numbers, those of networks and GPUs, none matters here.)
#
# Here is a placement, gang by gang, in the order of the list. Point at a GPU to see who holds it.


# %%
def plan_of(nodes):
    """Return the plan that has each gang whole on a node, given in the order of the gangs."""
    gpu, grants = [0] * NODES, []
    for node in nodes:
        grants += [gpu[node], gpu[node] + 1]
        gpu[node] += 2
    rows = list(range(len(nodes)))
    return gangplan.PlacementPlan(
        tuple(NAMES), rows, list(nodes), [2] * len(rows), [0] * len(rows), np.repeat(rows, 2), grants
    )


plan = plan_of([0, 1, 2, 0, 1, 2])
print(gangplan.verify(problem, plan).objective)
gangplan.plot(problem, plan, panel="cluster")

# %% [markdown]
# **4.1** What do gangs on one node cost together? Write `cost(node)`: `node` is a list of models, like
# `["vision", "language"]`; return the sum of the slowdowns of its gangs.


# %% exercise="4.1"
def cost(node): ...


# %% check="4.1"
@teach.Check("return a number")
def _(check):
    assert check.ask(cost, ["vision"]) is not None, "return a number"
    assert check.ask(cost, []) == 0 and cost(["vision"]) == 1, (
        "a gang alone has slowdown 1, an empty node costs nothing"
    )
    assert cost(["language"]) == 1, "a gang alone has slowdown 1, of whichever model"
    assert np.isclose(cost(["vision", "vision"]), 2.2), "each of the two takes 1.1 times as long"
    assert np.isclose(cost(["vision", "language"]), 3.2), "1 + 0.5 for the one, 1 + 0.7 for the other"
    for _ in range(8):
        nodes = check.rng.permutation(np.repeat(range(NODES), 2)).tolist()
        held = [[name.split()[0] for name, n in zip(NAMES, nodes, strict=True) if n == node] for node in range(NODES)]
        found, true = (
            sum(
                check.number(check.ask(cost, node[:: check.rng.choice([-1, 1])]), f"the cost of {node}")
                for node in held
            ),
            gangplan.verify(problem, plan_of(nodes)).objective,
        )
        assert np.isclose(found, true), f"the verifier says that nodes {held} cost {true:.4f}, your costs {found:.4f}"


# %% [markdown]
# ## Prices
#
# Let every gang pay a **price** $p_j$ for its place, whatever the placement. A node with gangs $S$ costs $c(S)$ and is
# paid $\sum_{j \in S} p_j$. Let $\mu$ be the smallest difference of cost and pay, over *all* sets $S$ that fit on a
# node:
#
# $$ \mu = \min_S \Big( c(S) - \sum_{j \in S} p_j \Big). $$
#
# The empty set is one of them, so $\mu$ is at most 0. Take any placement. Each of its $N$ nodes costs at least its pay
# plus $\mu$. Add up; each gang is on one node, so each price is there once:
#
# $$ \text{objective} = \sum_{\text{nodes}} c(S) \ge \sum_j p_j + N \mu. $$
#
# The right side knows nothing of the placement: it is a bound, for any prices at all. This is **weak duality**.
#
# **4.2** Write `node_price(prices)`, the $\mu$ of prices such as `{"vision": 1.0, "language": 1.2}`. A node holds no
# gang, one or two; `combinations_with_replacement` is imported. Write the costs anew if 4.1 is still open.


# %% exercise="4.2"
def node_price(prices): ...


# %% check="4.2"
@teach.Check("return a number")
def _(check):
    assert check.ask(node_price, {"vision": 0.0, "language": 0.0}) is not None, "return a number"
    assert node_price({"vision": 0.0, "language": 0.0}) == 0, "if nobody pays, the empty node is the least"
    assert np.isclose(node_price({"vision": 1.0, "language": 1.0}), 0), "two gangs cost more than the 2 that they pay"
    assert np.isclose(node_price({"vision": 1.3, "language": 1.4}), -0.4), "two vision gangs cost 2.2 and pay 2.6"
    assert np.isclose(node_price({"vision": 0.5, "language": 2.0}), -1.6), "two language gangs cost 2.4 and pay 4"
    assert np.isclose(node_price({"vision": 1.1, "language": 1.2}), -0.2), "a language gang alone costs 1 and pays 1.2"

    def least(prices):
        """Return the least cost less pay of the pairs of gangs, the second of which may be nobody."""
        slower = {pair: 1 + SLOWER[pair] + SLOWER[pair[::-1]] for pair in SLOWER} | {(a, None): 0 for a in GANGS}
        pays = prices | {None: 0}
        return min(0, *(1 + more - pays[a] - pays[b] for (a, b), more in slower.items()))

    near = ((0.5, 0.5), (1.1, 0.6), (0.6, 1.15), (2.0, 0.5), (0.5, 2.0), (1.8, 1.9), (1.1, 1.15))
    draws = [dict(zip(models, check.rng.normal(at, 0.05).tolist(), strict=True)) for at in near * 3]
    check.against(node_price, least, [(prices,) for prices in draws], "the least of no gang, one, and two gangs")


# %% [markdown]
# ## The checker
#
# A proof is a document, a dict. `gangplan.verify_bound` reads it with the problem, computes $\mu$ itself, with split
# gangs too and in exact numbers, and returns what the prices prove. Nobody's word is taken. Prices must not be below 0.


# %%
def proof(prices, threshold=0.0):
    """Return a certificate, a proof as a document; `threshold` and `steps`, the length of a search, are for 4.6."""
    each = [str(Fraction(float(prices[name.split()[0]])).limit_denominator(10**6)) for name in NAMES]
    exact = str(Fraction(float(threshold)).limit_denominator(10**6))
    return {"argument": "covers", "threshold": exact, "prices": each, "steps": 10_000}


def proved(prices, threshold=0.0):
    """Return what the checker says."""
    return float(gangplan.verify_bound(problem, proof(prices, threshold)))


for prices in ({"vision": 0.5, "language": 0.5}, {"vision": 0.5, "language": 2.0}):
    print(prices, "prove", round(proved(prices), 3))

# %% [markdown]
# **4.3** By hand: find prices that prove 6.5 or more. Prices of 1 each prove 6, since no gang is faster than alone.
# Raise a price: each 0.1 more gains 0.3, and each 0.1 by which $\mu$ falls costs 0.3. Which sets pull $\mu$ down?

# %% exercise="4.3"
answer = {"vision": 1.0, "language": 1.0}


# %% check="4.3"
@teach.Check('give a price of each model, like {"vision": 1.0, ...}')
def _(check):
    assert isinstance(answer, dict) and set(answer) == set(GANGS), (
        'give a price of each model, like {"vision": 1.0, ...}'
    )
    v, w = (check.number(answer[model], f"the price of {model}") for model in GANGS)
    assert min(v, w) >= 0, "the checker takes no prices below 0"
    short = {"an empty node": 0, "a vision gang alone": 1 - v, "a language gang alone": 1 - w}
    short |= {"two vision gangs": 2.2 - 2 * v, "two language gangs": 2.4 - 2 * w, "one gang of each": 3.2 - v - w}
    value, who = proved({"vision": v, "language": w}), min(short, key=short.get)
    falls = f"mu is {short[who]:.2f} for {who}: can prices rise by more than mu falls?"
    assert value >= 6.5, f"they prove {value:.3f}; {falls}"


# %% [markdown]
# The bound as a function of the two prices, as the checker says: concave, with corners where another set of gangs
# becomes the cheapest. A line is a price of language; point at it. Diamonds are the greatest bound.

# %%
from gangplan.plot.scene import Axis, Dots, Key, Lines, Panel, Scene

axis, marks, keys, spots = np.linspace(0.8, 1.8, 21), [], [], []
shades = ("#56b4e9", "#009e73", "#cc79a7", "#e69f00", "#d55e00", "#7a5c9e")
for y, shade in zip(axis[::4], shades, strict=True):
    line = [(x, proved({"vision": x, "language": y})) for x in axis]
    texts = [f"vision {x:.2f}, language {y:.2f}: {bound:.3f}" for x, bound in line]
    marks += [Lines([line], shade, 1.6), Dots(np.array(line), shade, 5.0, texts=texts)]
    keys.append(Key(f"language {y:.1f}", (shade,), "line"))
    spots += zip(line, texts, strict=True)
top = max(bound for (_, bound), _ in spots)
best, texts = zip(*(spot for spot in spots if spot[0][1] > top - 1e-9), strict=True)
marks.append(Dots(np.array(best), "black", 9.0, "D", texts=list(texts)))
keys.append(Key(f"maximum {top:.2f}", ("black",), "D"))
ticks = [(bound, f"{bound:g}") for bound in (5.0, 5.5, 6.0, 6.5)] + [(top, f"{top:.2f}")]
up = Axis(top - 2, top + 0.2, "what the prices prove, slowdowns", ticks=ticks, grid=True)
along = Axis(0.78, 1.82, "price of a vision gang, slowdowns")
Scene("Prices", "what they prove", [[Panel("bound", along, up, marks, keys)]])

# %% [markdown]
# ## The best prices
#
# The greatest such bound is a linear programme. Its variables are a price for each model and $\mu$:
#
# $$ \max \sum_m n_m p_m + N \mu \quad \text{with} \quad \sum_m S_m\, p_m + \mu \le c(S) \text{ for each } S,
# \quad \mu \le 0. $$
#
# $n_m$ counts the gangs of model $m$, and $S_m$ those in the set $S$. It is the **dual** of the programme that fills
# nodes with *fractions* of sets, at least cost: such a set is a **pattern**, and the fractions are what column
# generation computes.
#
# **4.4** Return the best prices as a dict. `scipy.optimize.linprog` minimises; its variables are at least 0 unless
# `bounds` says otherwise; if its result has no `x`, its `message` says why. Any other way that finds the prices counts.


# %% exercise="4.4"
def best_prices(): ...


# %% check="4.4"
@teach.Check("return a dict with a price of each model")
def _(check):
    found = check.ask(best_prices)
    assert isinstance(found, dict) and {*GANGS} <= {*found}, "return a dict with a price of each model"
    prices = {model: check.number(found[model], f"the price of {model}") for model in GANGS}
    assert min(prices.values()) >= 0, "the checker takes no prices below 0"
    value = proved(prices)
    assert value > 6.899, f"your prices prove {value:.4f}, others 6.9: is a gang alone among your sets, and mu <= 0?"


# %% [markdown]
# ## The gap
#
# The best plan, by a solver that searches:

# %%
result = gangplan.solve(problem, time_limit=60, method="cpsat")  # done in seconds
print(result)
gangplan.plot(problem, result, panel="cluster")

# %% [markdown]
# **4.5** The best prices prove 6.9, and no plan is below 7.8: a *gap*. Which fractional solution costs 6.9? Say of each
# pattern how many nodes have it; halves are allowed. Three gangs of each model must be placed, on three nodes.

# %% exercise="4.5"
answer = {("vision", "vision"): 0, ("language", "language"): 0, ("vision", "language"): 3}


# %% check="4.5"
@teach.Check('give a number to each pattern, like {("vision", "vision"): 1, ...}')
def _(check):
    pairs = {("vision", "vision"): 2.2, ("language", "language"): 2.4, ("vision", "language"): 3.2}
    assert isinstance(answer, dict), f"give a number to each of the patterns {[*pairs]}"
    shares = {tuple(sorted(pattern, reverse=True)): check.number(x, f"{pattern}") for pattern, x in answer.items()}
    assert {*shares} <= {*pairs} and len(shares) == len(answer), f"give a number to each of the patterns {[*pairs]}"
    for model, count in GANGS.items():
        placed = sum(share * pattern.count(model) for pattern, share in shares.items())
        assert np.isclose(placed, count), f"{placed:g} of {count} gangs of {model} are placed"
    assert np.isclose(sum(shares.values()), NODES), "there are three nodes"
    assert min(shares.values()) >= 0, "no pattern is there less than 0 times"
    total = sum(share * pairs[pattern] for pattern, share in shares.items())
    assert total < 6.91, f"it costs {total:g}: take only patterns that cost their pay plus mu, at the best prices"


# %% [markdown]
# Half a node is no node. Three gangs of one model cannot be paired among themselves, so some node has one of each
# model, and prices alone do not see that. A search does. Say we want to prove that no plan is below a **threshold**.
# What a node costs above its pay plus $\mu$ comes on top of the bound, and a pattern with which alone that reaches the
# threshold is out. The checker lists the other patterns, and looks for three that hold all gangs. If there are none,
# the threshold is proved. Better prices leave fewer patterns; this problem is so small that any prices will do.
#
# **4.6** Prove more than 7.79. Give the prices and the threshold. A threshold that some plan may be below is refused,
# and so is 7.8 itself: the checker leaves a little for rounding.

# %% exercise="4.6"
answer = {"prices": {"vision": 1.0, "language": 1.0}, "threshold": 6.0}


# %% check="4.6"
@teach.Check('give {"prices": {"vision": ..., "language": ...}, "threshold": ...}')
def _(check):
    assert isinstance(answer, dict) and {"prices", "threshold"} <= {*answer}, "give prices and a threshold"
    prices = {model: check.number(answer["prices"][model], f"the price of {model}") for model in GANGS}
    try:
        value = proved(prices, check.number(answer["threshold"], "the threshold"))
    except gangplan.InstanceError as error:
        raise AssertionError(f"the checker refuses the proof: {error}") from None
    assert value > 7.79, f"this proves {value:.4f}; the plan above costs {result.objective:.4f}"


# %% [markdown]
# With the plan of the solver, this is a proof of optimality that needs no solver to check. The library makes such
# proofs itself (the first time this may take half a minute):

# %%
certified = gangplan.solve(problem, time_limit=60, certify=True)
print(certified.standing, float(gangplan.verify_bound(problem, certified.certificate)))

# %% [markdown]
# ## Hand in a proof
#
# Homework may ask for a bound as well as for a plan. `solve.py` then has a function `prove(problem)` that returns such
# a document, or you hand in the file `NAME.bound.json`. The checker grades it: all points if it proves the optimum,
# fewer the further it is below, none if it does not hold.
#
# In the homework `prices` has one for each *family*: gangs of one worker that differ in name only are one family, any
# other gang is one of its own, in the order of their first gangs. `gangplan.teach.column_generation(problem)` finds
# good prices step by step. The last step has the best of them by family:
# `[str(Fraction(x)) for x in step.prices.values()]` are the `prices` of a certificate. That takes longer than a
# submission may, so hand in the file.
#
# - Any prices are a proof; good ones are harder to find. That is the point of duality.
# - A linear programme's bound, and the search that closes its gap, are two different arguments.
# - A checker of a few hundred lines is easier to trust than a solver.
#
# Next: notebook 5 looks for plans by local search.
