"""A user's own PyTorch model as a partition problem.

`load` finds the model and imports torch only then; the other modules import it at once, so nothing outside imports
them before it is needed.
"""
