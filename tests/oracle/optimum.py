"""The optimum of a linear objective on a set, and the moves to its neighbours, for the oracles of several kernels."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from oracle import reference
from oracle.reference import FloatArray, Generator, IntArray
from polyarm.polytope.lp import OPTIMAL, LpWork, make_basis, make_lp_work, solve_lp, write_vertex
from polyarm.polytope.neighbours import Moves, find_neighbours, make_moves, make_neighbour_work, neighbour_capacity


class Optimum(NamedTuple):
    """A set {simplex, G x <= 0}, an objective, its optimal vertex, the basis, and the work that holds its inverse."""

    G: FloatArray
    objective: FloatArray
    policy: FloatArray
    basis: IntArray
    work: LpWork


def solve(objective: FloatArray, G: FloatArray) -> Optimum | None:
    """Maximise; None for an empty set."""
    d, K = G.shape
    basis, work, policy = make_basis(d), make_lp_work(K, d), np.zeros(K)
    if solve_lp(objective, reference.make_columns(G), basis, work) != OPTIMAL:
        return None
    write_vertex(K, basis, work.inverse, policy)
    return Optimum(G, objective, policy, basis, work)


def draw_solved(rng: Generator, n_arms: range, n_rows: range) -> Iterator[Optimum]:
    """Draw Gaussian sets and objectives without end; yield the optima of those that are not empty."""
    while True:
        K, d = int(rng.integers(n_arms.start, n_arms.stop)), int(rng.integers(n_rows.start, n_rows.stop))
        G = reference.draw_gaussian(rng, K, d)
        optimum = solve(rng.normal(size=K), G)
        if optimum is not None:
            yield optimum


def find_moves(optimum: Optimum, capacity: int | None = None) -> tuple[Moves, int]:
    """Find the moves to the neighbours and their number, or TOO_MANY."""
    d, K = optimum.G.shape
    moves = make_moves(neighbour_capacity(K, d) if capacity is None else capacity, d)
    columns, work = reference.make_columns(optimum.G), make_neighbour_work(K, d)
    return moves, find_neighbours(columns, optimum.basis, optimum.work.inverse, work, moves)
