"""Weighted projections on the simplex and on {simplex, G x <= 0}."""

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import Scalars, struct
from polyarm._types import FloatArray
from polyarm.polytope.linear import NewtonWork, find_newton_direction, make_newton_work
from polyarm.tolerances import PROJECTION, SINGULAR

PROJECTED = 0
NOT_CONVERGED = 1

_MAX_NEWTON_STEPS = 2000
_MAX_LINE_SEARCH = 200


class Line(Scalars):
    """A line search: the first step to try, the longest, and the row whose multiplier is zero there (or -1)."""

    first: float
    longest: float
    blocking: int


@struct
class ProjectionWork:
    """Scratch of `project_polytope`; `scales` (d,) are the rows' largest entries."""

    line: Line
    shifted: FloatArray
    trial: FloatArray
    means: FloatArray
    scales: FloatArray
    newton: NewtonWork


def make_projection_work(n_arms: int, n_constraints: int) -> ProjectionWork:
    """Allocate the scratch for polytopes of one shape."""
    return ProjectionWork(
        Line(),
        np.zeros(n_arms),
        np.zeros(n_constraints),
        np.zeros(n_constraints),
        np.zeros(n_constraints),
        make_newton_work(n_constraints),
    )


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
        # The support only shrinks; once it does not, or grows by round-off (ties), it is final.
        if active >= support or active == 0:
            break
        support = active
        tau = total / curvature
    # The shares of a distant point are differences of large numbers: what they lack to sum to one is spread again.
    excess = -1.0
    mass = 0.0
    top = 0
    for a in range(n):
        if point[a] * weights[a] > point[top] * weights[top]:
            top = a
    for a in range(n):
        projection_out[a] = max(0.0, point[a] - tau / weights[a])
        if projection_out[a] > 0.0:
            excess += projection_out[a]
            mass += 1.0 / weights[a]
    if mass == 0.0:
        projection_out[top] = 1.0
    else:
        for a in range(n):
            if projection_out[a] > 0.0:
                projection_out[a] = max(0.0, projection_out[a] - excess / (mass * weights[a]))


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
def _write_curvature(
    weights: FloatArray, columns: FloatArray, projection: FloatArray, means_out: FloatArray, hessian_out: FloatArray
) -> None:
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
        means_out[i] = mean / mass
        for k in range(i + 1):
            covariance = 0.0
            for a in range(n):
                if projection[a] > 0.0:
                    # Centred twice: a variance must not come out negative.
                    covariance += (columns[i + 1, a] - means_out[i]) * (columns[k + 1, a] - means_out[k]) / weights[a]
            hessian_out[i, k] = covariance


@kernel
def _residual(multipliers: FloatArray, work: ProjectionWork) -> float:
    """Largest violated row, or row with a positive multiplier that is not tight, relative to the row's entries."""
    worst = 0.0
    for i in range(multipliers.size):
        amount = work.newton.gradient[i] / work.scales[i]
        worst = max(worst, abs(amount) if multipliers[i] > 0.0 else amount)
    return worst


@kernel
def _find_direction(
    weights: FloatArray, columns: FloatArray, multipliers: FloatArray, work: ProjectionWork, projection: FloatArray
) -> None:
    """Write the Newton direction of the multipliers, solved for rows scaled to entries of one."""
    newton, scales = work.newton, work.scales
    _write_curvature(weights, columns, projection, work.means, newton.hessian)
    curvature = 0.0  # of a row over all arms: what the dual's curvature can be once more arms join the support
    for i in range(multipliers.size):
        total = 0.0
        for a in range(weights.size):
            total += columns[i + 1, a] * columns[i + 1, a] / weights[a]
        curvature = max(curvature, total / (scales[i] * scales[i]))
        newton.gradient[i] /= scales[i]
        for k in range(i + 1):
            newton.hessian[i, k] /= scales[i] * scales[k]
    find_newton_direction(multipliers, 1e-10 * curvature + SINGULAR, newton)
    for i in range(multipliers.size):
        newton.gradient[i] *= scales[i]
        newton.direction[i] /= scales[i]


