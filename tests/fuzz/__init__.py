"""Fuzzing: valid documents of each kind, changed at random, given to whatever reads them."""
