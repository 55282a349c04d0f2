"""Explorers: a sampling rule, a stopping rule and a recommendation, one file per algorithm.

An explorer is a rule (a NamedTuple of settings), a state (a NamedTuple of arrays, changed in place) and a
step (a kernel that returns the next arm, or STOP). `registry` knows them by name.
"""
