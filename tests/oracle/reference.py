"""References for the geometry oracles: HiGHS, exact rational arithmetic and brute force.

Nothing here imports polyarm's numerics. A polytope {x on the simplex, G x <= 0} is given by its matrix G (d, K).
"""

import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Generator = np.random.Generator

#: HiGHS statuses.
SOLVED = 0
INFEASIBLE = 2


# -- Polytopes -------------------------------------------------------------------------------------------------


def make_columns(G: FloatArray) -> FloatArray:
    """Put the row of ones on top of G, as the kernels want it."""
    return np.vstack([np.ones((1, G.shape[1])), G])


def make_equations(G: FloatArray) -> FloatArray:
    """Return [1 0; G I], the equations of the arms and the slacks."""
    d = G.shape[0]
    return np.hstack([make_columns(G), np.vstack([np.zeros((1, d)), np.eye(d)])])


def draw_gaussian(rng: Generator, K: int, d: int) -> FloatArray:
    return rng.normal(size=(d, K)) + float(rng.choice([-1.0, -0.5, 0.0, 0.3, 0.6]))


def draw_integer(rng: Generator, K: int, d: int) -> FloatArray:
    return rng.integers(-2, 3, size=(d, K)).astype(np.float64)


def draw_sparse(rng: Generator, K: int, d: int) -> FloatArray:
    return np.where(rng.random((d, K)) < 0.3, rng.integers(-2, 2, size=(d, K)).astype(np.float64), 0.0)


def draw_repeating(rng: Generator, K: int, d: int) -> FloatArray:
    """Integer rows, some of them duplicates, negatives (together: an equality) or zero."""
    G = draw_integer(rng, K, d)
    for i in range(d):
        kind = rng.random()
        if i > 0 and kind < 0.3:
            G[i] = G[rng.integers(i)]
        elif i > 0 and kind < 0.5:
            G[i] = -G[rng.integers(i)]
        elif kind < 0.6:
            G[i] = 0.0
    return G


def draw_pinned(rng: Generator, K: int, d: int) -> FloatArray:
    """Equalities through a planted mix (a single one once there are enough of them), feasible up to round-off."""
    inside = rng.dirichlet(np.ones(K))
    G = rng.normal(size=(d, K))
    G -= (G @ inside)[:, None]
    for i in range(1, d, 2):
        G[i] = -G[i - 1]
    return G


def draw_thin(rng: Generator, K: int, d: int) -> FloatArray:
    """Slabs of widths down to 1e-7 around a planted point, which is feasible by at least half of that."""
    return draw_pinned(rng, K, d) - 10.0 ** rng.integers(-7, 0, size=(d, 1))


def draw_decimal(rng: Generator, K: int, d: int) -> FloatArray:
    """Costs and bounds with one decimal: degenerate up to round-off."""
    return np.round(rng.normal(size=(d, K)), 1) - np.round(0.3 + 0.3 * rng.normal(size=(d, 1)), 1)


def draw_scaled(rng: Generator, K: int, d: int) -> FloatArray:
    return (rng.normal(size=(d, K)) - 0.5) * 10.0 ** rng.uniform(-3.0, 3.0, size=(d, 1))


Draw = Callable[[Generator, int, int], FloatArray]
FAMILIES: dict[str, Draw] = {
    "gaussian": draw_gaussian,
    "integer": draw_integer,
    "sparse": draw_sparse,
    "repeating": draw_repeating,
    "thin": draw_thin,
    "decimal": draw_decimal,
    "scaled": draw_scaled,
}


def draw_objective(rng: Generator, K: int) -> FloatArray:
    """Gaussian, integer with ties, constant zero, or badly scaled."""
    kind = rng.integers(6)
    if kind == 0:
        return np.zeros(K)
    if kind <= 2:
        return rng.integers(-2, 3, size=K).astype(np.float64)
    if kind == 3:
        return rng.normal(size=K) * 10.0 ** rng.integers(-4, 5)
    return rng.normal(size=K)


# -- Linear programs -------------------------------------------------------------------------------------------


