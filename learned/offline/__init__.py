"""Plans of whole problems by a graph network that corrects the order of a classic rule, as optima teach it."""
