# %% [markdown]
# # 5. Local search and large neighbourhoods
#
# A local search begins with some plan and changes it, a little at a time, as long as that helps. It is simple, it is
# fast, and on large problems it is what finds good plans. You write a descent, see it get stuck, and get out in three
# ways: by a larger neighbourhood, by steps that make the plan worse, and by taking a part of the plan away and
# putting it back as well as possible.
#
# **Time**: 50 minutes. **Before**: notebook 2. **Needs** the library, NumPy and matplotlib.

# %%
from itertools import combinations, permutations, product

import numpy as np

import gangplan
from gangplan import teach
from gangplan.instances.schedule import MoldableJob, Pool, ScheduleProblem

# %% [markdown]
# ## A plan as a list
#
# Seven gangs share four GPUs. Each has a number of GPUs, a duration, a release before which it cannot start, and a
# weight. The sum of weight times completion is to be as small as possible.
# A textbook writes $P|size_j, r_j|\sum w_j C_j$.

# %%
problem = ScheduleProblem(
    (
        MoldableJob("a", (1,), (3.0,), release=1.0, weight=3.0),
        MoldableJob("b", (3,), (8.0,), release=4.0, weight=3.0),
        MoldableJob("c", (3,), (7.0,), release=2.0, weight=3.0),
        MoldableJob("d", (2,), (7.0,), release=2.0, weight=2.0),
        MoldableJob("e", (1,), (6.0,), release=0.0, weight=5.0),
        MoldableJob("f", (3,), (4.0,), release=5.0, weight=3.0),
        MoldableJob("g", (2,), (5.0,), release=5.0, weight=3.0),
    ),
    Pool(4),
)
print(teach.notation(problem))

# %% [markdown]
# What does a search change? Start times are awkward: move one job and others overlap. So search over *lists*: an
# order of the jobs. A *decoder* makes a schedule of it, each job in turn as early as it fits (notebook 2). Every order
# gives a schedule without overlaps, and for this objective some order gives a best one.
#
# `cost` decodes a list and says what the schedule costs. The steps show how: the objective is that of the jobs placed
# so far, the bound is for all seven. The first time, the library compiles parts of itself, here and further down, and
# a cell may take a minute.

# %%
cost = teach.list_cost(problem)
given = list("abcdefg")
steps = list(teach.list_scheduling(problem, given))
print(*steps, sep="\n")
assert cost(given) == steps[-1].objective
steps[-1]

# %% [markdown]
# With seven jobs there are $7! = 5040$ lists, so here all of them can be looked at. With 20 jobs there are
# $2 \cdot 10^{18}$. Keep the best of all lists in mind: a search does not know it.

# %%
every = {order: cost(order) for order in permutations(given)}
best_of_all = min(every.values())
print(f"the given list costs {cost(given):g}, the best of {len(every)} lists {best_of_all:g}")

# %% [markdown]
# ## A neighbourhood
#
# The *neighbours* of a list are the lists that one change makes of it. Begin with *swaps*: two jobs change places.
#
# **5.1** Write `swaps(order)`: return all lists with two jobs swapped, each once. Leave `order` as it is.
# *Hint*: `combinations(range(n), 2)` gives the pairs of places. Copy the list before you change it.


# %% exercise="5.1"
def swaps(order): ...


# %% check="5.1"
@teach.Check("return a list of lists")
def _(check):
    found = check.ask(swaps, list("abcd"))
    assert found is not None, "return a list of lists"
    found = [tuple(order) for order in [*found]]
    assert len(found) == 6, f"four jobs have 4 * 3 / 2 = 6 pairs, and you return {len(found)} lists"
    assert len(set(found)) == 6, "some list is there twice: did you change the same list again and again?"
    for order in found:
        differ = [i for i in range(4) if order[i : i + 1] != ("abcd"[i],)]
        assert len(order) == 4 and len(differ) == 2, f"{order} differs from abcd in {len(differ)} places, a swap in two"
    for n in check.rng.permutation([1, 2, 3, 5, 6]).tolist():
        jobs = check.rng.permutation(list("ghijklmnop")[:n]).tolist()
        right = {x for x in permutations(jobs) if sum(a != b for a, b in zip(x, jobs, strict=True)) == 2}
        kept = list(jobs)
        found = [tuple(order) for order in [*check.ask(swaps, kept)]]
        assert kept == jobs, "the list that you were given has changed: copy it first"
        assert len(found) == len(set(found)), f"of {jobs} some list is there twice"
        assert {*found} == right, f"of {jobs} {len(right)} lists differ in two places; yours have others, or not all"