def solve_with_highs(objective: FloatArray, G: FloatArray) -> tuple[int, float, FloatArray]:
    """Maximise by HiGHS at its tightest tolerances: its status, the value and the point."""
    d, K = G.shape
    result = linprog(
        -objective,
        A_ub=G if d else None,
        b_ub=np.zeros(d) if d else None,
        A_eq=np.ones((1, K)),
        b_eq=np.ones(1),
        bounds=(0.0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.fun is None or result.status != SOLVED:
        return int(result.status), np.nan, np.zeros(K)
    return SOLVED, -float(result.fun), np.asarray(result.x, dtype=np.float64)


def solve_exactly(objective: FloatArray, G: FloatArray) -> tuple[Fraction, Fraction]:
    """Maximise by a simplex method in rational arithmetic (Bland's rule: it always ends).

    Returns the smallest violation max_i (G x)_i^+ that a mix can have (zero unless the set is empty), and the best
    value among the mixes that attain it.

    Every row is relaxed by the same u0 - u, u <= u0, with u0 so large that arm 0 alone is feasible; u is
    maximised first, the objective second: costs are pairs, compared lexicographically.
    """
    d, K = G.shape
    exact = [[Fraction(float(g)) for g in row] for row in G]
    u0 = max([Fraction(0), *(row[0] for row in exact)])
    n = K + d + 2  # arms, slacks, u, slack of u <= u0
    one, nil = Fraction(1), Fraction(0)
    table = [[one] * K + [nil] * (d + 2) + [one]]
    for i, row in enumerate(exact):
        table.append([g - u0 for g in row] + [one if k == i else nil for k in range(d)] + [one, nil, nil])
    table.append([nil] * (K + d) + [one, one, u0])
    first = [nil] * (K + d) + [one, nil, nil]
    second = [Fraction(float(c)) for c in objective] + [nil] * (d + 3)
    basis = [0, *range(K, K + d), K + d + 1]

    def eliminate(target: list[Fraction], source: list[Fraction], column: int) -> None:
        factor = target[column]
        if factor:
            for k in range(n + 1):
                target[k] -= factor * source[k]

    for i in range(1, d + 2):
        eliminate(table[i], table[0], 0)
    eliminate(second, table[0], 0)
    while True:
        entering = next((j for j in range(n) if first[j] > 0 or (first[j] == 0 and second[j] > 0)), None)
        if entering is None:
            return u0 + first[n], -second[n]
        ratios = [(row[n] / row[entering], basis[i], i) for i, row in enumerate(table) if row[entering] > 0]
        leaving = min(ratios)[2]
        pivot = table[leaving][entering]
        table[leaving] = [value / pivot for value in table[leaving]]
        for i, row in enumerate(table):
            if i != leaving:
                eliminate(row, table[leaving], entering)
        eliminate(first, table[leaving], entering)
        eliminate(second, table[leaving], entering)
        basis[leaving] = entering


# -- Vertices --------------------------------------------------------------------------------------------------


def list_bases(G: FloatArray) -> IntArray:
    """Return every choice of 1 + d of the K + d variables."""
    d, K = G.shape
    return np.array(list(itertools.combinations(range(K + d), d + 1)), dtype=np.int64)


def solve_bases(G: FloatArray, bases: IntArray) -> tuple[IntArray, FloatArray]:
    """Return those of the bases that are regular, and the values of their variables."""
    matrices = make_equations(G).T[bases].transpose(0, 2, 1)
    regular = np.abs(np.linalg.det(matrices)) > 1e-9
    return bases[regular], np.linalg.solve(matrices[regular], np.eye(len(G) + 1)[:, :1])[:, :, 0]


def spread_positive(G: FloatArray, bases: IntArray, values: FloatArray) -> FloatArray:
    """Write the arms and slacks of those bases whose values are all positive, shape (n, K + d)."""
    feasible = (values > 0.0).all(axis=1)
    points = np.zeros((int(feasible.sum()), sum(G.shape)))
    np.put_along_axis(points, bases[feasible], values[feasible], axis=1)
    return points


def find_integer_vertices(G: FloatArray) -> IntArray:
    """All vertices for integer G, exactly: rows of coprime counts, whose sum is the common denominator.

    Cramer's rule on every basis; determinants of small integers are integers, so rounding them is exact.
    """
    d, K = G.shape
    bases = list_bases(G)
    matrices = make_equations(G).T[bases]  # rows are the basic columns: determinants do not mind
    scale = _integer_determinants(matrices)
    shares = np.stack(
        [(-1) ** k * _integer_determinants(np.delete(matrices[:, :, 1:], k, axis=1)) for k in range(d + 1)], axis=1
    )
    shares *= np.sign(scale)[:, None]
    feasible = (scale != 0) & (shares >= 0).all(axis=1)
    full = np.zeros((int(feasible.sum()), K + d), dtype=np.int64)
    np.put_along_axis(full, bases[feasible], shares[feasible], axis=1)
    arms = full[:, :K]
    return np.unique(arms // np.gcd.reduce(arms, axis=1, keepdims=True), axis=0)


def _integer_determinants(matrices: FloatArray) -> IntArray:
    values = np.linalg.det(matrices) if matrices.shape[-1] else np.ones(matrices.shape[0])
    rounded = np.rint(values)
    assert np.abs(values - rounded).max() < 1e-3, "not small integers: rounding is not exact"
    return rounded.astype(np.int64)


def rank_of_tight(G: FloatArray, on_arms: NDArray[np.bool_], tight_rows: NDArray[np.bool_]) -> int:
    """Rank of the simplex equality, the tight rows of G and x_a = 0 for the arms not `on_arms`."""
    rest = np.vstack([np.ones((1, int(on_arms.sum()))), G[tight_rows][:, on_arms]])
    return int((~on_arms).sum()) + int(np.linalg.matrix_rank(rest, tol=1e-7))


def are_adjacent(G: FloatArray, first: IntArray, second: IntArray) -> bool:
    """Tell whether two different integer vertices share an edge: their common tight constraints leave one line."""
    on_arms = (first > 0) | (second > 0)
    tight_rows = (G @ first == 0) & (G @ second == 0)
    return rank_of_tight(G, on_arms, tight_rows) == on_arms.size - 1
