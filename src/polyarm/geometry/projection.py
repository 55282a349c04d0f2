"""Weighted projections on the simplex and on {simplex, G x <= 0}."""

from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._types import FloatArray
from polyarm.geometry.linear import NewtonWork, find_newton_direction, make_newton_work
from polyarm.tolerances import PROJECTION, SINGULAR

PROJECTED = 0
NOT_CONVERGED = 1

_MAX_NEWTON_STEPS = 200
_MAX_LINE_SEARCH = 200


class ProjectionWork(NamedTuple):
    """Scratch of `project_polytope`."""

    shifted: FloatArray
    trial: FloatArray
    newton: NewtonWork


def make_projection_work(n_arms: int, n_constraints: int) -> ProjectionWork:
    """Allocate the scratch for polytopes of one shape."""
    return ProjectionWork(np.zeros(n_arms), np.zeros(n_constraints), make_newton_work(n_constraints))


@kernel
def project_simplex(point: FloatArray, weights: FloatArray, projection_out: FloatArray) -> None:
    r"""Project a point on the simplex in a diagonal norm.

    .. math:: \min_{x \in \Delta} \tfrac12 \sum_a h_a (x_a - y_a)^2, \qquad x_a = (y_a - \tau / h_a)_+

    Newton on the piecewise linear equation for tau from the left: exact once the support stops shrinking,
    so finite. `projection_out` may be `point`.
    """
    n = point.size
    tau = -np.inf
    support = n + 1
    while True:
        total = -1.0
        curvature = 0.0
        active = 0
        for a in range(n):
            if point[a] * weights[a] > tau:
                total += point[a]
                curvature += 1.0 / weights[a]
                active += 1
        # The support only shrinks; that it does not, or grows by round-off at huge entries, means it is final.
        if active >= support or active == 0:
            break
        support = active
        tau = total / curvature
    for a in range(n):
        projection_out[a] = max(0.0, point[a] - tau / weights[a])


@kernel
def _evaluate_dual(
    point: FloatArray,
    weights: FloatArray,
    columns: FloatArray,
    multipliers: FloatArray,
    work: ProjectionWork,
    projection_out: FloatArray,
) -> None:
    """Write the simplex projection at the given row multipliers, and G times it to the gradient."""
    m, n = columns.shape
    for a in range(n):
        shift = 0.0
        for i in range(1, m):
            shift += multipliers[i - 1] * columns[i, a]
        work.shifted[a] = point[a] - shift / weights[a]
    project_simplex(work.shifted, weights, projection_out)
    for i in range(1, m):
        total = 0.0
        for a in range(n):
            total += columns[i, a] * projection_out[a]
        work.newton.gradient[i - 1] = total


@kernel
def _write_curvature(weights: FloatArray, columns: FloatArray, projection: FloatArray, hessian_out: FloatArray) -> None:
    """Write minus the Hessian of the dual on the current support: weighted covariances of the rows."""
    m, n = columns.shape
    mass = 0.0
    for a in range(n):
        if projection[a] > 0.0:
            mass += 1.0 / weights[a]
    for i in range(m - 1):
        mean = 0.0
        for a in range(n):
            if projection[a] > 0.0:
                mean += columns[i + 1, a] / weights[a]
        mean /= mass
        for k in range(i + 1):
            covariance = 0.0
            for a in range(n):
                if projection[a] > 0.0:
                    covariance += (columns[i + 1, a] - mean) * columns[k + 1, a] / weights[a]
            hessian_out[i, k] = covariance


@kernel
def _residual(multipliers: FloatArray, gradient: FloatArray) -> float:
    """Largest violated row, or row with a positive multiplier that is not tight."""
    worst = 0.0
    for i in range(multipliers.size):
        worst = max(worst, abs(gradient[i]) if multipliers[i] > 0.0 else gradient[i])
    return worst


@kernel
def _slope(gradient: FloatArray, direction: FloatArray) -> float:
    total = 0.0
    for i in range(direction.size):
        total += gradient[i] * direction[i]
    return total


@kernel
def project_polytope(
    point: FloatArray,
    weights: FloatArray,
    columns: FloatArray,
    multipliers: FloatArray,
    work: ProjectionWork,
    projection_out: FloatArray,
) -> int:
    r"""Project a point on {simplex, G x <= 0} in a diagonal norm.

    .. math:: \min_{x \in \Delta,\ G x \le 0} \tfrac12 \sum_a h_a (x_a - y_a)^2
              = \max_{\nu \ge 0} \min_{x \in \Delta} \tfrac12 \sum_a h_a (x_a - y_a)^2 + \nu^\top G x

    The dual is concave and piecewise quadratic in d variables: Newton steps with an exact line search, cut
    where a multiplier reaches zero. `multipliers` (d,) is a warm start and is updated; `projection_out` must be another
    array than `point`. Returns PROJECTED, or
    NOT_CONVERGED when stationarity was not reached: on an empty set the multipliers grow without bound, so
    check that the set is not empty (`solve_lp`) before trusting anything else.
    """
    d = multipliers.size
    trial, gradient, direction = work.trial, work.newton.gradient, work.newton.direction
    accepted = 1.0
    curvature = 0.0  # of a row over all arms: what the dual's curvature can be once more arms join the support
    for i in range(1, columns.shape[0]):
        total = 0.0
        for a in range(columns.shape[1]):
            accepted = max(accepted, abs(columns[i, a]))
            total += columns[i, a] * columns[i, a] / weights[a]
        curvature = max(curvature, total)
    accepted *= PROJECTION
    _evaluate_dual(point, weights, columns, multipliers, work, projection_out)
    for _ in range(_MAX_NEWTON_STEPS):
        if _residual(multipliers, gradient) <= accepted:
            return PROJECTED
        _write_curvature(weights, columns, projection_out, work.newton.hessian)
        find_newton_direction(multipliers, 1e-9 * curvature + SINGULAR, work.newton)
        initial_slope = _slope(gradient, direction)
        longest = 1.0
        blocking = -1
        for i in range(d):
            if direction[i] < 0.0 and multipliers[i] + longest * direction[i] < 0.0:
                longest = -multipliers[i] / direction[i]
                blocking = i
        low, low_slope = 0.0, initial_slope
        high, high_slope = longest, 0.0
        step = longest
        for attempt in range(_MAX_LINE_SEARCH):
            for i in range(d):
                trial[i] = max(0.0, multipliers[i] + step * direction[i])
            _evaluate_dual(point, weights, columns, trial, work, projection_out)
            slope = _slope(gradient, direction)
            # The slope falls along the line; a full step that still climbs is as far as we may go.
            if slope >= -1e-9 * initial_slope and (attempt == 0 or slope <= 1e-9 * initial_slope):
                break
            if slope > 0.0:
                low, low_slope = step, slope
            else:
                high, high_slope = step, slope
            if high - low <= 1e-15 * high:
                break
            if attempt % 3 == 2:
                step = 0.5 * (low + high)
            else:
                step = low + (high - low) * low_slope / (low_slope - high_slope)
        for i in range(d):
            multipliers[i] = trial[i]
        if blocking >= 0 and step == longest:
            multipliers[blocking] = 0.0
    return PROJECTED if _residual(multipliers, gradient) <= accepted else NOT_CONVERGED