@kernel
def _polish(
    weights: FloatArray, columns: FloatArray, multipliers: FloatArray, work: ProjectionWork, projection_out: FloatArray
) -> None:
    """Take the Newton step in the shares instead of the multipliers: no difference of large numbers."""
    m, n = columns.shape
    gradient, direction = work.newton.gradient, work.newton.direction
    for a in range(n):
        if projection_out[a] > 0.0:
            change = 0.0
            for i in range(m - 1):
                change += direction[i] * (columns[i + 1, a] - work.means[i])
            projection_out[a] = max(0.0, projection_out[a] - change / weights[a])
    for i in range(m - 1):
        multipliers[i] = max(0.0, multipliers[i] + direction[i])
        total = 0.0
        for a in range(n):
            total += columns[i + 1, a] * projection_out[a]
        gradient[i] = total


@kernel
def _slope(gradient: FloatArray, direction: FloatArray) -> float:
    total = 0.0
    for i in range(direction.size):
        total += gradient[i] * direction[i]
    return total


@kernel
def _write_scales(columns: FloatArray, scales_out: FloatArray) -> float:
    """Write the largest entry of every row; returns the largest of all, at least 1."""
    largest = 1.0
    for i in range(scales_out.size):
        scale = 1e-3  # a row of mere round-off need not be satisfied to more digits
        for a in range(columns.shape[1]):
            scale = max(scale, abs(columns[i + 1, a]))
        scales_out[i] = scale
        largest = max(largest, scale)
    return largest


@kernel
def _write_line(
    point: FloatArray, weights: FloatArray, multipliers: FloatArray, largest: float, work: ProjectionWork
) -> None:
    """Write how far the multipliers may go along the Newton direction, and how far to try first.

    Where the dual is flat the Newton step is huge: start short and lengthen, so as to stop at the first maximum.
    """
    line, direction = work.line, work.newton.direction
    line.longest = 1.0
    line.blocking = -1
    for i in range(multipliers.size):
        if direction[i] < 0.0 and multipliers[i] + line.longest * direction[i] < 0.0:
            line.longest = -multipliers[i] / direction[i]
            line.blocking = i
    reach, size = 1.0, 0.0
    for a in range(point.size):
        reach = max(reach, abs(point[a] * weights[a]))
    reach /= largest
    for i in range(multipliers.size):
        reach = max(reach, multipliers[i])
        size = max(size, abs(direction[i]))
    line.first = min(line.longest, reach / size)


@kernel
def _search_line(
    point: FloatArray,
    weights: FloatArray,
    columns: FloatArray,
    multipliers: FloatArray,
    work: ProjectionWork,
    projection_out: FloatArray,
) -> None:
    """Move the multipliers to the maximum of the dual along the line, cut where a multiplier reaches zero."""
    line, trial, gradient, direction = work.line, work.trial, work.newton.gradient, work.newton.direction
    initial_slope = _slope(gradient, direction)
    low, low_slope = 0.0, initial_slope
    high, high_slope = line.longest, 0.0
    bracketed = False
    step = line.first
    for attempt in range(_MAX_LINE_SEARCH):
        for i in range(multipliers.size):
            trial[i] = max(0.0, multipliers[i] + step * direction[i])
        _evaluate_dual(point, weights, columns, trial, work, projection_out)
        slope = _slope(gradient, direction)
        if abs(slope) <= 1e-9 * initial_slope:
            break
        if slope > 0.0:
            low, low_slope = step, slope
            if step == line.longest:
                break
        else:
            high, high_slope = step, slope
            bracketed = True
        if high - low <= 1e-15 * high:
            break
        if not bracketed:
            step = min(line.longest, 8.0 * step)
        elif attempt % 3 == 2:
            step = 0.5 * (low + high)
        else:
            step = low + (high - low) * low_slope / (low_slope - high_slope)
    for i in range(multipliers.size):
        multipliers[i] = trial[i]
    if line.blocking >= 0 and step == line.longest:
        multipliers[line.blocking] = 0.0


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
    largest = _write_scales(columns, work.scales)
    _evaluate_dual(point, weights, columns, multipliers, work, projection_out)
    for _ in range(_MAX_NEWTON_STEPS):
        residual = _residual(multipliers, work)
        if residual <= PROJECTION:
            return PROJECTED
        _find_direction(weights, columns, multipliers, work, projection_out)
        if residual <= 1e-6:
            _polish(weights, columns, multipliers, work, projection_out)
            if _residual(multipliers, work) <= PROJECTION:
                return PROJECTED
            _evaluate_dual(point, weights, columns, multipliers, work, projection_out)
            _find_direction(weights, columns, multipliers, work, projection_out)
        _write_line(point, weights, multipliers, largest, work)
        _search_line(point, weights, columns, multipliers, work, projection_out)
    return PROJECTED if _residual(multipliers, work) <= PROJECTION else NOT_CONVERGED