# %% [markdown]
# ## Descent
#
# *Steepest descent* goes to the best neighbour, again and again, until no neighbour is better. It ends, since the cost
# falls at each step and there are finitely many lists. Where it ends is a *local optimum*.
#
# **5.2** Write `descend(order, cost, neighbours)`: `cost(order)` is what a list costs, `neighbours(order)` yields its
# neighbours, like your `swaps`. Return the list where the descent ends.


# %% exercise="5.2"
def descend(order, cost, neighbours): ...


# %% check="5.2"
@teach.Check("return the list where the descent ends")
def _(check):
    def pairs(order):
        """Yield all swaps; a check may not use your `swaps`."""
        for i, j in combinations(range(len(order)), 2):
            new = list(order)
            new[i], new[j] = new[j], new[i]
            yield new

    end = check.ask(descend, list(given), cost, pairs)
    assert end is not None, "return the list where the descent ends"
    assert not isinstance(end, (int, float)) and sorted(end) == given, "return a list, which has each job once"
    assert cost(end) < cost(given), "the given list has better neighbours, and you stay there"
    assert all(cost(new) >= cost(end) for new in pairs(end)), "a neighbour of your last list is better: go on"
    told = "steepest descent ends at 305, or at 301 if it takes another one of two best neighbours"
    assert cost(end) in (301, 305), told
    assert [*descend(list(end), cost, pairs)] == [*end], "at a local optimum the descent stays"
    lists = [list(order) for order in permutations("abcde")]
    for _ in range(8):  # other costs, and two lists each as neighbours
        worth = dict(zip(map(tuple, lists), check.rng.permutation(len(lists)).tolist(), strict=True))
        links = {tuple(x): [lists[i] for i in check.rng.choice(len(lists), 2, replace=False)] for x in lists}

        def price(order, worth=worth):
            return worth[tuple(order)]

        def near(order, links=links):
            return iter(links[tuple(order)])

        def walk(order, price=price, near=near):
            best = min(near(order), key=price)
            return [order, *(walk(best, price, near) if price(best) < price(order) else [])]

        way = max(map(walk, lists), key=len)
        words = " to ".join("".join(x) for x in way)
        end = check.ask(descend, list(way[0]), price, near)
        assert [*end] == way[-1], (
            f"of other costs and neighbours the steepest way is {words}; you end at {''.join(end)}"
        )
    ends = {cost(descend(list(order), cost, pairs)) for order in list(every)[::200]}
    print(f"from the given list 305 or 301; from 26 others {sorted(ends)}; the best of all {best_of_all:g}")


# %% [markdown]
# The descent from the given list is stuck at 305, and the best is 294: no swap helps, although better lists exist. (It
# ends at 301 if, of two best neighbours, it takes the last one.) One can start it from many lists and keep the best
# (*multi-start*). Here the best of 26 other starts ends at 301, or at 294 by luck with ties: that helps little when
# almost all local optima are bad.
#
# ## Another neighbourhood
#
# What a local optimum is depends on the neighbourhood. *Insertions* take one job out and put it in anywhere else.
# An insertion moves all jobs between the two places, which no single swap does.
#
# **5.3** Write `insertions(order)`: return all *different* lists that one insertion makes, without `order` itself.
# How many are there for $n$ jobs? Put the formula in `count(n)`.
# *Hint*: to move a job one place on is to move the job after it one place back. So $n (n - 1)$ counts some lists twice.


# %% exercise="5.3"
def insertions(order): ...


def count(n): ...


# %% check="5.3"
@teach.Check("return a list of lists, and of `count` a number")
def _(check):
    found = check.ask(insertions, list("abcd"))
    assert found is not None, "return a list of lists"
    found = [tuple(order) for order in found]
    assert tuple("abcd") not in found, "the list itself is no neighbour"
    assert len(found) == len(set(found)), "a list is there twice: a job moved one place on is its neighbour moved back"
    assert tuple("bcda") in found and tuple("dabc") in found, "a job may go to either end"
    assert tuple("badc") not in found, "badc takes two insertions"
    assert len(found) == 9, f"four jobs have 9 insertions, and you return {len(found)}"
    assert check.ask(count, 2) is not None, "put the formula in `count`"
    for n in check.rng.permutation([2, 3, 5, 6, 7]).tolist():
        jobs = check.rng.permutation(list("ghijklmnop")[:n]).tolist()
        less = {tuple(x for x in jobs if x != job): job for job in jobs}  # of lists that lack one job
        right = {
            x
            for x in permutations(jobs)
            if [*x] != jobs and any(tuple(y for y in x if y != job) in less for job in jobs)
        }
        found = [tuple(order) for order in check.ask(insertions, list(jobs))]
        assert len(found) == len(set(found)), f"of {jobs} some list is there twice"
        assert {*found} == right, f"{jobs} has {len(right)} insertions; yours are others, or not all"
        assert check.number(count(n)) == len(right), (
            f"{n} jobs have {len(right)}: n (n - 1), less the n - 1 there twice"
        )
    for n in check.rng.integers(8, 1000, 4).tolist():
        found, right = check.number(check.ask(count, n)), n * (n - 1) - (n - 1)
        assert found == right, f"of {n} jobs you count {found:g}: n (n - 1), less the n - 1 there twice, is {right}"


