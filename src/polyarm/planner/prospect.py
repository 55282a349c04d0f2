r"""What a plan of blocks is worth: the least ratio of a statistic to its threshold once the pulls to come are made.

.. math:: \min_c \frac{D_c(w, p)}{z_c \sqrt{S_c(w, p)}}

over the claims c of `certify.blocks`: every unknown row at the answer, and every witness of a pool, which counts by its
best coordinate (the test averages them, which is mostly easier to pass). Statistics and variances are those expected
after n more pulls in proportions w with the answer p: on top of what a start has accumulated, or from nothing.
Variances that are learned cost more where an arm is pulled too little to learn it; that is part of what is planned, and
so is the guard of `estimated`.
"""

import math

import numpy as np

from polyarm._compile import inlined_kernel, kernel
from polyarm._structs import Scalars, struct
from polyarm._types import FloatArray, IntArray
from polyarm.accounts import DECLARED, ESTIMATED, GUARDED, KNOWN, LEARNABLE, RANGE, learning_price
from polyarm.certify.blocks import Record, Start, Sums, add_up, guard_of, make_sums, share_delta, side
from polyarm.certify.constants import ANCHOR, PRECISION, REACHES
from polyarm.certify.evidence import MIXED, Evidence
from polyarm.certify.lemma import deviation_for
from polyarm.certify.witnesses import Pool
from polyarm.model import Model

_REACHES = np.array(REACHES)
#: Thresholds are tabulated by log(1 + V/Lambda), in steps of this.
_TABLE_STEP, _TABLE_SIZE = 0.1, 100
#: Between learnable and not, what an arm costs is blended over this much of u, so that a climb sees the way.
_BLEND_FROM, _BLEND = 0.85, 1.0
_BLEND_OWN = 0.6
#: An unlearned arm farther out costs this much more, to show the way back.
_PUSH = 0.02
#: Below this many standard deviations a statistic's logarithm goes over into minus that of its distance.
_LEAST_DEVIATION = 0.3
#: Finite differences are taken over this share.
_STEP = 1e-3
#: A margin on the outcomes that the guard asks for, and how sharply its corner is rounded.
_GUARD_MARGIN, _GUARD_SHARPNESS = 1.12, 8.0

# What a table of thresholds is for.
_REWARD, _ROW, _ANSWER = 0, 1, 2


class ProspectTerms(Scalars):
    """`total` pulls are to come; `recalls`: 1 if what a start has accumulated counts, too."""

    total: float
    recalls: int


@struct
class Prospect:
    """What stays fixed while planning.

    Estimated `mu` (K,) and `rows` (d, K); of one pull the expected `variances` and `kurtoses` (1 + d, K), `sides`
    (1 + d, K) how far an outcome may lie from its guess, for claims at q, and `aboves` (d, K) for rows at the answer;
    `tables` (3, V, T) of thresholds. Of the start that a plan continues: `past`, what its accounts add up to, and for
    estimated outcomes `seen_twos`, `seen_fours` and `guards` (1 + d, K), its centred power sums and their guard.
    """

    terms: ProspectTerms
    model: Model
    pool: Pool
    mu: FloatArray
    rows: FloatArray
    variances: FloatArray
    kurtoses: FloatArray
    sides: FloatArray
    aboves: FloatArray
    tables: FloatArray
    seen_twos: FloatArray
    seen_fours: FloatArray
    guards: FloatArray
    past: Sums


def make_prospect(model: Model, pool: Pool, mu: FloatArray, rows: FloatArray) -> Prospect:
    """Allocate a prospect on estimates (not copies)."""
    m, k = model.accounts.size, model.reward_noise.size
    return Prospect(
        terms=ProspectTerms(),
        model=model,
        pool=pool,
        mu=mu,
        rows=rows,
        variances=np.ones((m, k)),
        kurtoses=np.full((m, k), 3.0),
        sides=np.ones((m, k)),
        aboves=np.ones((m - 1, k)),
        tables=np.zeros((3, len(REACHES), _TABLE_SIZE)),
        seen_twos=np.zeros((m, k)),
        seen_fours=np.zeros((m, k)),
        guards=np.ones((m, k)),
        past=make_sums(model),
    )


