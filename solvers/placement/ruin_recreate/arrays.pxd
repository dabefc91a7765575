from gangplan.solvers.native cimport Flags, Flags2, Float, Floats, Floats2, Int, Ints, Ints2, Ints3, Random, Sorting

cdef enum:
    RING, TREE, HIERARCHICAL, SERVERS

cdef enum:
    SLOWDOWN, THROUGHPUT, COMMUNICATION, FRAGMENTATION

cdef enum:
    RUIN = 3
    RACKS = 6

cdef class BatchArrays:
    cdef readonly Int jobs, most
    cdef Int nodes, goal
    cdef bint sharing, guarding
    cdef Float tolerance
    cdef Flags usable, alone_on_nodes, free
    cdef Flags2 apart, accepts
    cdef Ints above, level, kind, gpus, model, collective, servers, together, standing_rows
    cdef Ints2 room, degrees
    cdef Ints3 standing
    cdef Floats bandwidth, inside, across, link, weight, floor, best, gradient, overlap, duty, value, migration
    cdef Floats share, chance
    cdef Floats2 amounts, host, gpu, need, alone, expected

cdef class Placement:
    cdef Int trial, place, kept, before, size, seen
    cdef Float record, least
    cdef readonly Float found
    cdef Flags wide, dirty, inside
    cdef readonly Ints count, changed, gone, many
    cdef Ints whole, guarded, spot, window, room, mark, filled, order, met, chosen, sizes, racks
    cdef Ints2 groups, tasks
    cdef readonly Ints3 rows
    cdef Ints3 here, sums
    cdef readonly Floats cost, fragment
    cdef Floats load, compute, sync, bins, slack
    cdef Floats2 suffer, extra, left, other
    cdef Sorting cheap, roomy
    cdef Random random
