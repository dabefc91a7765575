"""Benchmarks of gangplan: suites of instances, rival formulations, and the ledger of every run; see docs/benchmarks.md.

A plain folder of the repository, not a part of the installed package. Run it from the root: ``python -m benchmarks``.
"""
