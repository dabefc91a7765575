"""How long jobs take by what finished: a distribution of each, and the order that it says."""
