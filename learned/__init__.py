"""What is learned from data: policies, what trains them and their contract; how fast jobs run together."""

from typing import TYPE_CHECKING

from gangplan.instances.lazy import exported

if TYPE_CHECKING:
    from .policy.check import Case as Case
    from .policy.check import check_policy as check_policy
else:
    __getattr__ = exported(__name__, __file__)
