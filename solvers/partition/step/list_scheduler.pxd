from gangplan.solvers.native cimport Flags, Float, Floats, Floats2, Int, Ints
from gangplan.solvers.partition.step.arrays cimport StepArrays, within
from gangplan.solvers.partition.step.timing cimport Workroom, arrival, clear, sort_reads

cdef enum:
    LOAD, BACKLOG, OPENS, FILL, IDLE, LAST, MOVED

cdef class ListState:
    cdef StepArrays arrays
    cdef Workroom room
    cdef readonly Ints where
    cdef Ints home, next, seen, choice, waiting, bond
    cdef Flags used
    cdef Floats load, done, left, pull, priority, costs, same, near
    cdef Floats2 rest

cdef bint _build(StepArrays a, ListState s, bint careful) noexcept nogil
cdef void _settle(StepArrays a, ListState s, Int g, Int d) noexcept nogil
cdef Int _open_devices(StepArrays a, ListState s, Int g, bint careful) noexcept nogil
cdef bint _pack(StepArrays a, ListState s, Int g, Int d) noexcept nogil
cdef void _put(StepArrays a, ListState s, Int v) noexcept nogil
cdef Int _best_device(StepArrays a, ListState s, Int v, Int last, bint careful) noexcept nogil
cdef void _attract(StepArrays a, ListState s, Int g) noexcept nogil
cdef Float _cost(StepArrays a, ListState s, Int v, Int d, Int last, Int latest, Float least) noexcept nogil
cdef Int _root(Ints root, Int x) noexcept nogil
