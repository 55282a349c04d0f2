"""Explorers: one file per sampling rule, and what they share.

An explorer is a rule (a NamedTuple of settings), a state (a struct, changed in place), scratch, and a kernel that says
which arm comes next. Its stop is in `polyarm.stops`.
"""
