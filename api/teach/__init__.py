"""Teach with the library: its models, its methods step by step, tiny instances, classic words, homework and grades."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gangplan.instances.lazy import exported

if TYPE_CHECKING:
    from .classic import read_jobshop as read_jobshop
    from .classic import read_lekin as read_lekin
    from .classic import read_swf as read_swf
    from .classic import write_jobshop as write_jobshop
    from .classic import write_lekin as write_lekin
    from .classic import write_swf as write_swf
    from .dual import dual_ascent as dual_ascent
    from .files import export as export
    from .lessons import LESSONS as LESSONS
    from .lessons import Lesson as Lesson
    from .lessons import fork as fork
    from .lessons import graham as graham
    from .lessons import greedy_trap as greedy_trap
    from .lessons import lp_gap as lp_gap
    from .lessons import moldable as moldable
    from .lessons import one_call as one_call
    from .lessons import replicas as replicas
    from .lessons import symmetric as symmetric
    from .lessons import two_jobs as two_jobs
    from .linear import cuts as cuts
    from .linear import relaxation as relaxation
    from .linear import symmetry as symmetry
    from .lists import list_cost as list_cost
    from .lists import list_scheduling as list_scheduling
    from .names import formulation as formulation
    from .neighbourhoods import ruin_and_recreate as ruin_and_recreate
    from .patterns import column_generation as column_generation
    from .programme import Programme as Programme
    from .programme import Row as Row
    from .programme import milp as milp
    from .show import draw as draw
    from .show import gif as gif
    from .show import page as page
    from .step import Step as Step
    from .three_fields import Notation as Notation
    from .three_fields import notation as notation
    from .tree import branch_and_bound as branch_and_bound
    from .tree import draw_tree as draw_tree
    from .tree import text_tree as text_tree
else:
    __getattr__ = exported(__name__, __file__)
