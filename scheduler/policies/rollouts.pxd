from gangplan.solvers.native cimport Flags, Float, Floats, Int, Ints, Sorting

cdef class PlayedJobs:
    cdef Int gpus, count, spare
    cdef Float shadow
    cdef Floats rest, price, weight, done
    cdef Ints need, jobs
    cdef Flags runs
    cdef Sorting first, ends
    cdef void play(self, bint reserve) noexcept nogil
    cdef Float step(self, bint reserve) noexcept nogil
    cdef void reserve(self, Int asked, Int room) noexcept nogil
