from gangplan.solvers.native cimport Float, Floats, Floats2, Int, Ints, Ints2, Random
