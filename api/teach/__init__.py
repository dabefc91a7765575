"""Teaching: the library's own models, steps and proofs, shown; nothing here decides anything."""

from typing import TYPE_CHECKING

from gangplan.instances.lazy import exported

if TYPE_CHECKING:
    # models
    from .export import export as export
    from .formulation import formulation as formulation
    from .programme import Programme as Programme
    from .programme import milp as milp
    #     from .relaxation import cuts as cuts
    #     from .relaxation import relaxation as relaxation
    #     from .relaxation import symmetry as symmetry
    #     from .tree import branch_and_bound as branch_and_bound
    #     from .tree import draw_tree as draw_tree
    #     from .tree import text_tree as text_tree
else:
    __getattr__ = exported(__name__, __file__)
