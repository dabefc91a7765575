"""Teaching: the library's own models, steps and proofs, shown; nothing here decides anything."""

from typing import TYPE_CHECKING

from gangplan.instances.lazy import exported

if TYPE_CHECKING:
    # models
    from .files import export as export
    from .linear import cuts as cuts
    from .linear import relaxation as relaxation
    from .linear import symmetry as symmetry
    from .programme import Programme as Programme
    from .programme import Row as Row
    from .programme import milp as milp
    from .tree import branch_and_bound as branch_and_bound
    from .tree import draw_tree as draw_tree
    from .tree import text_tree as text_tree
    from .words import formulation as formulation
else:
    __getattr__ = exported(__name__, __file__)
