"""Peers of gangplan's methods, for `gangplan bench run --plugin NAME`: its plain models, and packages of others.

A peer says that it does not solve a problem by a `NotImplementedError`.
"""
