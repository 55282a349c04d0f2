r"""What is known about every witness: one-dimensional statistics, each linear in the witness, and their variances.

A *witness* of an answer p is a mix q that satisfies every row and beats p by more than r. Coordinate 0 speaks of the
reward at q, coordinate 1 + i of row i at q. Each has a statistic D that is linear in q, and a variance S that is
quadratic and separable in q; where D is large in terms of sqrt(S), the data contradict that q is a witness.

*Averaged* (every proof): each coordinate has its own E-process :math:`E_k` about q, and its own share of delta; an
average of E-processes is one under every correlation between the outcomes of one pull, so q is refuted once
:math:`\sum_k \delta_k E_k(q) \ge 1`. One coordinate with :math:`D_k(q) \ge z_k \sqrt{S_k(q)}` is enough for that. What
is computed lies a little below the sum: :math:`\log(\delta_k E_k)` is concave in :math:`w_k = D_k^2/(z_k^2 S_k)`, zero
at w = 1 and :math:`-a_k` at w = 0, so it is at least :math:`a_k (w_k - 1)` between them (D_k < 0 proves nothing). The
*value* of q is the root v of

.. math:: \sum_k e^{a_k (w_k/v - 1)} = 1 + \sum_k e^{-a_k},

which is about :math:`\max_k w_k` and often larger: above 1, q is refuted.

*Added up* (stylised thresholds and characteristic times): the value is :math:`\sum_k D_k^2/(2 S_k)`.

A coordinate may be weighed in several ways that are all valid, its *variants*; the best counts.
"""

import math

import numpy as np

from polyarm._compile import kernel
from polyarm._structs import Scalars, struct
from polyarm._types import BoolArray, FloatArray, IntArray
from polyarm.certify.lemma import deviation_for, log_mixture
from polyarm.tolerances import KNOWN_ROW

# How coordinates are combined, and what a coordinate must reach.
TOGETHER = 0  # their sum; what it must exceed is up to who asks
FIXED = 1  # averaged: log(delta E) is D^2 / (2 S) less `levels`
MIXED = 2  # averaged: log(delta E) is that of the mixture of `certify.lemma`, less `levels`

#: Steps of Newton's method towards the value of a witness, and how exact it is.
_ROOT_STEPS, _ROOT_ACCURACY = 30, 1e-10


class EvidenceTerms(Scalars):
    """How coordinates are combined: `kind` is one of those above."""

    kind: int


@struct
class Evidence:
    r"""Everything that a test of witnesses looks at; m = 1 + d coordinates, V variants at most.

    :math:`D = \text{bases} + \text{gains} \cdot q` and :math:`S = \text{fixed} + \sum_a \text{curves}_a q_a^2 - 2
    \text{tilts}_a q_a`; the precision of the mixture, Lambda, has the same form (`prior_...`). Arrays are (m, V, K) and
    (m, V). `variants` (m,) is how many count: none for a coordinate that refutes nothing. `known` (d,) rows are
    `known_rows` (d, K), which no witness may break. `parts` and `steeps` (m,) are scratch of `witness_value`.
    """

    terms: EvidenceTerms
    variants: IntArray
    gains: FloatArray
    bases: FloatArray
    curves: FloatArray
    tilts: FloatArray
    fixed: FloatArray
    prior_curves: FloatArray
    prior_tilts: FloatArray
    prior_fixed: FloatArray
    levels: FloatArray
    reaches: FloatArray
    known: BoolArray
    known_rows: FloatArray
    parts: FloatArray
    steeps: FloatArray


def make_evidence(n_arms: int, n_constraints: int, n_variants: int = 1) -> Evidence:
    """Allocate evidence with nothing in it."""
    m, v, k = 1 + n_constraints, n_variants, n_arms
    return Evidence(
        terms=EvidenceTerms(kind=FIXED),
        variants=np.zeros(m, dtype=np.int64),
        gains=np.zeros((m, v, k)),
        bases=np.zeros((m, v)),
        curves=np.zeros((m, v, k)),
        tilts=np.zeros((m, v, k)),
        fixed=np.zeros((m, v)),
        prior_curves=np.zeros((m, v, k)),
        prior_tilts=np.zeros((m, v, k)),
        prior_fixed=np.zeros((m, v)),
        levels=np.zeros((m, v)),
        reaches=np.full((m, v), np.inf),
        known=np.zeros(n_constraints, dtype=np.bool_),
        known_rows=np.zeros((n_constraints, n_arms)),
        parts=np.zeros(m),
        steeps=np.zeros(m),
    )


@kernel
def statistic_at(evidence: Evidence, k: int, v: int, q: FloatArray) -> tuple[float, float, float]:
    """D, S and Lambda of one variant of a coordinate at a witness."""
    statistic, variance, prior = evidence.bases[k, v], evidence.fixed[k, v], evidence.prior_fixed[k, v]
    mixed = evidence.terms.kind == MIXED
    for a in range(q.size):
        x = q[a]
        if x != 0.0:
            statistic += evidence.gains[k, v, a] * x
            variance += x * (evidence.curves[k, v, a] * x - 2.0 * evidence.tilts[k, v, a])
            if mixed:
                prior += x * (evidence.prior_curves[k, v, a] * x - 2.0 * evidence.prior_tilts[k, v, a])
    return statistic, variance, prior


