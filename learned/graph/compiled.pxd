from gangplan.simulator.gangs.arrays cimport Arrays
from gangplan.solvers.native cimport Float, Int, Ints, Ints2, Single, Singles, Singles2, Singles3, Singles4

cdef enum:
    BLOCK = 16

cdef class Graph(Arrays):
    cdef Singles2 x, h, new, told
    cdef Ints kind, source, target, relation
    cdef Singles weight

cdef class CompiledNetwork(Arrays):
    cdef Singles head_bias, nothing
    cdef Singles2 enter_bias, head, last, low, high
    cdef Singles3 enter, root_bias
    cdef Singles4 root, message
    cdef Ints2 ends
    cdef Ints scored

cpdef Int strange(Graph g, CompiledNetwork net) noexcept nogil
cdef void _multiply(
    Singles2 a, Int low, Int high, Singles2 b, Singles start, Singles2 out, Int at
) noexcept nogil
cdef void _rectify(Singles2 x, Int low, Int high) noexcept nogil
cdef void _hear(Graph g, CompiledNetwork net, Int layer, Int r) noexcept nogil
cdef void scores(Graph g, CompiledNetwork net) noexcept nogil
cdef bint _fits(Graph g, CompiledNetwork net) noexcept nogil
