"""Peers of gangplan's methods, for `gangplan bench run --plugin NAME`: plain models, and packages of others.

The plain models are what a competent user writes in an afternoon: nothing contracted, no starting plan, no bound. A
peer says that it does not solve a problem by a `NotImplementedError`.
"""