def tabulate_thresholds(number: int, delta: float, model: Model, tables_out: FloatArray) -> None:
    """Write the thresholds of a start of this number, by reach and log(1 + V/Lambda); the last reach is the infinite
    one where no variance is learned."""
    shares = share_delta(number, delta, int((~model.known).sum()))
    learns = bool(np.any(model.accounts == RANGE))
    for kind, share in enumerate(shares):
        if share >= 1.0:
            continue
        for v, reach in enumerate(REACHES):
            infinite = v == len(REACHES) - 1
            if infinite or learns:
                _tabulate(-math.log(share), np.inf if infinite and not learns else reach, tables_out[kind, v])


@kernel
def _tabulate(level: float, reach: float, table_out: FloatArray) -> None:
    for n in range(table_out.size):
        table_out[n] = min(deviation_for(level + 0.5 * n * _TABLE_STEP, reach), 1e6)


@inlined_kernel
def _threshold(table: FloatArray, ratio: float) -> float:
    """The threshold for this V/Lambda, between the two nearest in the table."""
    place = math.log1p(ratio) / _TABLE_STEP
    n = int(min(place, table.size - 2.0))
    part = min(place - n, 1.0)
    return table[n] + part * (table[n + 1] - table[n])


@kernel
def look_ahead(prospect: Prospect, guesses: FloatArray) -> None:
    """Write how far outcomes may lie from these guesses (1 + d, K)."""
    model = prospect.model
    for k in range(model.accounts.size):
        for a in range(prospect.mu.size):
            if model.accounts[k] == RANGE:
                prospect.sides[k, a] = side(model, k, a, guesses[k, a])
                if k > 0:
                    prospect.aboves[k - 1, a] = model.high[k, a] - guesses[k, a]


@kernel
def recall(prospect: Prospect, start: Start, record: Record) -> None:
    """Note what a start has accumulated, for plans that continue it."""
    add_up(start, prospect.model, record, prospect.past)
    for k in range(start.twos.shape[1]):
        if prospect.model.accounts[k] != ESTIMATED:
            continue
        for a in range(prospect.mu.size):
            weight = start.twos[0, k, a]
            prospect.guards[k, a] = guard_of(start, k, a)
            prospect.seen_twos[k, a], prospect.seen_fours[k, a] = 0.0, 0.0
            if weight > 0.0:
                m = start.twos[1, k, a] / weight
                prospect.seen_twos[k, a] = max(start.twos[2, k, a] - m * start.twos[1, k, a], 0.0)
                sums = start.fours[:, k, a]
                fourths = sums[4] - m * (4.0 * sums[3] - m * (6.0 * sums[2] - m * (4.0 * sums[1] - m * sums[0])))
                prospect.seen_fours[k, a] = max(fourths, 0.0)


@struct
class Costs:
    """Expected sums per arm: of f^2 s (1 + d, V, K), and for the reward times p and p^2 (V, K), and `planned`, what the
    pulls to come add to the first; `own` (d, V, K) of f^2 p^2 s of rows at the answer."""

    squares: FloatArray
    cross: FloatArray
    norm: FloatArray
    planned: FloatArray
    own: FloatArray


@struct
class Claims:
    """The claims at one plan: rows at the answer, then active witnesses.

    `ratios` are logarithms of statistic over threshold; `statistics` and `variances` their parts (of a statistic that
    is not positive enough, a negative number: see `_scale_of`); `deciders` the coordinate that counts;
    `variants` (claims, 1 + d) the reach of each coordinate; `deviations` (d,) the root of S without prices, of each
    row at the answer.
    """

    ratios: FloatArray
    statistics: FloatArray
    variances: FloatArray
    deciders: IntArray
    variants: IntArray
    deviations: FloatArray
    costs: Costs


@struct
class ProspectWork:
    """Scratch of `weigh_plan` and `write_slopes`.

    `active` lists witnesses, `supports` their arms; `gaps` (capacity, 1 + d) the part of each statistic that no plan
    changes. `rests` (V,) and `prior` (1,) are sums over arms that all witnesses share.
    """

    now: Claims
    trial: Claims
    steep: Costs
    active: IntArray
    n_active: IntArray
    is_active: IntArray
    supports: IntArray
    n_supports: IntArray
    gaps: FloatArray
    rests: FloatArray
    prior: FloatArray