# %% [markdown]
# Larger neighbourhoods have fewer local optima, and take longer to look at. Count here, over all 5040 lists, those
# that no neighbour beats:


# %%
def next_to(order):
    """Yield the swaps of jobs that are next to each other."""
    for i in range(len(order) - 1):
        yield (*order[:i], order[i + 1], order[i], *order[i + 2 :])


def any_two(order):
    for i, j in combinations(range(len(order)), 2):
        yield (*order[:i], order[j], *order[i + 1 : j], order[i], *order[j + 1 :])


def moved(order):
    for i, job in enumerate(order):
        rest = order[:i] + order[i + 1 :]
        yield from {(*rest[:k], job, *rest[k:]) for k in range(len(order))} - {order}


def both(order):
    yield from any_two(order)
    yield from moved(order)


for name, neighbours in (("next to", next_to), ("swaps", any_two), ("insertions", moved), ("both", both)):
    stuck = [order for order, value in every.items() if all(every[new] >= value for new in neighbours(order))]
    worst = max(every[order] for order in stuck)
    print(f"{name:>10}: {len(stuck):>3} local optima of 5040, the worst costs {worst:g}")

# %% [markdown]
# ## Steps that make it worse
#
# The second way out is to accept a worse list now and then. *Simulated annealing* draws a neighbour and accepts it
# with probability
#
# $$ \min\big(1,\ e^{-\Delta / T}\big) $$
#
# where $\Delta$ is how much more it costs and $T$ the *temperature*. Hot, it wanders; cold, it descends. Cool it
# slowly. (Metropolis 1953; Kirkpatrick, Gelatt and Vecchi 1983. The library's search over lists does this too.)
#
# **5.4** Write `accept(more, temperature, u)`: return whether to accept a list that costs `more` than the present one;
# `u` is a random number from 0 to 1, below $q$ with probability $q$. Mind that $e^{-\Delta / T}$ is too large for a
# float if a list costs less and it is cold.


# %% exercise="5.4"
def accept(more, temperature, u): ...


# %% check="5.4"
@teach.Check("return true or false")
def _(check):
    def anneal(order, hot, seed, rounds=600):
        """Draw swaps, cool from `hot` to a hundredth of it, and return the least cost met."""
        rng, now = np.random.default_rng(seed), cost(order)
        best = now
        for k in range(rounds):
            i, j = rng.choice(len(order), 2, replace=False)
            new = list(order)
            new[i], new[j] = new[j], new[i]
            if accept(cost(new) - now, hot * 0.01 ** (k / rounds), rng.random()):
                order, now = new, cost(new)
                best = min(best, now)
        return best

    assert check.ask(accept, -3, 1.0, 0.99) is not None, "return true or false"
    assert accept(-3, 1.0, 0.99) and accept(0, 1.0, 0.99), "what costs no more is always accepted"
    assert accept(1, 1.0, 0.36) and not accept(1, 1.0, 0.37), "at T = 1, one more is accepted with e^-1 = 0.368"
    assert not accept(50, 0.1, 0.001), "cold, a much worse list is not accepted"
    assert accept(50, 1000.0, 0.9), "hot, nearly everything is accepted"
    assert check.ask(accept, -50, 1e-5, 0.5), "what costs less is accepted, however cold it is"
    for _ in range(40):
        temperature, u = float(10 ** check.rng.uniform(-2, 2)), float(check.rng.uniform(0.02, 0.98))
        edge = -temperature * float(np.log(u))  # so much more is accepted with probability u
        for more, right in ((edge * 0.97, True), (edge * 1.03, False), (-edge, True)):
            told = f"a list that costs {more:.4g} more, T = {temperature:.4g}, u = {u:.3f}: accepted is {right}"
            assert bool(check.ask(accept, more, temperature, u)) == right, told
    results = {hot: [anneal(list(given), hot, seed) for seed in range(10)] for hot in (0.001, 10.0, 1000.0)}
    for hot, values in results.items():
        at_best = sum(value == best_of_all for value in values)
        print(f"from T = {hot:g}: {at_best} of 10 runs find the best list, mean {np.mean(values):.1f}")
    assert sum(value == best_of_all for value in results[10.0]) >= 8, "from T = 10 nearly every run finds the best list"


