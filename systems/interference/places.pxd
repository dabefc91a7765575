from gangplan.solvers.native cimport FixedFloats, Flags2, Float, Floats, Floats2, Int, Ints, Ints2, Ints3, within

cdef class FreeRoom:
    cdef Floats2 free
    cdef FixedFloats worker, ps
    cdef Floats rest
    cdef Ints2 best
