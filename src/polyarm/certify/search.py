r"""Is every witness refuted? Certified lower bounds on the values of all of them, which are not convex.

The mixes are cut into boxes; `certify.cuts` bounds the values in one box from below. A box whose bound exceeds what is
asked is done with. Any other is looked at for a witness, and divided where the chord of the bound is farthest above the
square that it stands for: there the chords of both parts touch the square.
"""

from typing import NamedTuple

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import struct
from polyarm._types import FloatArray
from polyarm.certify.cuts import (
    Box,
    Cuts,
    CutWork,
    Look,
    bound_box,
    look_from,
    make_cut_work,
    move_shares,
    release_prices,
    set_cut,
    write_cuts,
    write_tangent,
    write_tangents,
)
from polyarm.certify.evidence import TOGETHER, Evidence, breaks_known_row, witness_value
from polyarm.certify.witnesses import DescentWork, improve_witness, make_descent_work
from polyarm.polytope.linear import normalise
from polyarm.polytope.penalised import forget_basis
from polyarm.polytope.projection import PROJECTED, ProjectionWork, make_projection_work, project_polytope
from polyarm.tolerances import CERTIFIED_MARGIN

# Outcomes of a search.
CERTIFIED = 1  # every witness's value exceeds what was asked, for certain
WITNESS = 0  # a mix with a smaller value was found
UNRESOLVED = -1  # the node budget ran out

#: The most boxes that wait to be examined.
_MAX_OPEN = 600
#: Neither part of a divided interval is shorter than this share of it.
_LEAST_PART = 0.1
#: A chord error this small, as a share of the largest that the box allows, does not explain a low bound.
_NEGLIGIBLE = 1e-3
#: A search that only decides looks for better witnesses in its first boxes, then in one of this many.
_EAGER = 12
#: Mixes this many times worse than the incumbent are not worth improving.
_WORTH_IMPROVING = 1.5
#: Larger values are not told apart: bounds must be able to exceed them.
_BEYOND_DOUBT = 1e12
#: In the descent of a witness whose coordinates are averaged: how often a step that is too long is halved.
_HALVINGS = 4


@struct
class Stack:
    """Open boxes (600, K): their ends, a mix to look from, and the bound."""

    low: FloatArray
    high: FloatArray
    mixes: FloatArray
    bounds: FloatArray


@struct
class Repair:
    """Scratch of moving a mix into the known rows: `columns` (1 + d, K) state these, `ones` (K,) weigh all arms."""

    columns: FloatArray
    ones: FloatArray
    multipliers: FloatArray
    projected: FloatArray
    projection: ProjectionWork


@struct
class SearchWork:
    """Scratch of the search: for bounding a box, for letting a witness descend, and the witness looked at.

    `columns` is for linear programs beside it.
    """

    bounding: CutWork
    descending: CutWork
    repairing: Repair
    stack: Stack
    candidate: FloatArray
    columns: FloatArray
    descent: DescentWork


class Task(NamedTuple):
    """The task of a search.

    `incumbent` is the smallest witness value known, or a threshold to be exceeded: boxes are divided until their bounds
    exceed (1 - `accuracy`) times that. The search ends early once it finds a value of at most `enough` (0: never,
    unless nothing smaller is possible). `penalty` steers the search for better witnesses; `max_cells` boxes may be
    examined.
    """

    incumbent: float
    accuracy: float
    enough: float
    penalty: float
    max_cells: int


def make_search_work(n_arms: int, n_constraints: int) -> SearchWork:
    """Allocate the scratch of searches of one shape."""
    k, m = n_arms, _MAX_OPEN
    return SearchWork(
        bounding=make_cut_work(n_arms, n_constraints),
        descending=make_cut_work(n_arms, n_constraints),
        repairing=Repair(
            columns=np.ones((n_constraints + 1, k)),
            ones=np.ones(k),
            multipliers=np.zeros(n_constraints),
            projected=np.zeros(k),
            projection=make_projection_work(n_arms, n_constraints),
        ),
        stack=Stack(np.zeros((m, k)), np.zeros((m, k)), np.zeros((m, k)), np.zeros(m)),
        candidate=np.zeros(k),
        columns=np.zeros((n_constraints + 1, k)),
        descent=make_descent_work(n_arms, n_constraints),
    )


@kernel
def _fit_mix(low: FloatArray, high: FloatArray, mix: FloatArray) -> None:
    """Move a mix, in place, into a box that contains mixes."""
    missing = 1.0
    for a in range(mix.size):
        mix[a] = min(max(mix[a], low[a]), high[a])
        missing -= mix[a]
    for a in range(mix.size):
        share = min(max(mix[a] + missing, low[a]), high[a])
        missing -= share - mix[a]
        mix[a] = share


