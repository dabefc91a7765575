"""Teach with the library: its models, its methods step by step, tiny instances, classic words, homework and grades."""

from gangplan.instances.lazy import exported

__getattr__ = exported(
    __name__,
    {
        ".check": "Check",
        ".classic": "read_jobshop read_lekin read_swf write_jobshop write_lekin write_swf",
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
        ".three_fields": "Notation notation",
        ".tree": "branch_and_bound draw_tree text_tree",
    },
)
