from gangplan.solvers.native cimport Float, Int, Ints, Ints3, within
from gangplan.solvers.placement.ruin_recreate.arrays cimport FRAGMENTATION, RUIN, BatchArrays, Placement
from gangplan.solvers.placement.ruin_recreate.gpus cimport renew_node
from gangplan.solvers.placement.ruin_recreate.moves cimport add, find_room, put_down, remove, settle
from gangplan.solvers.placement.ruin_recreate.places cimport better, copy_rows, insert, put

cdef void _begin(BatchArrays given, Placement now, Ints3 best, Ints count) noexcept nogil
cdef Float _inserted(
    BatchArrays given, Placement now, Ints3 best, Ints count, Ints queue, Int first, Int last
) noexcept nogil
cdef void _rounds(
    BatchArrays given, Placement now, Ints3 best, Ints count, Int first, Int last, Int rounds
) noexcept nogil
cdef Int _back(BatchArrays given, Placement now, Int gone, Float most) noexcept nogil
cdef void _look(BatchArrays given, Placement now, Int gone, Int most) noexcept nogil
cdef void _see(Placement now, Int node) noexcept nogil
cdef void _keep(BatchArrays given, Placement now, Ints3 best, Ints count) noexcept nogil
cdef Float _slacks(BatchArrays given, Placement now) noexcept nogil
cdef bint _put_in(BatchArrays given, Placement now, Int job) noexcept nogil
cdef bint _may(BatchArrays given, Placement now, Int back, Int gone, Float most) noexcept nogil
cdef bint _insert(BatchArrays given, Placement now, Int job) noexcept nogil
cdef Int _draw(BatchArrays given, Placement now, Float total) noexcept nogil
cdef void _order(BatchArrays given, Placement now, Int count) noexcept nogil
cdef Float _gpus(BatchArrays given, Int job) noexcept nogil
