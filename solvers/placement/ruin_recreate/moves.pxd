from gangplan.solvers.native cimport Float, Int
from gangplan.solvers.placement.ruin_recreate.arrays cimport COMMUNICATION, FRAGMENTATION, BatchArrays, Placement
from gangplan.solvers.placement.ruin_recreate.costs cimport (
    communication_cost, compute_seconds, cross, job_cost, meets, moving, spans, sync_seconds, timed_cost, workers_of,
)
from gangplan.solvers.placement.ruin_recreate.gpus cimport renew_node, shares_room

cdef void add(BatchArrays given, Placement now, Int job, Int place, Int count) noexcept nogil
cdef void put_down(BatchArrays given, Placement now, Int job, Int place, Int count) noexcept nogil
cdef void remove(BatchArrays given, Placement now, Int job) noexcept nogil
cdef void _use(BatchArrays given, Placement now, Int job, Int node, Int workers, Int servers, Int sign) noexcept nogil
cdef void _stir(BatchArrays given, Placement now, Int job) noexcept nogil
cdef Float settle(BatchArrays given, Placement now) noexcept nogil
cdef Float price(BatchArrays given, Placement now, Int job, Int place, Int count, Float limit) noexcept nogil
cdef Float _tried(BatchArrays given, Placement now, Int job, Int place, Int count) noexcept nogil
cdef bint _known(Placement now, Int job, Int changed) noexcept nogil
cdef Int _list(Placement now, Int job, Int changed) noexcept nogil
cdef Int _slowed(BatchArrays given, Placement now, Int model, Int place, Int count) noexcept nogil
cdef Int _delayed(BatchArrays given, Placement now, Int job, Int changed) noexcept nogil
cdef Float _more(BatchArrays given, Placement now, Int changed) noexcept nogil
cdef Float fit(Float left, Float over, Float need) noexcept nogil
cdef bint closed(BatchArrays given, Placement now, Int job, Int node) noexcept nogil
cdef Int find_room(BatchArrays given, Placement now, Int job) noexcept nogil
