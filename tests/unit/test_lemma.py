"""The lemma behind certificates by blocks, exactly: J, z, and what the library states against what is true of it.

`oracle.martingale` keeps every pull and integrates the mixture of the lemma as it is defined; what the library states
from its sums must never be above that. Where a test says that something holds, it also shows that the same check fails
when a condition of the proof is dropped; `test_mutations` does so in the library itself.
"""

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from oracle import proof
from oracle.martingale import ACCOUNTS, Draw, draw_problem, draw_start, draw_witness
from oracle.proof import Weighed, weigh
from polyarm.certify.evidence import FIXED, MIXED
from polyarm.certify.lemma import deviation_for, log_mixture, normal_below

REACHES = (0.4, 0.7, 1.0, 1.5, 2.5, 4.5, math.inf)


def log_j(z: float, reach: float) -> float:
    """log of sqrt(2/pi) times the integral of exp(y z - y^2/2) from 0 to Y, by quadrature."""
    end = min(reach, max(z, 0.0) + 12.0)
    top = min(max(z, 0.0), end)
    peak = top * z - 0.5 * top * top
    points = [top] if 0.0 < top < end else None
    value, _ = quad(lambda y: math.exp(y * z - 0.5 * y * y - peak), 0.0, end, points=points, limit=400, epsabs=0.0)
    return math.log(value) + 0.5 * math.log(2.0 / math.pi) + peak


@pytest.mark.parametrize("reach", REACHES)
def test_j_is_its_integral_and_never_above(reach: float) -> None:
    for z in (0.0, 1e-3, 0.3, 1.0, 2.0, 3.3, 5.0, 8.0, 15.0, 29.0):
        exact = log_j(z, reach)
        assert log_mixture(z, reach) == pytest.approx(exact, abs=1e-9)
    # Far beyond the reach it is cut off, from below.
    for z in (40.0, 100.0, 1e4):
        if reach < math.inf:
            assert log_mixture(z, reach) <= log_j(z, reach) + 1e-9


def test_the_closed_form_without_a_reach() -> None:
    """J(z, infinity) = 2 Phi(z) exp(z^2/2)."""
    for z in np.linspace(0.0, 30.0, 61):
        assert log_mixture(float(z), math.inf) == pytest.approx(math.log(2.0 * normal_below(float(z))) + 0.5 * z * z)


@pytest.mark.parametrize("reach", REACHES)
def test_z_is_the_least_deviation_that_reaches_a_level(reach: float) -> None:
    reached = 0
    for level in (0.01, 0.5, 1.0, 3.0, 5.0, 8.0, 12.0, 30.0, 200.0):
        z = deviation_for(level, reach)
        if z == math.inf:
            assert log_j(reach + 29.0, reach) < level  # out of reach for all that is computed
            continue
        reached += 1
        assert log_j(z, reach) >= level - 1e-9
        # Close to what is computed at most it may be larger than it need be; no test gets there.
        assert z <= 1.0 or z > 25.0 or log_mixture(z - 1e-6, reach) < level
    assert reached >= 5
    assert deviation_for(5.0, math.inf) <= deviation_for(5.0, reach)


def test_a_longer_reach_never_needs_more_and_a_higher_level_never_less() -> None:
    levels = np.linspace(1.0, 9.0, 30)
    for reach, longer in pairwise(REACHES):
        assert all(deviation_for(float(x), longer) <= deviation_for(float(x), reach) + 1e-9 for x in levels)
    for reach in REACHES:
        found = [deviation_for(float(x), reach) for x in levels]
        assert all(low < high or high == math.inf for low, high in pairwise(found))


# -- What the library states of blocks, against every single pull --------------------------------------------------


def draws(seed: int, number: int, kind: str | None = None, known: bool = False) -> Iterator[tuple[Draw, Weighed]]:
    rng = np.random.default_rng(seed)
    for _ in range(number):
        n_arms, d = int(rng.integers(2, 9)), int(rng.integers(1 if known else 0, 4))
        problem = draw_problem(rng, n_arms, d, kind, known)
        draw = draw_start(rng, problem, int(rng.integers(1, 7)), most=int(rng.choice([5, 40, 200])))
        yield draw, weigh(draw)


KINDS = [None, *ACCOUNTS]


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_are_sums_over_pulls(kind: str | None) -> None:
    """D and Lambda of every claim, for `<=` and `>=`, in the user's units; S at least Lambda."""
    rng = np.random.default_rng(11)
    for draw, weighed in draws(1, 25, kind, known=kind is None):
        for _ in range(3):
            assert proof.disagreement(draw, weighed, draw_witness(rng, draw)) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_accounts_are_within_their_variance_up_to_the_reach(kind: str | None) -> None:
    """account(x) <= x^2 V/2 for every x <= Y/sqrt(S(q)), at every q: the one condition that the lemma has."""
    rng = np.random.default_rng(12)
    checked = 0
    for draw, weighed in draws(2, 25, kind):
        for _ in range(3):
            found = proof.largest_account(draw, weighed, draw_witness(rng, draw))
            checked += found > 0.0
            assert found <= 1.0 + 1e-8
    assert checked > 50


def test_accounts_exceed_their_variance_where_rates_belong_to_another_reach() -> None:
    rng = np.random.default_rng(12)
    worst = max(
        proof.largest_account(draw, weighed, draw_witness(rng, draw), stretch=4.0)
        for draw, weighed in draws(2, 25, "range")
    )
    assert worst > 1.01


