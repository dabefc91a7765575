from gangplan.solvers.native cimport Flags, Flags2, Float, Floats, Floats2, Int, Ints, Ints2, Sorting
