"""Jobs that slow one another down on shared servers and links, placed once an interval and never moved.

The ground of Harmony (Bao, Peng, Wu; INFOCOM 2019 and ToN 2023): interference is hidden, a policy sees types, demands
and observed speeds. docs/interference.md says what is simulated.
"""