@pytest.mark.parametrize("kind", KINDS)
def test_evidence_at_a_witness_is_never_above_the_true_mixture(kind: str | None) -> None:
    """For every reach and any value of D; declared and estimated variances reach it, as nothing is given away there."""
    rng = np.random.default_rng(13)
    closest: dict[str, float] = {}
    for draw, weighed in draws(3, 25, kind):
        for _ in range(2):
            for account, gap in proof.evidence_gaps(draw, weighed, draw_witness(rng, draw), rng):
                assert gap >= -1e-7, (account, gap)
                closest[account] = min(closest.get(account, math.inf), gap)
    for account, gap in closest.items():
        assert gap < (0.05 if account == "range" else 1e-6)
    assert len(closest) == (3 if kind is None else 1)


@pytest.mark.parametrize("kind", ["declared", "range"])
def test_evidence_with_too_small_a_price_of_the_mixture_is_above(kind: str) -> None:
    """R = S/Lambda taken elsewhere than at q (at the anchor), or V of another reach: then the check must fail."""
    rng = np.random.default_rng(14)
    worst = min(
        gap
        for draw, weighed in draws(4, 15, kind)
        for _, gap in proof.evidence_gaps(draw, weighed, draw_witness(rng, draw), rng, cheaper=0.5)
    )
    assert worst < -0.3


@pytest.mark.parametrize("kind", KINDS)
def test_what_passes_at_a_witness_has_the_evidence_that_it_claims(kind: str | None) -> None:
    """A coordinate passes at no level above what the true mixture is worth: thresholds, ratios and reaches together."""
    rng = np.random.default_rng(15)
    for draw, weighed in draws(5, 20, kind):
        for _ in range(2):
            assert proof.largest_claim(draw, weighed, draw_witness(rng, draw), rng) < 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_evidence_at_the_answer_is_the_mixture(kind: str | None) -> None:
    """Declared and estimated: the half-normal one; range: the one over 64 points that were fixed at the start."""
    rng, seen = np.random.default_rng(16), 0
    for draw, _ in draws(6, 30, kind):
        for gap in proof.answer_gaps(draw, rng):
            seen += 1
            assert gap == pytest.approx(0.0, abs=1e-7)
    assert seen > 20


def test_shares_of_delta_add_up() -> None:
    for n_unknown in (0, 1, 3):
        for delta in (0.3, 0.05, 1e-4):
            assert proof.spent(n_unknown, delta) == pytest.approx(delta)


# -- The average ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reach", REACHES)
def test_log_j_is_concave_in_the_square_of_the_deviation(reach: float) -> None:
    """What the chord from no deviation to the threshold rests on."""
    assert proof.curvature(reach) < 1e-10


@pytest.mark.parametrize("kind", [FIXED, MIXED])
def test_a_value_above_one_is_a_sum_of_evidence_above_one(kind: int) -> None:
    """... and a value of no more than .97 a sum that is not much larger: the average gives little away."""
    rng, sums = np.random.default_rng(21), []
    for _ in range(250):
        case, q = proof.draw_refutable(rng, kind)
        found = proof.sum_at(case, q, 1.0 + 1e-6)
        assert found >= 1.0
        assert kind == MIXED or found < proof.most_at_one(case)
        sums.append(proof.sum_at(case, q, 0.97))
    assert max(sums) < 1.5
    assert np.mean(np.array(sums) > 1.0) > 0.02, "cases in which nothing is given away could not show how much"


@pytest.mark.parametrize("kind", [FIXED, MIXED])
def test_a_box_above_the_cut_is_refuted_everywhere(kind: int) -> None:
    rng, least = np.random.default_rng(22), []
    for _ in range(150):
        sums = proof.sums_in_refuted_box(rng, *proof.draw_refutable(rng, kind))
        if sums is not None:
            least.append(float(sums.min()))
    assert min(least) >= 1.0
    assert np.mean(np.array(least) < 1.1) > 0.15, "boxes that are refuted by far could not show an error"
    assert len(least) > 75


# -- Boxes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_of_a_box_and_of_its_ratio_hold_everywhere_in_it(kind: str | None) -> None:
    rng, strong = np.random.default_rng(17), 0
    for draw, weighed in draws(7, 40, kind, known=kind is None):
        for _ in range(8):
            found = proof.check_box(rng, draw, weighed)
            assert found.ratio <= 1.0 + 1e-9
            if found.lower > 1e-9:
                assert found.lower <= found.least * (1.0 + 1e-9)
                strong += found.lower > 0.9 * found.least
    assert strong > 20, "bounds that are never close could not show an error"


# -- The supermartingale, over all paths of a small tree ------------------------------------------------------------


@pytest.mark.parametrize("account", ["range", "declared"])
@pytest.mark.parametrize("claim", proof.CLAIMS)
@pytest.mark.parametrize("chance", [0.1, 0.5, 0.85])
def test_expected_evidence_is_at_most_one(account: str, claim: str, chance: float) -> None:
    """Blocks of a few pulls of two arms, planned against us on the past: exact expectations, no simulation."""
    assert proof.expected_evidence(account, claim, chance, peeking=False) <= 1.0 + 1e-9


@pytest.mark.parametrize("account", ["range", "declared"])
@pytest.mark.parametrize("claim", proof.CLAIMS)
def test_expected_evidence_exceeds_one_when_a_plan_knows_its_block(account: str, claim: str) -> None:
    """p looked up after the block (for a row at q: bad blocks left out): what predictability is for."""
    assert proof.expected_evidence(account, claim, 0.5, peeking=True) > 1.2