# %% [markdown]
# Too cold, it is a descent that gets stuck; too hot, it wastes its rounds on a random walk. The right temperature is
# about what a typical step costs.
#
# ## Large neighbourhoods
#
# Now a placement: six gangs of 4, 3, 3, 2, 2 and 2 workers fill two nodes of 8 GPUs. A gang on both nodes
# synchronises over the network: if $k$ gangs are split, each of them, with $W$ workers, takes $4 k (W - 1) / W$ times
# as long as on one node. The cost is the sum of these slowdowns. To place the largest first, each where it costs least,
# splits the last gang:

# %%
lesson = teach.greedy_trap()
first, *_ = teach.ruin_and_recreate(lesson.problem)
print(first)
first

# %% [markdown]
# Write a placement as the number of workers that each gang has on the first node. All GPUs are needed, so these add
# up to 8. `slowdowns` says what a placement costs; `as_plan` makes a plan of it for the verifier, which agrees.

# %%
sizes = 4, 3, 3, 2, 2, 2
greedy = 4, 3, 0, 0, 0, 1


def slowdowns(placement):
    """Return the sum of the slowdowns; `placement` has the workers of each gang on the first node."""
    split = [0 < x < size for x, size in zip(placement, sizes, strict=True)]
    return sum(4 * sum(split) * (w - 1) / w if s else 1.0 for w, s in zip(sizes, split, strict=True))


def as_plan(placement):
    rows = [(j, n, w) for j, x in enumerate(placement) for n, w in enumerate((x, sizes[j] - x)) if w]
    used, grants = [0, 0], []
    for r, (_, n, w) in enumerate(rows):
        grants += [(r, used[n] + i) for i in range(w)]
        used[n] += w
    names = tuple(job.name for job in lesson.problem.jobs)
    job, node, workers = (list(column) for column in zip(*rows, strict=True))
    row, gpu = (list(column) for column in zip(*grants, strict=True))
    return gangplan.PlacementPlan(names, job, node, workers, [0] * len(rows), row, gpu)


for placement in (greedy, (4, 0, 0, 2, 2, 0), (2, 3, 0, 0, 1, 2)):
    verdict = gangplan.verify(lesson.problem, as_plan(placement))
    assert verdict.ok and abs(verdict.objective - slowdowns(placement)) < 1e-9, placement
print(slowdowns(greedy))

# %% [markdown]
# Move one gang, or swap two: GPUs are full, so few moves are possible, and none helps. The plan is a trap for small
# neighbourhoods. *Ruin and recreate* (large neighbourhood search) takes several gangs away, leaves the others alone,
# and places those again as well as it can. `around` yields all ways to do that:


# %%
def around(placement, gone):
    """Yield every placement in which only the gangs `gone` may be elsewhere."""
    for x in product(*(range(size + 1) if j in gone else (placement[j],) for j, size in enumerate(sizes))):
        if sum(x) == 8:
            yield x


print(len(list(around(greedy, {5}))), len(list(around(greedy, {1, 5}))), len(list(around(greedy, range(6)))))

# %% [markdown]
# **5.5** How many gangs must go *at once*, at least, so that a better placement than `greedy` is around? Put the number
# in `smallest`, and one such set of gangs in `which`.
# Gangs are numbered 0 to 5. *Hint*: try all `combinations(range(6), k)` for k = 1, 2, ...

# %% exercise="5.5"
smallest = None
which = None


# %% check="5.5"
@teach.Check("a number, and a set of gangs, numbered from 0 to 5")
def _(check):
    assert smallest is not None, "put a number in `smallest`"
    assert which is not None, "put a set of gangs in `which`, numbered from 0"
    size = check.number(smallest, "`smallest`")
    assert {*which} <= set(range(6)), "`which` is a set of gangs, numbered from 0 to 5"
    assert len({*which}) == len([*which]) == size, f"`which` has {len({*which})} gangs, and `smallest` is {smallest}"
    least = min(map(slowdowns, around(greedy, set(which))))
    assert least < 7, f"with {sorted(which)} taken away the best placement around still costs {least:g}"
    fewer = [gone for gone in combinations(range(6), int(size) - 1) if min(map(slowdowns, around(greedy, {*gone}))) < 7]
    assert not fewer, f"fewer are enough: look at {fewer[0]}"


