from gangplan.solvers.native cimport Float, Int
from gangplan.solvers.placement.ruin_recreate.arrays cimport FRAGMENTATION, BatchArrays, Placement

cdef void renew_node(BatchArrays given, Placement now, Int node) noexcept nogil
cdef Int shares_room(BatchArrays given, Placement now, Int job, Int node, Int most) noexcept nogil
cdef Int _sharers(BatchArrays given, Placement now, Int node, Int job) noexcept nogil
cdef Int _filled(
    BatchArrays given, Placement now, Int node, Int count, Int gpus, Int job, Int workers
) noexcept nogil
cdef Int _apart(BatchArrays given, Placement now, Int node, Int count, Int gpus) noexcept nogil
cdef void _open(Placement now, Int gpu) noexcept nogil
cdef void _share(BatchArrays given, Placement now, Int place, Int job, Int gpu) noexcept nogil
cdef bint _has(Placement now, Int gpu, Int place) noexcept nogil
cdef Float _dislike(BatchArrays given, Int job, Int other) noexcept nogil
cdef void _meetings(BatchArrays given, Placement now, Int node, Int count, Int used) noexcept nogil
cdef void _meet(BatchArrays given, Placement now, Int node, Int one, Int two) noexcept nogil
cdef Float _fragments(BatchArrays given, Placement now, Int node, Int idle, Int used) noexcept nogil
