"""With r > 0 several answers are right; the characteristic time belongs to the one that is easiest to certify."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from polyarm._types import FloatArray
from polyarm.bounds.characteristic import CharacteristicTime, characteristic_time, moves_to
from polyarm.families.family import Family


def search_answers(
    family: Family,
    means: FloatArray,
    vertices: FloatArray,
    columns: FloatArray,
    start: CharacteristicTime,
    r: float,
) -> tuple[FloatArray, CharacteristicTime]:
    r"""Look for the r-optimal policy p whose T is smallest, starting from the optimal vertex.

    .. math:: \max_{p,\,w,\,z} z \quad\text{s.t.}\quad
              \mu^\top(p - v) + r \ge z\,\|p - v\|_{\sigma^2/w} \ \text{for every vertex } v

    over p = a mixture of vertices and w in the set of `columns`. Not concave jointly: several starts, local solver, and
    each answer's T is then computed exactly, so that what is returned is attained but perhaps not the smallest.
    """
    order = np.argsort(-(vertices @ means))
    best_value = float(vertices[order[0]] @ means)
    near = vertices[[v for v in order if vertices[v] @ means >= best_value - 4.0 * r][: 2 * means.size]]
    optimum = vertices[order[0]]
    best = (optimum, start)
    ascent = _Ascent(family.scale, means, vertices, near, r)
    for lean in (0.02, 0.2, 0.5):
        mixture = (1.0 - lean) * np.eye(len(near))[0] + lean / len(near)
        answer = _climb(ascent, columns, mixture, start.allocation)
        if float(answer @ means) < best_value - r:
            continue
        found = characteristic_time(family, means, moves_to(answer, vertices), columns, r)
        if found.time < best[1].time:
            best = (answer, found)
    return best


@dataclass(frozen=True)
class _Ascent:
    """The program of one local search: its point is the shares of the `near` vertices, the allocation, and z."""

    scale: FloatArray
    means: FloatArray
    vertices: FloatArray
    near: FloatArray
    r: float

    @property
    def n_mix(self) -> int:
        return len(self.near)

    def _split(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """The answer's gaps to every vertex, what a unit of each weighs, the norms of the gaps, and z."""
        gaps = x[: self.n_mix] @ self.near - self.vertices
        weight = self.scale**2 / x[self.n_mix : -1]
        norms = np.sqrt(np.maximum((gaps**2 * weight).sum(axis=1), 1e-16))
        return gaps, weight, norms, float(x[-1])

    def margins(self, x: FloatArray) -> FloatArray:
        """Return by how much each vertex is beaten at this z."""
        gaps, _, norms, z = self._split(x)
        signal: FloatArray = gaps @ self.means + self.r - z * norms
        return signal

    def margins_slope(self, x: FloatArray) -> FloatArray:
        """Return the Jacobian of `margins`."""
        gaps, weight, norms, z = self._split(x)
        by_answer = self.means - z * gaps * weight / norms[:, None]
        by_allocation = 0.5 * z * gaps**2 * weight / x[self.n_mix : -1] / norms[:, None]
        return np.hstack([by_answer @ self.near.T, by_allocation, -norms[:, None]])

    def start(self, mixture: FloatArray, allocation: FloatArray) -> FloatArray:
        """Return the point of a mixture and an allocation, with the largest z that they allow."""
        x = np.concatenate([mixture, allocation, [0.0]])
        x[-1] = max(0.0, float(np.min(self.margins(x) / np.maximum(1e-12, -self.margins_slope(x)[:, -1]))))
        return x


def _climb(ascent: _Ascent, columns: FloatArray, mixture: FloatArray, allocation: FloatArray) -> FloatArray:
    """Ascend the smallest signal-to-noise ratio over answers and allocations at once; return the answer."""
    n_mix, n_arms = ascent.n_mix, ascent.means.size
    floor = 1e-4 / n_arms
    w = np.maximum(allocation, floor)
    x = ascent.start(mixture, w / w.sum())
    slope_out = np.zeros(x.size)
    slope_out[-1] = -1.0
    sums = np.zeros((2, x.size))
    sums[0, :n_mix] = 1.0
    sums[1, n_mix:-1] = 1.0
    constraints: list[Any] = [
        {"type": "ineq", "fun": ascent.margins, "jac": ascent.margins_slope},
        {"type": "eq", "fun": lambda x: sums @ x - 1.0, "jac": lambda x: sums},
    ]
    if columns.shape[0] > 1:
        rows = np.zeros((columns.shape[0] - 1, x.size))
        rows[:, n_mix:-1] = -columns[1:]
        constraints.append({"type": "ineq", "fun": lambda x: rows @ x, "jac": lambda x: rows})
    solve: Any = minimize  # its stubs refuse constraint dictionaries with Jacobians
    result = solve(
        lambda x: -float(x[-1]),
        x,
        jac=lambda x: slope_out,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * n_mix + [(floor, 1.0)] * n_arms + [(0.0, None)],
        constraints=constraints,
        options={"maxiter": 200, "ftol": 1e-10},
    )
    shares = np.maximum(result.x[:n_mix], 0.0)
    answer: FloatArray = shares / shares.sum() @ ascent.near
    return answer
