"""Teach with the library: its models, its methods step by step, tiny instances, homework and grades."""

from gangplan.instances.lazy import exported

__getattr__ = exported(
    __name__,
    {
        ".check": "Check",
        ".dual": "dual_ascent",
        ".files": "export",
        ".lessons": "LESSONS Lesson fork graham greedy_trap lp_gap moldable one_call replicas symmetric two_jobs",
        ".linear": "cuts relaxation symmetry",
        ".lists": "list_cost list_scheduling",
        ".names": "formulation",
        ".neighbourhoods": "ruin_and_recreate",
        ".patterns": "column_generation",
        ".programme": "Programme Row milp",
        ".show": "draw gif page",
        ".step": "Step",
        ".tree": "branch_and_bound draw_tree text_tree",
    },
)