def make_prospect_work(prospect: Prospect) -> ProspectWork:
    """Allocate scratch for plans against the prospect's pool."""
    capacity, k = prospect.pool.mixes.shape
    m, v = prospect.model.accounts.size, len(REACHES)
    return ProspectWork(
        now=_make_claims(m - 1 + capacity, m, k),
        trial=_make_claims(m - 1 + capacity, m, k),
        steep=_make_costs(m, k),
        active=np.zeros(capacity, dtype=np.int64),
        n_active=np.zeros(1, dtype=np.int64),
        is_active=np.zeros(capacity, dtype=np.int64),
        supports=np.zeros((capacity, k), dtype=np.int64),
        n_supports=np.zeros(capacity, dtype=np.int64),
        gaps=np.zeros((capacity, m)),
        rests=np.zeros(v),
        prior=np.zeros(1),
    )


def _make_costs(m: int, k: int) -> Costs:
    v = len(REACHES)
    return Costs(np.zeros((m, v, k)), np.zeros((v, k)), np.zeros((v, k)), np.zeros((v, k)), np.zeros((m - 1, v, k)))


def _make_claims(n_claims: int, m: int, k: int) -> Claims:
    n = n_claims
    return Claims(
        ratios=np.zeros(n),
        statistics=np.zeros(n),
        variances=np.zeros(n),
        deciders=np.zeros(n, dtype=np.int64),
        variants=np.zeros((n, m), dtype=np.int64),
        deviations=np.zeros(m - 1),
        costs=_make_costs(m, k),
    )


@kernel
def list_witnesses(prospect: Prospect, start: Start, work: ProspectWork) -> None:
    """Note every witness of the pool: its arms, and what no plan changes of its statistics."""
    pool, model, terms = prospect.pool, prospect.model, prospect.terms
    recalls = terms.recalls == 1
    for j in range(pool.size[0]):
        size = 0
        for k in range(model.accounts.size):
            work.gaps[j, k] = 0.0
        work.gaps[j, 0] = terms.total * model.r
        if recalls:
            work.gaps[j, 0] += start.terms.weight * model.r + start.terms.earned
        for a in range(prospect.mu.size):
            q = pool.mixes[j, a]
            if q == 0.0:
                continue
            work.supports[j, size] = a
            size += 1
            work.gaps[j, 0] -= q * (terms.total * prospect.mu[a] + (start.rewards[a] if recalls else 0.0))
            for i in range(model.known.size):
                row = terms.total * prospect.rows[i, a] + (start.rows[i, a] if recalls else 0.0)
                work.gaps[j, 1 + i] += q * row
        work.n_supports[j] = size


@inlined_kernel
def _n_variants(model: Model, k: int) -> int:
    return _REACHES.size if model.accounts[k] == RANGE else 1


@inlined_kernel
def _table_place(model: Model, k: int, v: int) -> int:
    """Where the thresholds of a variant stand: the infinite reach has the last place."""
    return v if model.accounts[k] == RANGE else _REACHES.size - 1


@kernel
def _expected_guard(prospect: Prospect, k: int, a: int, share: float) -> float:
    """The guard's factor after the pulls to come, with its corner rounded."""
    total, variance = prospect.terms.total, prospect.variances[k, a]
    twos = total * variance / share
    fours = total * prospect.kurtoses[k, a] * variance * variance / (share * share * share)
    if prospect.terms.recalls == 1:
        twos += prospect.seen_twos[k, a]
        fours += prospect.seen_fours[k, a]
    missing = _GUARD_MARGIN * GUARDED * fours / (twos * twos)
    if missing > 30.0:
        return missing * missing
    return math.exp(2.0 / _GUARD_SHARPNESS * math.log1p(missing**_GUARD_SHARPNESS))


