from gangplan.solvers.native cimport Float, Int
from gangplan.solvers.placement.ruin_recreate.arrays cimport FRAGMENTATION, HIERARCHICAL, RACKS, BatchArrays, Placement
from gangplan.solvers.placement.ruin_recreate.moves cimport closed, fit, price

cdef void put(Placement now, Int place, Int row, Int node, Int workers, Int servers) noexcept nogil
cdef void copy_rows(Placement now, Int source, Int place, Int count) noexcept nogil
cdef Int _serve(BatchArrays given, Placement now, Int job, Int count, bint apart) noexcept nogil
cdef Float _server_room(BatchArrays given, Placement now, Int job, Int node, Int workers) noexcept nogil
cdef void better(BatchArrays given, Placement now, Int job, Int count) noexcept nogil
cdef Int _fill(Placement now, Int most, Int degree, bint tight) noexcept nogil
cdef bint _at_best(BatchArrays given, Placement now, Int job) noexcept nogil
cdef void insert(BatchArrays given, Placement now, Int job, Int degree) noexcept nogil
cdef void _several(BatchArrays given, Placement now, Int job, Int degree, Int widest) noexcept nogil
cdef bint _has(Placement now, Int count, Int rack) noexcept nogil
cdef bint _shift(BatchArrays given, Placement now, Int job) noexcept nogil
