r"""The last few per cent of a plan: local solves over allocation and answer at once, against a list of cuts.

The soft minimum of the ascent gets near the optimum fast and then creeps; here the hard minimum is raised by linear
programs. A cut enters by its root, :math:`\sqrt{f_k}`: for a row that is slack over length, nearly linear in p.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from polyarm._types import FloatArray

#: A cut counts if its root was within this factor of the least at some point that was tried.
_NEAR = 1.4
_STEPS = 12
_SHRINK = 0.3
#: A step that promises to gain less than this share is not worth taking.
_GAIN = 1e-4


class Cuts(NamedTuple):
    """The ways of being wrong that count: unknown rows, then witnesses, at one pull in all.

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

    Each step maximises the least of the linearised roots within `reach`, which shrinks when the linear model was wrong.
    `fixed` leaves the allocation alone; otherwise no share of it falls below `floor`, or below what it was.
    """
    w, p = allocation, answer
    roots, slopes = root_cuts(cuts, w, p)
    least = float(roots.min())
    if least <= 0.0:
        return allocation, answer, 0.0
    floors = allocation if fixed else np.minimum(allocation, floor)
    lowest = np.concatenate([np.maximum(floors, allocation - trust), np.maximum(0.0, answer - trust)])
    highest = np.concatenate([allocation if fixed else allocation + trust, answer + trust])
    taken = roots <= _NEAR * least
    reach = trust
    for _ in range(_STEPS):
        here = np.concatenate([w, p])
        box = np.maximum(lowest, here - reach), np.minimum(highest, here + reach)
        # In units of the least root: linear programs are solved to about 1e-7, and roots can be small.
        step = _maximise_linearised(roots[taken] / least, slopes[taken] / least, here, box, cuts.known_rows)
        if step is None or step.least < 1.0 + _GAIN:
            break
        trial_w = allocation if fixed else _normalise(step.point[: w.size], floors)
        trial_p = _return_to_known(cuts.known_rows, p, _normalise(step.point[w.size :], np.zeros(p.size)))
        trial_roots, trial_slopes = root_cuts(cuts, trial_w, trial_p)
        reached = float(trial_roots.min())
        taken |= trial_roots <= _NEAR * reached
        if reached <= least:
            reach *= _SHRINK
            continue
        w, p, roots, slopes, least = trial_w, trial_p, trial_roots, trial_slopes, reached
    return w, p, least**2


def _normalise(shares: FloatArray, floors: FloatArray) -> FloatArray:
    """Undo the round-off of a linear program: shares above their floors, and a sum of one."""
    floored = np.maximum(shares, floors)
    normalised: FloatArray = floored / floored.sum()
    return normalised


class _Step(NamedTuple):
    """Where a linear program leads, and the least linearised root that it promises there."""

    point: FloatArray
    least: float


def _maximise_linearised(
    roots: FloatArray,
    slopes: FloatArray,
    here: FloatArray,
    box: tuple[FloatArray, FloatArray],
    known_rows: FloatArray,
) -> _Step | None:
    """Maximise the least of roots that are linear around `here`, over plans (w, p) in a box; None if that fails."""
    n = here.size // 2
    # Variables: w, p, and the least root.
    above = np.hstack([-slopes, np.ones((roots.size, 1))])
    imposed = np.hstack([np.zeros((len(known_rows), n)), known_rows, np.zeros((len(known_rows), 1))])
    sums = np.zeros((2, 2 * n + 1))
    sums[0, :n] = sums[1, n:-1] = 1.0
    objective = np.zeros(2 * n + 1)
    objective[-1] = -1.0
    found = linprog(
        objective,
        A_ub=np.vstack([above, imposed]),
        b_ub=np.concatenate([roots - slopes @ here, np.zeros(len(known_rows))]),
        A_eq=sums,
        b_eq=[1.0, 1.0],
        bounds=[*zip(*box, strict=True), (None, None)],
    ).x
    return None if found is None else _Step(found[:-1], float(found[-1]))


def _return_to_known(known: FloatArray, safe: FloatArray, mix: FloatArray) -> FloatArray:
    """Move a mix that round-off has put outside a known row back towards `safe`, as far as needed."""
    for share in (0.0, *(0.5**k for k in range(40, 0, -1))):
        blend: FloatArray = (1.0 - share) * mix + share * safe
        if float(np.max(known @ blend, initial=0.0)) <= 0.0:
            return blend
    return safe