@kernel
def _cost_arm(prospect: Prospect, start: Start, a: int, share: float, p: float, costs_out: Costs) -> None:
    """Write the expected sums of one arm, pulled in this proportion with this share of the answer."""
    model, total = prospect.model, prospect.terms.total
    recalls = prospect.terms.recalls == 1
    for k in range(model.accounts.size):
        account = model.accounts[k]
        if account == KNOWN:
            continue
        variance, width = prospect.variances[k, a], 0.0
        coarse = recalls and start.coarse[k, a] == 1
        if account == RANGE:
            width = model.high[k, a] - model.low[k, a]
            if coarse:
                variance = 0.25 * width * width
        planned = total * variance / share
        prior = start.precision[k, a] if recalls else PRECISION * planned
        for v in range(_n_variants(model, k)):
            past, past_p, past_pp, price = 0.0, 0.0, 0.0, 1.0
            if recalls:
                past = prospect.past.squares[k, v, a]
                if k == 0:
                    past_p, past_pp = prospect.past.cross[v, a], prospect.past.norm[v, a]
            if account == ESTIMATED:
                # The guard multiplies what was seen, too; what it was until now is in the past's sums.
                price = _expected_guard(prospect, k, a, share)
                before = prospect.guards[k, a] if recalls else 1.0
                if before < np.inf:
                    past, past_p, past_pp = past * price / before, past_p * price / before, past_pp * price / before
                else:
                    past, past_p, past_pp = 0.0, 0.0, 0.0
            elif account == RANGE and not coarse:
                u = _REACHES[v] * prospect.sides[k, a] / (share * math.sqrt(past + planned + prior))
                worst = learning_price(LEARNABLE) + 0.25 * width * width / variance
                price = _blend_prices(u, worst, _BLEND)
            costs_out.squares[k, v, a] = past + price * planned
            if k == 0:
                costs_out.cross[v, a] = past_p + price * planned * p
                costs_out.norm[v, a] = past_pp + price * planned * p * p
                costs_out.planned[v, a] = price * planned


@inlined_kernel
def _blend_prices(u: float, worst: float, blend: float) -> float:
    """What learning costs at u: beyond what is learnable it goes over into the worst case."""
    price = learning_price(min(u, LEARNABLE))
    if u > _BLEND_FROM:
        part = min((u - _BLEND_FROM) / blend, 1.0)
        price = math.exp((1.0 - part) * math.log(price) + part * math.log(max(worst, price)))
        if u > _BLEND_FROM + blend:
            price *= 1.0 + _PUSH * (u - _BLEND_FROM - blend)
    return price


@kernel
def _cost_own(
    prospect: Prospect, start: Start, i: int, a: int, share: float, p: float, deviation: float, costs_out: Costs
) -> None:
    """Write the expected sums of one arm for a row at the answer; `deviation` is the root of S without prices."""
    model, total, k = prospect.model, prospect.terms.total, 1 + i
    recalls = prospect.terms.recalls == 1
    variance = prospect.variances[k, a]
    planned = total * variance * p * p / share
    own = planned
    if recalls:
        own += variance * start.spread_pp[a] if model.accounts[k] == DECLARED else start.own[i, a]
    for v in range(_n_variants(model, k)):
        if model.accounts[k] == RANGE:
            width = model.high[k, a] - model.low[k, a]
            spread = total * p * p / share + (start.spread_pp[a] if recalls else 0.0)
            worst = 0.25 * width * width * spread
            u = _REACHES[v] * p * prospect.aboves[i, a] / (share * deviation)
            most = max(worst, own)
            price = learning_price(min(u, LEARNABLE)) * own
            if u > _BLEND_FROM:
                part = min((u - _BLEND_FROM) / _BLEND_OWN, 1.0)
                price = (1.0 - part) * price + part * max(worst, price)
            costs_out.own[i, v, a] = min(price, most)
        elif model.accounts[k] == ESTIMATED and p > 1e-3:
            costs_out.own[i, v, a] = own * _expected_guard(prospect, k, a, share)
        else:
            costs_out.own[i, v, a] = own


@inlined_kernel
def _log_ratio(statistic: float, variance: float, z: float) -> float:
    """log(D / (z sqrt(S))), continued where D is too small or negative: so that a climb sees the way back, as well from
    afar as from near."""
    least = _LEAST_DEVIATION * math.sqrt(variance)
    log_d = math.log(statistic) if statistic > least else math.log(least) - math.log1p((least - statistic) / least)
    return log_d - math.log(z) - 0.5 * math.log(variance)


@inlined_kernel
def _scale_of(statistic: float, variance: float) -> float:
    """What the slopes of a statistic are divided by to be those of its logarithm; negative where that is continued."""
    least = _LEAST_DEVIATION * math.sqrt(variance)
    return statistic if statistic > least else statistic - 2.0 * least


