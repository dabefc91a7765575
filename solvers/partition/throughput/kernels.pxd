from gangplan.solvers.native cimport Flags, Flags2, Float, Floats, Floats2, Halves2, Heap, Int, Ints, Ints2, Random, within