@kernel
def _choose_arm(cuts: Cuts, look: Look, box: Box) -> int:
    """The arm whose chord is farthest above its square, as the tangent weighs it.

    If the mix touches nearly every square, it is the arm whose chord could be farthest above; without any weight, the
    one with the widest range. An arm that is nearly fixed is never divided again.
    """
    chosen, largest, roomiest, room, widest = 0, 0.0, -1, 0.0, 0
    for a in range(box.mix.size):
        weight = 0.0
        for k in range(look.tolls.size):
            weight += look.tolls[k] * cuts.curves[k, a]
        width = box.high[a] - box.low[a]
        error = weight * (box.mix[a] - box.low[a]) * (box.high[a] - box.mix[a])
        if error > largest:
            chosen, largest = a, error
        if 0.25 * weight * width * width > room:
            roomiest, room = a, 0.25 * weight * width * width
        if width > box.high[widest] - box.low[widest]:
            widest = a
    if largest > _NEGLIGIBLE * room:
        return chosen
    return roomiest if roomiest >= 0 else widest


@kernel
def _push(place: int, bound: float, box: Box, stack: Stack) -> None:
    for a in range(box.mix.size):
        stack.low[place, a] = box.low[a]
        stack.high[place, a] = box.high[a]
        stack.mixes[place, a] = box.mix[a]
    stack.bounds[place] = bound


@kernel
def _divide(top: int, lower: float, work: SearchWork) -> int:
    """Push the two parts of the box, the one that is shorter in the divided arm last; returns the stack's height."""
    box, stack = work.bounding.box, work.stack
    arm = _choose_arm(work.bounding.cuts, work.bounding.look, box)
    width = box.high[arm] - box.low[arm]
    middle = max(box.low[arm] + _LEAST_PART * width, min(box.mix[arm], box.high[arm] - _LEAST_PART * width))
    above = top if box.high[arm] - middle > middle - box.low[arm] else top + 1
    _push(top, lower, box, stack)
    _push(top + 1, lower, box, stack)
    stack.low[above, arm] = middle
    stack.high[2 * top + 1 - above, arm] = middle
    return top + 2


@kernel
def _load(place: int, work: SearchWork) -> None:
    """Take a box from the stack, less the part that is out of reach because shares sum to one."""
    box, stack = work.bounding.box, work.stack
    least, most = 0.0, 0.0
    for a in range(box.mix.size):
        least += stack.low[place, a]
        most += stack.high[place, a]
    for a in range(box.mix.size):
        box.low[a] = max(stack.low[place, a], stack.high[place, a] - max(most - 1.0, 0.0))
        box.high[a] = min(stack.high[place, a], stack.low[place, a] + max(1.0 - least, 0.0))
        box.mix[a] = stack.mixes[place, a]
    _fit_mix(box.low, box.high, box.mix)


@kernel
def _least_open(top: int, bounds: FloatArray) -> float:
    """The lowest bound of an open box: what is certain if the search is given up now."""
    least = np.inf
    for k in range(top):
        least = min(least, bounds[k])
    return least


@kernel
def _keep_known_rows(evidence: Evidence, repair: Repair, mix: FloatArray) -> None:
    """Move a mix, in place, to the nearest one that satisfies the known rows, if it breaks one."""
    if not breaks_known_row(evidence, mix):
        return
    columns = repair.columns
    for a in range(mix.size):
        columns[0, a], repair.ones[a] = 1.0, 1.0
        for i in range(evidence.known.size):
            columns[1 + i, a] = evidence.known_rows[i, a] if evidence.known[i] else -1.0  # always satisfied
    for i in range(evidence.known.size):
        repair.multipliers[i] = 0.0
    status = project_polytope(mix, repair.ones, columns, repair.multipliers, repair.projection, repair.projected)
    if status == PROJECTED:
        for a in range(mix.size):
            mix[a] = repair.projected[a]
        normalise(mix)  # rows have no constant, so they are kept


@kernel
def _descend_alone(
    evidence: Evidence, scale: float, iterations: int, work: CutWork, repair: Repair, q: FloatArray
) -> float:
    """Lower the value of a witness, in place, where coordinates are averaged; returns it.

    One step: tangents in place of the variances make every part convex and larger, equal at q. What lowers them
    lowers the value; a step that does not is halved. Known rows are only soft there, and the best witnesses
    are often at the edge of one: a mix that is beyond it is moved back.
    """
    box, n_arms = work.box, q.size
    _keep_known_rows(evidence, repair, q)
    value = witness_value(evidence, q)
    for _ in range(iterations):
        for a in range(n_arms):
            box.low[a], box.high[a], box.mix[a], box.marks[a] = 0.0, 1.0, q[a], 1
        write_tangents(evidence, scale, work)
        set_cut(evidence, value if 0.0 < value < np.inf else scale, work.cuts)
        release_prices(work.look)
        look_from(box.mix, work.cuts, work.look)
        write_tangent(scale, work.cuts, work.look)
        move_shares(scale, work.cuts, work.look, box)
        _keep_known_rows(evidence, repair, box.mix)
        found = witness_value(evidence, box.mix)
        for _halving in range(_HALVINGS):
            if found < value:
                break
            for a in range(n_arms):
                box.mix[a] = 0.5 * (q[a] + box.mix[a])
            found = witness_value(evidence, box.mix)
        if not found < value * (1.0 - 1e-6):
            break
        value = found
        for a in range(n_arms):
            q[a] = box.mix[a]
    return value