@kernel
def _weigh_rows(
    prospect: Prospect, start: Start, allocation: FloatArray, answer: FloatArray, choose: bool, claims: Claims
) -> None:
    """Fill in the claims of rows at the answer."""
    model, terms, costs = prospect.model, prospect.terms, claims.costs
    recalls = terms.recalls == 1
    for i in range(model.known.size):
        claims.ratios[i], claims.deciders[i] = np.inf, 1 + i
        if model.known[i]:
            continue
        statistic, plain = start.slack[i] if recalls else 0.0, 0.0
        for a in range(answer.size):
            statistic -= terms.total * prospect.rows[i, a] * answer[a]
            plain += terms.total * prospect.variances[1 + i, a] * answer[a] * answer[a] / allocation[a]
            if recalls:
                declared = model.accounts[1 + i] == DECLARED
                plain += prospect.variances[1 + i, a] * start.spread_pp[a] if declared else start.own[i, a]
        prior = start.priors[i] if recalls else PRECISION * plain
        deviation = math.sqrt(plain + prior)
        claims.deviations[i] = deviation
        for a in range(answer.size):
            _cost_own(prospect, start, i, a, allocation[a], answer[a], deviation, costs)
        best = -np.inf
        for v in range(_n_variants(model, 1 + i)):
            if not choose and v != claims.variants[i, 1 + i]:
                continue
            variance = 0.0
            for a in range(answer.size):
                variance += costs.own[i, v, a]
            own_prior = prior if recalls else PRECISION * variance
            z = _threshold(prospect.tables[_ANSWER, _table_place(model, 1 + i, v)], variance / own_prior)
            ratio = _log_ratio(statistic, variance + own_prior, z)
            if ratio > best:
                best = ratio
                claims.variants[i, 1 + i] = v
                claims.variances[i] = variance + own_prior
        claims.ratios[i] = best
        claims.statistics[i] = _scale_of(statistic, claims.variances[i])


@kernel
def _weigh_witness(
    prospect: Prospect, start: Start, place: int, j: int, worth: float, choose: bool, work: ProspectWork, claims: Claims
) -> None:
    """Fill in the claim of one witness, with the answer worth this much: its best coordinate, by its best reach."""
    model, costs, pool = prospect.model, claims.costs, prospect.pool
    recalls = prospect.terms.recalls == 1
    c = model.known.size + place
    claims.ratios[c] = -np.inf
    for k in range(model.accounts.size):
        statistic = work.gaps[j, k] + (worth if k == 0 else 0.0)
        # A row that the witness keeps by far will not be what refutes it.
        if model.accounts[k] == KNOWN or (k > 0 and statistic <= 0.0 and claims.ratios[c] > -np.inf):
            continue
        best, at, found = -np.inf, 0, 0.0
        for v in range(_n_variants(model, k)):
            if not choose and v != claims.variants[c, k]:
                continue
            variance, prior = 0.0, 0.0
            for s in range(work.n_supports[j]):
                a = work.supports[j, s]
                q = pool.mixes[j, a]
                variance += q * (costs.squares[k, v, a] * q - (2.0 * costs.cross[v, a] if k == 0 else 0.0))
                if recalls:
                    prior += start.precision[k, a] * q * (q - (2.0 * start.anchor[a] if k == 0 else 0.0))
            if k == 0:
                variance += work.rests[v]
            if recalls:
                prior += work.prior[0] if k == 0 else 0.0
            else:
                prior = PRECISION * (variance + (ANCHOR * work.rests[v] if k == 0 else 0.0))
            variance = max(variance, 1e-300)
            prior = max(prior, 1e-300)
            table = prospect.tables[_REWARD if k == 0 else _ROW, _table_place(model, k, v)]
            ratio = _log_ratio(statistic, variance + prior, _threshold(table, variance / prior))
            if ratio > best:
                best, at, found = ratio, v, variance + prior
        claims.variants[c, k] = at
        if best > claims.ratios[c]:
            claims.ratios[c], claims.deciders[c], claims.variances[c] = best, k, found
            claims.statistics[c] = _scale_of(statistic, found)


@kernel
def cost_arms(prospect: Prospect, start: Start, allocation: FloatArray, answer: FloatArray, costs: Costs) -> None:
    """Write the expected sums of all arms."""
    for a in range(answer.size):
        _cost_arm(prospect, start, a, allocation[a], answer[a], costs)


