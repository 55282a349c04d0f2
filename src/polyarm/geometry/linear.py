"""Small dense linear algebra shared by the kernels."""

from polyarm._compile import kernel
from polyarm._types import FloatArray


@kernel
def solve_definite(system: FloatArray, solution_out: FloatArray) -> None:
    """Solve a symmetric positive definite system in place.

    `system` has shape (n, n + 1): the matrix and, as last column, the right-hand side. Elimination without
    pivoting is stable for such matrices.
    """
    n = system.shape[0]
    for c in range(n):
        for i in range(c + 1, n):
            factor = system[i, c] / system[c, c]
            if factor != 0.0:
                for k in range(c, n + 1):
                    system[i, k] -= factor * system[c, k]
    for c in range(n - 1, -1, -1):
        total = system[c, n]
        for k in range(c + 1, n):
            total -= system[c, k] * solution_out[k]
        solution_out[c] = total / system[c, c]
