from gangplan.solvers.native cimport Flags, Float, Floats, Floats2, Int, Ints, Ints2, Sorting

cdef enum:
    ALLOCATE, DONE, MORE, STUCK

cdef class Rounds:
    cdef Int n, types, rounds, leases, taken, arrived, tried, runs, stamp
    cdef readonly Int active
    cdef bint strict
    cdef public bint stale
    cdef readonly Float now
    cdef public Float reset
    cdef readonly Float length
    cdef Float gap, overhead, ended
    cdef Ints gpus, room, many, mark, running, kind, own, own_at, open_steps, held
    cdef readonly Ints left
    cdef Flags busy
    cdef readonly Flags known
    cdef readonly Ints2 ranking
    cdef Ints2 chosen, place, lease
    cdef Floats begins
    cdef readonly Floats submit
    cdef Floats2 span, open_span
    cdef readonly Floats2 speed, share, received, deficit, priority
    cdef Sorting order
    cdef Int _advance(self, Ints2 orders) noexcept nogil
    cdef void _admit(self) noexcept nogil
    cdef void _rise(self, Int j, Int at) noexcept nogil
    cdef void _fall(self, Int j, Int at) noexcept nogil
    cdef bint _before(self, Int one, Int other, Int j) noexcept nogil
    cdef bint _choose(self, Ints2 orders, Int row) noexcept nogil
    cdef void _work(self) noexcept nogil
    cdef void _drop_finished(self) noexcept nogil
    cdef void _place(self) noexcept nogil
    cdef bint _extend(self, Int job, Int first) noexcept nogil
    cdef Int _start(self, Int job, Int kind, Int free, Int first) noexcept nogil
    cdef void _close(self, Int job) noexcept nogil