@kernel
def weigh_plan(
    prospect: Prospect,
    start: Start,
    allocation: FloatArray,
    answer: FloatArray,
    choose: bool,
    work: ProspectWork,
    claims: Claims,
) -> float:
    """Fill in every active claim; returns the least log ratio. `choose`: also which reach serves each claim best."""
    cost_arms(prospect, start, allocation, answer, claims.costs)
    worth = 0.0
    for a in range(answer.size):
        worth += prospect.terms.total * prospect.mu[a] * answer[a]
    for v in range(_n_variants(prospect.model, 0)):
        work.rests[v] = 0.0
        for a in range(answer.size):
            work.rests[v] += claims.costs.norm[v, a]
    work.prior[0] = 0.0
    for a in range(answer.size):
        work.prior[0] += (1.0 + ANCHOR) * start.precision[0, a] * start.anchor[a] * start.anchor[a]
    _weigh_rows(prospect, start, allocation, answer, choose, claims)
    least = np.inf
    for i in range(prospect.model.known.size):
        least = min(least, claims.ratios[i])
    for place in range(work.n_active[0]):
        _weigh_witness(prospect, start, place, work.active[place], worth, choose, work, claims)
        least = min(least, claims.ratios[prospect.model.known.size + place])
    return least


@kernel
def cost_steeper(
    prospect: Prospect, start: Start, allocation: FloatArray, answer: FloatArray, work: ProspectWork
) -> None:
    """Write the expected sums with a little more of each arm, which slopes are made of."""
    for a in range(answer.size):
        _cost_arm(prospect, start, a, allocation[a] * (1.0 + _STEP), answer[a], work.steep)


@kernel
def write_slopes(
    prospect: Prospect,
    start: Start,
    place: int,
    allocation: FloatArray,
    answer: FloatArray,
    work: ProspectWork,
    claims: Claims,
    by_allocation_out: FloatArray,
    by_answer_out: FloatArray,
) -> None:
    """Write how the log ratio of a claim that was weighed changes with log w and with p, (K,) each."""
    d = prospect.model.known.size
    for a in range(answer.size):
        by_allocation_out[a], by_answer_out[a] = 0.0, 0.0
    if place < d:
        _slope_row(prospect, start, place, allocation, answer, work, claims, by_allocation_out, by_answer_out)
    elif claims.deciders[place] == 0:
        j = work.active[place - d]
        _slope_reward(prospect, place, j, answer, work, claims, by_allocation_out, by_answer_out)
    else:
        _slope_row_at_witness(prospect, place, work.active[place - d], work, claims, by_allocation_out)


@kernel
def _slope_row(
    prospect: Prospect,
    start: Start,
    i: int,
    allocation: FloatArray,
    answer: FloatArray,
    work: ProspectWork,
    claims: Claims,
    by_allocation_out: FloatArray,
    by_answer_out: FloatArray,
) -> None:
    """Write the slopes of a row at the answer, by finite differences of its variance."""
    total, steep = prospect.terms.total, work.steep
    factor = 1.0 if prospect.terms.recalls == 1 else 1.0 + PRECISION
    variance, v = claims.variances[i], claims.variants[i, 1 + i]
    deviation = claims.deviations[i]
    for a in range(answer.size):
        before = claims.costs.own[i, v, a]
        _cost_own(prospect, start, i, a, allocation[a] * (1.0 + _STEP), answer[a], deviation, steep)
        by_allocation_out[a] = -0.5 * factor * (steep.own[i, v, a] - before) / (_STEP * variance)
        _cost_own(prospect, start, i, a, allocation[a], answer[a] * (1.0 + _STEP), deviation, steep)
        by_p = factor * (steep.own[i, v, a] - before) / (_STEP * answer[a])
        by_answer_out[a] = -total * prospect.rows[i, a] / abs(claims.statistics[i]) - 0.5 * by_p / variance


