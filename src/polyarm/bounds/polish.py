r"""The last few per cent of a plan: local solves over allocation and answer at once, against a list of cuts.

The soft minimum of `ascent` gets near the optimum fast and then creeps; here the hard minimum is raised by sequential
quadratic programming. A cut enters by its root, :math:`\sqrt{f_k}`: for a row that is slack over length, which is
nearly linear in p.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from polyarm._types import BoolArray, FloatArray

#: Cuts whose root is within this factor of the least are taken in from the start.
_NEAR = 1.4
#: A cut that was left out is taken in when its root falls below this multiple of the least.
_MISSED = 1.2
_SOLVES = 4
_ITERATIONS = 40


class Cuts(NamedTuple):
    """Every way of being wrong that is taken into account: unknown rows, then witnesses, at one pull in all.

    `rows` and `row_noise` (d_u, K) are those of the unknown rows, `known_rows` are imposed on the answer; `mixes` are
    the witnesses and `excess` (n, d_u) what they exceed the unknown rows by.
    """

    means: FloatArray
    reward_noise: FloatArray
    r: float
    rows: FloatArray
    row_noise: FloatArray
    known_rows: FloatArray
    mixes: FloatArray
    excess: FloatArray


def root_cuts(cuts: Cuts, w: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the signed root of every cut at allocation w and answer p, and its slopes by w, then by p."""
    slack = -cuts.rows @ p
    length = (p**2 * cuts.row_noise / w).sum(axis=1)
    push = (slack / length)[:, None]
    row_values = 0.5 * slack * np.abs(slack) / length
    row_by_w = 0.5 * np.abs(push) * push * p**2 * cuts.row_noise / w**2
    row_by_p = -np.abs(push) * (cuts.rows + push * p * cuts.row_noise / w)
    x = cuts.mixes - p
    gap = np.maximum(cuts.r - x @ cuts.means, 0.0)
    length = np.maximum((x**2 * cuts.reward_noise / w).sum(axis=1), 1e-30)
    push = (gap / length)[:, None]
    row_length = np.maximum(cuts.mixes**2 @ (cuts.row_noise / w).T, 1e-300)
    row_push = cuts.excess / row_length
    values = 0.5 * (gap**2 / length + (cuts.excess * row_push).sum(axis=1))
    by_w = 0.5 * (push**2 * x**2 * cuts.reward_noise + cuts.mixes**2 * (row_push**2 @ cuts.row_noise)) / w**2
    by_p = push * cuts.means + push**2 * x * cuts.reward_noise / w
    every = np.concatenate([row_values, values])
    roots = np.sqrt(np.maximum(np.abs(every), 1e-30))
    slopes = np.hstack([np.vstack([row_by_w, by_w]), np.vstack([row_by_p, by_p])])
    return np.copysign(roots, every), 0.5 * slopes / roots[:, None]


def improve_locally(
    cuts: Cuts, allocation: FloatArray, answer: FloatArray, trust: float, floor: float, fixed: bool
) -> tuple[FloatArray, FloatArray, float]:
    """Maximise the least cut within `trust` of a plan; returns allocation, answer and the least cut there.

    Far cuts are left out at first; those that the solution falls below are taken in, and it is solved again. `fixed`
    leaves the allocation alone; otherwise no share of it falls below `floor`, or below what it was.
    """
    roots, _ = root_cuts(cuts, allocation, answer)
    unit = float(roots.min())
    if unit <= 0.0:
        return allocation, answer, 0.0
    taken = roots <= _NEAR * unit
    w, p = allocation, answer
    for _ in range(_SOLVES):
        w, p = _solve(cuts, taken, allocation, answer, unit, trust, floor, fixed)
        roots, _ = root_cuts(cuts, w, p)
        missed = ~taken & (roots < _MISSED * roots[taken].min())
        if not missed.any():
            break
        taken |= missed
    return w, p, max(float(roots.min()), 0.0) ** 2


def _solve(
    cuts: Cuts,
    taken: BoolArray,
    allocation: FloatArray,
    answer: FloatArray,
    unit: float,
    trust: float,
    floor: float,
    fixed: bool,
) -> tuple[FloatArray, FloatArray]:
    """Maximise the least root, in units of `unit`, of the cuts taken."""
    n = answer.size

    def margins(z: FloatArray) -> FloatArray:
        roots, _ = root_cuts(cuts, z[:n], z[n:-1])
        above: FloatArray = roots[taken] / unit - z[-1]
        return above

    def margins_slope(z: FloatArray) -> FloatArray:
        _, slopes = root_cuts(cuts, z[:n], z[n:-1])
        return np.hstack([slopes[taken] / unit, np.full((int(taken.sum()), 1), -1.0)])

    sums = np.zeros((2, 2 * n + 1))
    sums[0, :n] = sums[1, n:-1] = 1.0
    sums = sums[1:] if fixed else sums
    constraints: list[dict[str, Any]] = [
        {"type": "ineq", "fun": margins, "jac": margins_slope},
        {"type": "eq", "fun": lambda z: sums @ z - 1.0, "jac": lambda z: sums},
    ]
    known = cuts.known_rows
    if known.size:
        imposed = np.hstack([np.zeros((len(known), n)), -known, np.zeros((len(known), 1))])
        constraints.append({"type": "ineq", "fun": lambda z: imposed @ z, "jac": lambda z: imposed})
    reach = 0.0 if fixed else trust
    floors = np.minimum(allocation, floor)
    bounds = [(max(f, x - reach), min(1.0, x + reach)) for x, f in zip(allocation, floors, strict=True)]
    bounds += [(max(0.0, x - trust), min(1.0, x + trust)) for x in answer] + [(0.0, 10.0)]
    downhill = np.zeros(2 * n + 1)
    downhill[-1] = -1.0
    solve: Any = minimize  # its stubs refuse constraint dictionaries with Jacobians
    found = solve(
        lambda z: -float(z[-1]),
        np.concatenate([allocation, answer, [1.0]]),
        jac=lambda z: downhill,
        method="SLSQP",
        bounds=bounds,
        constraints=constraints,
        options={"maxiter": _ITERATIONS, "ftol": 1e-6},
    ).x
    if not np.all(np.isfinite(found)):
        return allocation, answer
    p = np.maximum(found[n:-1], 0.0)
    p = _return_to_known(known, answer, p / p.sum())
    if fixed:
        return allocation, p
    w = np.maximum(found[:n], floors)
    return w / w.sum(), p


def _return_to_known(known: FloatArray, safe: FloatArray, mix: FloatArray) -> FloatArray:
    """Move a mix that round-off has put outside a known row as far back towards `safe` as it takes."""
    for share in (0.0, *(0.5**k for k in range(40, 0, -1))):
        blend: FloatArray = (1.0 - share) * mix + share * safe
        if float(np.max(known @ blend, initial=0.0)) <= 0.0:
            return blend
    return safe
