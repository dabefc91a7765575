from gangplan.solvers.native cimport Int, Ints

cdef void closest(Int need, Ints begin, Ints free, Ints take) noexcept nogil
cdef Int best_fit(Int need, Int begin, Int end, Ints free) noexcept nogil
cdef Int rack_idle(Ints begin, Ints free, Int rack) noexcept nogil
cdef Int take_idle(Int node, Int most, Ints free, Ints take) noexcept nogil
cdef Int _nodes_for(Int need, Ints begin, Ints free, Int rack) noexcept nogil
cdef Int _fill(Int need, Ints begin, Ints free, Ints take, Int rack) noexcept nogil
