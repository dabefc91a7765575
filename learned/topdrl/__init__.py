"""TopDRL: a network of several branches picks the next job of the queue, a rule gives it the closest GPUs."""

from .policy import TopdrlPolicy

__all__ = ["TopdrlPolicy"]
