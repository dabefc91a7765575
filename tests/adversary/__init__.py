"""Attacks on what is proved: enumeration of tiny problems, mutated and forged certificates."""
