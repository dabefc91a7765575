# The C types of what native.py declares.
ctypedef double Float
ctypedef long long Int
ctypedef unsigned long long Word
ctypedef double[::1] Floats
ctypedef double[:, ::1] Floats2
ctypedef double[:, :, ::1] Floats3
ctypedef long long[::1] Ints
ctypedef long long[:, ::1] Ints2
ctypedef long long[:, :, ::1] Ints3
ctypedef unsigned long long[:, ::1] Words2
ctypedef int[:, ::1] Halves2
ctypedef unsigned char[::1] Flags
ctypedef unsigned char[:, ::1] Flags2
ctypedef const double[::1] FixedFloats
ctypedef float Single
ctypedef float[::1] Singles
ctypedef float[:, ::1] Singles2
ctypedef float[:, :, ::1] Singles3
ctypedef float[:, :, :, ::1] Singles4

cdef class Random:
    cdef unsigned int[624] state
    cdef Int at
    cdef bint paired
    cdef Float other
    cdef Word bits(self) noexcept nogil
    cpdef Float uniform(self) noexcept nogil
    cpdef Int below(self, Int n) noexcept nogil
    cpdef Float normal(self) noexcept nogil

cdef class Heap:
    cdef Ints items, place
    cdef Floats value
    cdef Int size
    cdef bint first(self, Int x, Int y) noexcept nogil
    cpdef void push(self, Int v) noexcept nogil
    cpdef Int pop(self) noexcept nogil

cdef class Sorting:
    cdef Floats keys
    cdef Ints order
    cdef bint before(self, Int x, Int y, bint stable) noexcept nogil
    cdef void exchange(self, Int i, Int j, bint stable) noexcept nogil
    cdef Int part(self, Int low, Int high, bint stable) noexcept nogil
    cdef void within(self, Int low, Int high, bint stable) noexcept nogil
    cpdef void sort(self, Int count, bint stable) noexcept nogil

cdef bint within(Ints numbers, Int end, bint ascending) noexcept nogil