@kernel
def _slope_reward(
    prospect: Prospect,
    c: int,
    j: int,
    answer: FloatArray,
    work: ProspectWork,
    claims: Claims,
    by_allocation_out: FloatArray,
    by_answer_out: FloatArray,
) -> None:
    """Write the slopes of a witness that its reward refutes."""
    total, costs, steep = prospect.terms.total, claims.costs, work.steep
    recalls = prospect.terms.recalls == 1
    factor, extra = (1.0, 0.0) if recalls else (1.0 + PRECISION, PRECISION * ANCHOR)
    variance, v = claims.variances[c], claims.variants[c, 0]
    for a in range(answer.size):
        q = prospect.pool.mixes[j, a]
        here = q * (costs.squares[0, v, a] * q - 2.0 * costs.cross[v, a])
        there = q * (steep.squares[0, v, a] * q - 2.0 * steep.cross[v, a])
        rest = steep.norm[v, a] - costs.norm[v, a]
        by_w = (factor * (there - here + rest) + extra * rest) / _STEP
        by_p = 2.0 * costs.planned[v, a] * (answer[a] * (factor + extra) - factor * q)
        by_allocation_out[a] = -0.5 * by_w / variance
        by_answer_out[a] = total * prospect.mu[a] / abs(claims.statistics[c]) - 0.5 * by_p / variance


@kernel
def _slope_row_at_witness(
    prospect: Prospect, c: int, j: int, work: ProspectWork, claims: Claims, by_allocation_out: FloatArray
) -> None:
    """Write the slopes of a witness that a row refutes: only the allocation counts."""
    factor = 1.0 if prospect.terms.recalls == 1 else 1.0 + PRECISION
    k, variance = claims.deciders[c], claims.variances[c]
    v = claims.variants[c, k]
    for s in range(work.n_supports[j]):
        a = work.supports[j, s]
        q = prospect.pool.mixes[j, a]
        change = work.steep.squares[k, v, a] - claims.costs.squares[k, v, a]
        by_allocation_out[a] = -0.5 * factor * change * q * q / (_STEP * variance)


@kernel
def foresee(
    prospect: Prospect,
    start: Start,
    allocation: FloatArray,
    answer: FloatArray,
    work: ProspectWork,
    evidence_out: Evidence,
) -> None:
    """Write the evidence that a plan leads to, as the test of the start will see it."""
    model, total, costs = prospect.model, prospect.terms.total, work.trial.costs
    recalls = prospect.terms.recalls == 1
    cost_arms(prospect, start, allocation, answer, costs)
    evidence_out.terms.kind = MIXED
    for k in range(model.accounts.size):
        if k > 0:
            evidence_out.known[k - 1] = model.known[k - 1]
            for a in range(answer.size):
                evidence_out.known_rows[k - 1, a] = model.known_rows[k - 1, a]
        n = 0 if model.accounts[k] == KNOWN else _n_variants(model, k)
        evidence_out.variants[k] = n
        for v in range(n):
            evidence_out.reaches[k, v] = _REACHES[v] if model.accounts[k] == RANGE else np.inf
            evidence_out.levels[k, v] = start.terms.reward_level if k == 0 else start.terms.row_level
            base, fixed, prior_fixed = total * model.r if k == 0 else 0.0, 0.0, 0.0
            if recalls and k == 0:
                base += start.terms.weight * model.r + start.terms.earned
            for a in range(answer.size):
                squares = costs.squares[k, v, a]
                prior = start.precision[k, a] if recalls else PRECISION * squares
                cross, prior_tilt = 0.0, 0.0
                if k == 0:
                    cross, anchor = costs.cross[v, a], start.anchor[a]
                    prior_tilt = prior * anchor if recalls else PRECISION * cross
                    norm = costs.norm[v, a]
                    own = (1.0 + ANCHOR) * (prior * anchor * anchor if recalls else PRECISION * norm)
                    fixed, prior_fixed = fixed + norm + own, prior_fixed + own
                    base += total * prospect.mu[a] * answer[a]
                    gain = -total * prospect.mu[a] - (start.rewards[a] if recalls else 0.0)
                else:
                    gain = total * prospect.rows[k - 1, a] + (start.rows[k - 1, a] if recalls else 0.0)
                evidence_out.gains[k, v, a] = gain
                evidence_out.curves[k, v, a] = squares + prior
                evidence_out.tilts[k, v, a] = cross + prior_tilt
                evidence_out.prior_curves[k, v, a] = prior
                evidence_out.prior_tilts[k, v, a] = prior_tilt
            evidence_out.bases[k, v] = base
            evidence_out.fixed[k, v], evidence_out.prior_fixed[k, v] = fixed, prior_fixed
