"""A pipeline from scores: a network orders the ops, an exact recurrence cuts the orders into stages."""