# %% [markdown]
# So no search that moves one or two gangs at a time ever leaves this plan without accepting a worse one. There is the
# trade: with all gangs gone, the neighbourhood is the whole problem; with one gone, it is a greedy step.
#
# **5.6** Write `large(placement, rounds, size, seed)`: in each round draw `size` gangs and go to the best placement in
# which only they may be elsewhere, as of `around`. (It never costs more: the present placement is one of these.) Return
# the last placement. *Hint*: `rng = np.random.default_rng(seed)`, `rng.choice(6, size, replace=False)`.


# %% exercise="5.6"
def large(placement, rounds, size, seed): ...


# %% check="5.6"
@teach.Check("return a placement: the workers of each gang on the first node")
def _(check):
    found = check.ask(large, greedy, 1, 1, 0)
    assert found is not None, "return a placement"
    assert np.shape(found) == (6,) and sum(found) == 8, "a placement has the workers of each gang on the first node"
    firsts = set()
    for seed in check.rng.choice(10_000, 40, replace=False).tolist():
        whole = [x for x in product(*(range(size + 1) for size in sizes)) if sum(x) == 8]
        begin, gangs = whole[check.rng.integers(len(whole))], int(check.rng.integers(1, 6))
        told = f"from {begin}, one round of {gangs} gangs, seed {seed}"
        found = tuple(int(x) for x in check.ask(large, begin, 1, gangs, seed))
        ways = [min(map(slowdowns, around(begin, {*gone}))) for gone in combinations(range(6), gangs)]
        far = sum(x != y for x, y in zip(found, begin, strict=True))
        assert found in whole, f"{told}: {found} is no placement of 8 workers on the first node"
        assert far <= gangs, f"{told}: {found} has {far} gangs elsewhere"
        ends = any(abs(slowdowns(found) - way) < 1e-9 for way in ways)
        assert ends, f"{told}: {found} costs {slowdowns(found):g}, and no {gangs} gangs have that as their best"
        assert found == tuple(large(begin, 1, gangs, seed)), f"{told}: twice the same seed, and two answers"
        stays = tuple(check.ask(large, begin, 0, gangs, seed))
        assert stays == begin, f"no round at all leaves {begin} as it is, and you return {stays}"
        firsts.add(tuple(large((2, 2, 1, 1, 1, 1), 1, 2, seed)))
    assert len(firsts) > 1, "each seed draws the same gangs"
    assert all(slowdowns(large(greedy, 20, 2, seed)) == 7 for seed in range(5)), "two gangs at a time do not get out"
    ends = [slowdowns(large(greedy, 30, 3, seed)) for seed in range(20)]
    print(f"three gangs at a time: {sum(end == 6 for end in ends)} of 20 runs are at 6 after 30 rounds")
    assert max(ends) <= 7, "a round must not make it worse"
    assert sum(end == 6 for end in ends) >= 15, "most runs get out in 30 rounds: do you draw anew in each round?"
    far = max(slowdowns(large((2, 2, 1, 1, 1, 1), 60, 2, seed)) for seed in range(5))
    assert far < 30, (
        f"(2, 2, 1, 1, 1, 1) is left at {far:.3g} after 60 rounds: does each round go on from the last one?"
    )
    assert slowdowns(large(greedy, 1, 6, 0)) == 6, "with all six gangs gone one round finds the best placement"


# %% [markdown]
# ## The library's search, step by step
#
# The library's ruin and recreate takes up to four gangs off, those that stand together more often, and puts them back
# one by one where the batch then costs least: not the best of all ways, but fast. A result that is hardly worse is
# kept at first. Each step is a plan that the verifier has checked.

# %%
steps = list(teach.ruin_and_recreate(lesson.problem))
print(*steps, sep="\n")
teach.page(steps, "ruin_and_recreate.html")  # open it in a browser: arrow keys go from step to step
steps[-1]

# %% [markdown]
# How does the search know that 6 is the end? By itself it does not: a local search proves nothing. Here no gang is
# faster than on one node, so the *bound* is 6, and that ends the search. In general the bound comes from elsewhere:
# notebook 4 has prices, and *column generation* finds them. A column is a set of gangs, or parts of them, on a node.

# %%
*_, last = teach.column_generation(lesson.problem)
print(last)

# %% [markdown]
# ## What to take along
#
# - A search needs a representation (lists and a decoder; numbers of workers), a neighbourhood and a rule to accept.
# - A local optimum is one of its neighbourhood. Larger neighbourhoods have fewer, and cost more to look at.
# - Ways out: other starts, worse steps, a part taken away and put back.
# - A search gives a plan, a bound says how good it is. You want both, and `gangplan.solve` returns both:

# %%
print(gangplan.solve(problem, time_limit=60))  # done in seconds
