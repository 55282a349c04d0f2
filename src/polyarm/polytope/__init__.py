"""Geometry of {x on the simplex, G x <= 0}: optimum, neighbours, vertices, projections.

A polytope is passed to every kernel as `columns`, shape (1 + d, K): row 0 is all ones (the simplex) and
rows 1..d are G, so that column a holds everything arm a contributes to the equations.
"""
