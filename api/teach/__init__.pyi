"""Teach with the library: its models, its methods step by step, tiny instances, classic words, homework and grades."""

# isort: skip_file
# fmt: off
from .check import Check as Check
from .classic import (
    read_jobshop as read_jobshop, read_lekin as read_lekin, read_swf as read_swf, write_jobshop as write_jobshop,
    write_lekin as write_lekin, write_swf as write_swf,
)
from .dual import dual_ascent as dual_ascent
from .files import export as export
from .lessons import (
    LESSONS as LESSONS, Lesson as Lesson, fork as fork, graham as graham, greedy_trap as greedy_trap, lp_gap as lp_gap,
    moldable as moldable, one_call as one_call, replicas as replicas, symmetric as symmetric, two_jobs as two_jobs,
)
from .linear import cuts as cuts, relaxation as relaxation, symmetry as symmetry
from .lists import list_cost as list_cost, list_scheduling as list_scheduling
from .names import formulation as formulation
from .neighbourhoods import ruin_and_recreate as ruin_and_recreate
from .patterns import column_generation as column_generation
from .programme import Programme as Programme, Row as Row, milp as milp
from .show import draw as draw, gif as gif, page as page
from .step import Step as Step
from .three_fields import Notation as Notation, notation as notation
from .tree import branch_and_bound as branch_and_bound, draw_tree as draw_tree, text_tree as text_tree
