"""Schedules by a network: which job next and at what degree, decoded so that every plan is feasible."""
