"""Benchmarks of policies: simulations, their rows, tables of docs/. Solvers are GapBench's (docs/gapbench.md).

A plain folder of the repository, not a part of the installed package. Run it from the root: ``python -m benchmarks``.
"""
