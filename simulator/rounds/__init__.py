"""Rounds of leases on GPUs of several types, as Gavel schedules (Narayanan et al., OSDI 2020)."""

from gangplan.instances.lazy import exported

__getattr__ = exported(__name__)