@kernel
def choose_variant(evidence: Evidence, k: int, q: FloatArray) -> int:
    """The variant by which a coordinate speaks most clearly at a witness; -1 if it has none."""
    n = evidence.variants[k]
    if n <= 1 or evidence.terms.kind != MIXED:
        return n - 1
    best, strongest, nearest, furthest = -1, -np.inf, 0, -np.inf
    for v in range(n):
        statistic, variance, prior = statistic_at(evidence, k, v, q)
        if statistic > furthest:
            nearest, furthest = v, statistic
        if statistic > 0.0 and variance > 0.0:
            found = log_mixture(statistic / math.sqrt(variance), evidence.reaches[k, v])
            found -= evidence.levels[k, v] + 0.5 * math.log(variance / prior)
            if found > strongest:
                best, strongest = v, found
    return best if best >= 0 else nearest


@kernel
def threshold_of(evidence: Evidence, k: int, v: int, ratio: float) -> float:
    """What D / sqrt(S) must reach, where S / Lambda is at most this ratio."""
    if evidence.terms.kind == MIXED:
        return float(deviation_for(evidence.levels[k, v] + 0.5 * math.log(ratio), evidence.reaches[k, v]))
    return math.sqrt(2.0 * evidence.levels[k, v])


@kernel
def steepness_of(evidence: Evidence, k: int, v: int, ratio: float) -> float:
    """How far log(delta E) rises from D = 0 to the threshold, where S / Lambda is at most this ratio."""
    if evidence.terms.kind == MIXED:
        return float(evidence.levels[k, v] + 0.5 * math.log(ratio) - log_mixture(0.0, evidence.reaches[k, v]))
    return float(evidence.levels[k, v])


@kernel
def coordinate_value(evidence: Evidence, k: int, q: FloatArray) -> float:
    """D^2/(z^2 S) of a coordinate at a witness, or D^2/(2 S) where coordinates are added up; zero for D <= 0.

    Notes its steepness, too, where coordinates are averaged.
    """
    evidence.steeps[k] = np.inf
    v = choose_variant(evidence, k, q)
    if v < 0:
        return 0.0
    statistic, variance, prior = statistic_at(evidence, k, v, q)
    if not variance > 1e-300:
        return np.inf if variance <= 1e-300 and statistic > 0.0 else 0.0
    if evidence.terms.kind == TOGETHER:
        return 0.5 * statistic * statistic / variance if statistic > 0.0 else 0.0
    ratio = variance / prior if evidence.terms.kind == MIXED else 1.0
    evidence.steeps[k] = steepness_of(evidence, k, v, ratio)
    if not statistic > 0.0:
        return 0.0
    z = threshold_of(evidence, k, v, ratio)
    return statistic * statistic / (z * z * variance)


@kernel
def _average(evidence: Evidence, largest: float) -> float:
    """The root of what defines a witness' value, from `parts` (of which this is the largest) and `steeps`."""
    spare, value = 0.0, largest
    for k in range(evidence.parts.size):
        if evidence.steeps[k] < np.inf:
            spare += math.exp(-evidence.steeps[k])
    spare = math.log1p(spare)
    for _ in range(_ROOT_STEPS):  # log of the sum is convex in v and falls: Newton's method ends below the root
        highest, total, slope = -np.inf, 0.0, 0.0
        for k in range(evidence.parts.size):
            if evidence.steeps[k] < np.inf:
                highest = max(highest, evidence.steeps[k] * (evidence.parts[k] / value - 1.0))
        for k in range(evidence.parts.size):
            if evidence.steeps[k] < np.inf:
                steep = evidence.steeps[k]
                share = math.exp(steep * (evidence.parts[k] / value - 1.0) - highest)
                total += share
                slope += share * steep * evidence.parts[k] / value
        step = (highest + math.log(total) - spare) * total / slope
        value *= 1.0 + max(step, -0.5)
        if abs(step) < _ROOT_ACCURACY:
            break
    return value


@kernel
def breaks_known_row(evidence: Evidence, q: FloatArray) -> bool:
    """Whether a mix breaks a known row: then it is no witness."""
    for i in range(evidence.known.size):
        if evidence.known[i]:
            excess = 0.0
            for a in range(q.size):
                excess += evidence.known_rows[i, a] * q[a]
            if excess > KNOWN_ROW:
                return True
    return False


@kernel
def witness_value(evidence: Evidence, q: FloatArray) -> float:
    """How far the data are from q being a witness; infinite when q breaks a known row.

    Where coordinates are averaged it is refuted above 1.
    """
    if breaks_known_row(evidence, q):
        return np.inf
    total, largest = 0.0, 0.0
    for k in range(evidence.variants.size):
        evidence.parts[k] = coordinate_value(evidence, k, q)
        total += evidence.parts[k]
        largest = max(largest, evidence.parts[k])
    if evidence.terms.kind == TOGETHER or not 0.0 < largest < np.inf:
        return total
    return _average(evidence, largest)
