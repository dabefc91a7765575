"""What is learned from data: policies, what trains them and their contract; how fast jobs run together."""

from gangplan.instances.lazy import exported

__getattr__ = exported(__name__)
