from gangplan.solvers.native cimport Float, Int
from gangplan.solvers.placement.ruin_recreate.arrays cimport (
    COMMUNICATION, FRAGMENTATION, HIERARCHICAL, RING, SERVERS, THROUGHPUT, BatchArrays, Placement,
)

cdef Float ring(Int members, Float size) noexcept nogil
cdef void first_level(Placement now, Int place, Int count) noexcept nogil
cdef Int next_level(BatchArrays given, Placement now, Int low, Int count) noexcept nogil
cdef void cross(BatchArrays given, Placement now, Int place, Int count, Float duty, Int mark) noexcept nogil
cdef bint meets(BatchArrays given, Placement now, Int place, Int count) noexcept nogil
cdef bint spans(BatchArrays given, Placement now, Int place, Int count) noexcept nogil
cdef bint stands(BatchArrays given, Placement now, Int job, Int place, Int count) noexcept nogil
cdef Int workers_of(Placement now, Int place, Int count) noexcept nogil
cdef Float moving(BatchArrays given, Placement now, Int job, Int place, Int count) noexcept nogil
cdef Float compute_seconds(BatchArrays given, Placement now, Int job, Int place, Int count, bint there) noexcept nogil
cdef Float sync_seconds(BatchArrays given, Placement now, Int job, Int place, Int count, Float own) noexcept nogil
cdef Float timed_cost(BatchArrays given, Int job, Float compute, Float sync, Int workers) noexcept nogil
cdef Float communication_cost(BatchArrays given, Placement now, Int job, Int place, Int count) noexcept nogil
cdef Float job_cost(BatchArrays given, Placement now, Int job) noexcept nogil
