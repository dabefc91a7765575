"""Placement: nodes and GPUs for tasks and gangs."""
