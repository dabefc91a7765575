"""The plain model of placement in words; letters as in docs/placement.md."""

from __future__ import annotations

from ..plain import Formulation, Variable

FORMULATION = Formulation(
    "sum_j t[j] + value[j] out[j], the weighted slowdowns, or another goal",
    (
        Variable("size", "job count", "1 if it runs with so many workers; none if it is left out"),
        Variable("out", "job", "1 if it is left out"),
        Variable("moved", "job", "1 if it leaves where it runs"),
        Variable("w", "job node", "workers of job j on node n"),
        Variable("p", "job node", "its parameter servers there"),
        Variable("busy", "job node", "1 if it has workers there"),
        Variable("here", "job node", "1 if it has tasks there"),
        Variable("c", "job", "what its compute costs", seconds=True),
        Variable("s", "job", "what its synchronisation costs", seconds=True),
        Variable("step", "job", "what its step costs, with the most workers", seconds=True),
        Variable("t", "job", "what it costs", seconds=True),
        Variable("used", "node gpu", "1 if a GPU is there to be shared"),
        Variable("card", "job node gpu", "workers of job j on a GPU that is shared"),
        Variable("holds", "job node gpu", "1 if it has any there"),
        Variable("both", "job job node", "1 if jobs i and j have workers on node n"),
        Variable("meet", "job job node gpu", "1 if they have workers on one of its GPUs"),
        Variable("share", "job job node", "1 if they have so on some GPU of it"),
        Variable("inside", "level job member", "1 if job j has tasks in member a of level l"),
        Variable("cross", "level job member", "1 if it has others outside"),
        Variable("wide", "level job", "1 if it is in several members of level l"),
        Variable("several", "job node", "1 if it has two workers or more on node n"),
        Variable("phase", "job level", "what each ring of a hierarchical collective costs", seconds=True),
        Variable("reached", "job count", "1 if some part has so many workers, or members"),
        Variable("again", "level job member job", "what goes through a link, if another job shares it"),
        Variable("of", "job count", "products of workers and servers: a step"),
        Variable("term", "job count", "products of workers and servers: what it adds"),
        Variable("through", "level job member", "steps of workers and servers that go through a link"),
        Variable("loss", "job", "what it loses of its throughput", seconds=True),
        Variable("line", "job count", "1 if its loss is that of a line"),
        Variable("pair", "level job member count", "1 if it has so many workers in a member"),
        Variable("across", "level job", "pairs of its GPUs that meet at a level, and not below"),
        Variable("fits", "node kind", "1 if a task to come fits"),
        Variable("lacks", "node kind", "1 if it does not"),
        Variable("enough", "node gpu kind", "1 if a GPU that is shared has room for it"),
        Variable("left", "node gpu kind", "what is free of it, if not", seconds=True),
        Variable("rest", "node kind", "what is free and of no use to it", seconds=True),
    ),
    (
        ("A", "sum_n w[j,n] = sum_k k size[j,k];  sum_k size[j,k] + out[j] = 1;  ...", "all tasks or none"),
        ("M", "sum_j need[j] (w[j,n] + p[j,n]) <= has[n] for GPUs, cores, memory, NIC", "resources of a node"),
        ("U", "sum_g card[j,n,g] = w[j,n];  sum_j need[j] card[j,n,g] <= used[n,g]", "shares of GPUs"),
        ("L", "c[j] >= price[j] c[j,n] (busy[j,n] + sum_i h[j,i] both[i,j,n])", "compute on its slowest node"),
        ("K", "inside[l,j,a] >= here[j,n];  cross[l,j,a] = 1 if inside several members", "links that a gang crosses"),
        (
            "S",
            "cross[l,j,a] = 1  =>  s[j] >= price[j] moved (1 + sum_i duty[i] cross[l,i,a]) / B[l]",
            "synchronisation",
        ),
        ("Z", "t[j] >= c[j];  t[j] >= (1 - o) c[j] + s[j]", "a step"),
        ("T", "loss[j] >= weight[j] (a + b t[j]) of one line (a, b)", "throughput lost"),
        ("P", "across[l,j] >= pairs in members of level l + 1 - those of level l", "pairs of GPUs"),
        ("F", "rest[n,k] >= free GPUs of n, without those that have room for k if it fits", "fragments"),
    ),
)
"""The model in words; symbols as in docs/placement.md."""