@kernel
def descend(evidence: Evidence, penalty: float, iterations: int, work: SearchWork, q: FloatArray) -> float:
    """Lower the value of a witness in place by a few steps; returns it."""
    if evidence.terms.kind == TOGETHER:
        return float(improve_witness(evidence, penalty, iterations, work.descent, q))
    return float(_descend_alone(evidence, 1.0, iterations, work.descending, work.repairing, q))


@kernel
def _begin(evidence: Evidence, cut: float, work: SearchWork) -> float:
    """Put all mixes on the stack as one box, to be looked at from the arm that is the best witness, known rows aside.

    Returns the size of witness values, for a search that knows none yet.
    """
    mix, box, cuts, look = work.candidate, work.bounding.box, work.bounding.cuts, work.bounding.look
    for a in range(mix.size):
        box.low[a], box.high[a], box.mix[a], mix[a] = 0.0, 1.0, 1.0 / mix.size, 0.0
    write_cuts(evidence, cut, work.bounding)
    best, least, scale = 0, np.inf, 0.0
    for a in range(mix.size):
        mix[a] = 1.0
        look_from(mix, cuts, look)
        mix[a] = 0.0
        value, rough = 0.0, 0.0
        for k in range(look.x.size):
            if cuts.used[k] == 1 and cuts.softness[k] == 0.0 and look.x[k] > 0.0:
                value += look.x[k] ** 2 / look.n[k]
                rough += look.x[k] ** 2 / cuts.n_sizes[k]  # the answer itself has no length
        scale = max(scale, rough)
        if value < least:
            best, least = a, value
    for a in range(mix.size):
        box.mix[a] = 1.0 if a == best else 0.0
    _push(0, 0.0, box, work.stack)
    return scale if scale > 0.0 else _BEYOND_DOUBT


@kernel
def _examine(evidence: Evidence, lower: float, cut: float, scale: float, work: SearchWork) -> float:
    """Bound the box that was loaded; leaves its best mix as the candidate."""
    box, mix = work.bounding.box, work.candidate
    write_cuts(evidence, scale, work.bounding)
    lower = bound_box(evidence, lower, cut, scale, work.bounding)
    for a in range(mix.size):
        mix[a] = box.mix[a]
    return lower


@kernel
def search_witness(evidence: Evidence, task: Task, work: SearchWork, witness_out: FloatArray) -> tuple[int, int, float]:
    """Bound the values of all witnesses from below, as a `Task` asks; `witness_out` is replaced by better witnesses.

    Returns the outcome, the number of boxes examined, and a lower bound (for WITNESS: the witness's value).
    """
    if task.incumbent <= 0.0:
        return WITNESS, 0, task.incumbent
    stack, mix = work.stack, work.candidate
    incumbent = min(task.incumbent, _BEYOND_DOUBT)
    cut = (1.0 - task.accuracy) * incumbent * (1.0 + CERTIFIED_MARGIN)
    largest = _begin(evidence, cut, work)
    forget_basis(work.descent.lp)
    steps = 3 if task.enough > 0.0 else 20
    top, cells, smallest = 1, 0, np.inf
    while top > 0:
        top -= 1
        lower = stack.bounds[top]
        if lower > cut:
            continue
        if cells >= task.max_cells or top >= _MAX_OPEN - 2:
            return UNRESOLVED, cells, _least_open(top + 1, stack.bounds)
        cells += 1
        _load(top, work)
        lower = _examine(evidence, lower, cut, min(cut, largest), work)
        if lower > cut:
            continue
        found = witness_value(evidence, mix)
        eager = task.enough == 0.0 or cells <= _EAGER or cells % _EAGER == 0 or found < smallest
        # An infinite value breaks a known row: the next best mix does not.
        if eager and (found < _WORTH_IMPROVING * incumbent or found == np.inf):
            smallest = min(smallest, found)
            found = descend(evidence, task.penalty, steps, work, mix)
        if found < incumbent or found <= task.enough:
            for a in range(mix.size):
                witness_out[a] = mix[a]
            incumbent = found
            cut = (1.0 - task.accuracy) * incumbent * (1.0 + CERTIFIED_MARGIN)
        if found <= task.enough:
            return WITNESS, cells, found
        top = _divide(top, lower, work)
    return CERTIFIED, cells, (1.0 - task.accuracy) * incumbent
