"""One condition of the proof is dropped in the library at a time; some check of `oracle.proof` must then fail.

Run as a program, with kernels interpreted (`NUMBA_DISABLE_JIT=1`), so that their parts can be replaced. Prints
which check noticed each mutation first, as JSON: null if none did.
"""

import inspect
import json
import math
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from oracle import proof
from oracle.martingale import draw_problem, draw_start, draw_witness
from polyarm.certify import blocks, cuts, evidence, lemma
from polyarm.certify.constants import REACHES
from polyarm.certify.evidence import FIXED, MIXED

#: Random starts of each account: learned variances have the most that can be wrong, some of it rarely.
_DRAWS = (("range", 12), ("declared", 12), ("estimated", 15), ("range", 80))
#: Random cases of how coordinates are combined, of each kind.
_CASES = 25


def _check_draws(kind: str, number: int, seed: int) -> str | None:
    """The name of the first check that fails on random blocks of one account."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        problem = draw_problem(rng, int(rng.integers(2, 6)), int(rng.integers(1, 3)), kind)
        draw = draw_start(rng, problem, int(rng.integers(1, 6)), most=int(rng.choice([5, 60])))
        q = draw_witness(rng, draw)
        weighed = proof.weigh(draw)
        if not proof.disagreement(draw, weighed, q) < 1e-9:
            return "statistics"
        if not all(proof.largest_account(draw, weighed, mix) <= 1.0 + 1e-8 for mix in (draw.average, q)):
            return "accounts"
        if not all(gap >= -1e-7 for _, gap in proof.evidence_gaps(draw, weighed, q, rng)):
            return "evidence"
        if not all(abs(gap) <= 1e-7 for gap in proof.answer_gaps(draw, rng)):
            return "answer"
        if not proof.largest_claim(draw, weighed, q, rng) < 1.0:
            return "claims"
        for _ in range(3):
            box = proof.check_box(rng, draw, proof.weigh(draw))
            if not (box.ratio <= 1.0 + 1e-9 and (box.lower <= 1e-9 or box.lower <= box.least * (1.0 + 1e-9))):
                return "boxes"
    return None


def _check_average(number: int) -> str | None:
    """The name of the first check that fails of how coordinates are combined."""
    for seed, kind in enumerate((FIXED, MIXED)):
        rng = np.random.default_rng(seed)
        for _ in range(number):
            case, q = proof.draw_refutable(rng, kind)
            found = proof.sum_at(case, q, 1.0 + 1e-6)
            if not found >= 1.0:
                return "values"
            if not (proof.sum_at(case, q, 0.97) < 1.5 and (kind == MIXED or found < proof.most_at_one(case))):
                return "what the average gives away"
            sums = proof.sums_in_refuted_box(rng, case, q)
            if sums is not None and not sums.min() >= 1.0:
                return "refuted boxes"
    return None


def first_failure(module: ModuleType | None = None) -> str | None:
    """The name of the first check that fails, of those that look at a module; None if all hold."""
    if not all(abs(proof.spent(n, 0.05) - 0.05) < 1e-12 for n in (0, 1, 3)):
        return "shares"
    if not all(proof.curvature(reach) < 1e-10 for reach in (*REACHES, math.inf)):
        return "curvature"
    found = _check_average(_CASES) if module is not blocks else None
    if found is not None:
        return found
    for seed, (kind, number) in enumerate(_DRAWS):
        found = _check_draws(kind, number, 50 + seed)
        if found is not None:
            return found
    return None


class Mutation(NamedTuple):
    """A kernel, and what of its text is replaced by what."""

    module: ModuleType
    kernel: str
    text: str
    instead: str

    def edited(self) -> Callable[..., Any]:
        """The kernel with its text replaced: there exactly once, or the mutation belongs to older sources."""
        original = getattr(self.module, self.kernel)
        source = textwrap.dedent(inspect.getsource(original))
        found = source.count(self.text)
        assert found == 1, f"{self.kernel}: {self.text!r} is there {found} times; bring this mutation up to date"
        made: dict[str, Any] = {}
        body = source[source.index("def ") :].replace(self.text, self.instead)
        exec(compile(body, f"<{self.kernel}, mutated>", "exec"), original.__globals__, made)
        return made[self.kernel]  # type: ignore[no-any-return]


_LENGTH_OF_AWAY = "(away / rest if rest > 0.0 else np.inf if away > 0.0 else 0.0)"
_CHORDS = "cuts.curves[k, a] * (box.low[a] + box.high[a])"

MUTATIONS = {
    # Accounts of learned variances.
    "learning has no price": Mutation(blocks, "_stated", "learning_price(u) * squares", "squares"),
    "no Hoeffding where variances cannot be learned": Mutation(blocks, "_stated", "* squares + hoeffding", "* squares"),
    "half of Hoeffding's account": Mutation(blocks, "_stated", "return hoeffding", "return 0.5 * hoeffding"),
    "b is on the wrong side in rows at q": Mutation(
        blocks, "side", "below = guessed - model.low[k, arm]", "below = model.high[k, arm] - guessed"
    ),
    "b is the smaller side for the reward": Mutation(
        blocks, "side", "max(below, model.high[k, arm] - guessed)", "min(below, model.high[k, arm] - guessed)"
    ),
    "b is on the wrong side at the answer": Mutation(
        blocks, "_charge", "model.high[k, a] - told.guesses[k, a]", "told.guesses[k, a] - model.low[k, a]"
    ),
    "too little of Hoeffding at the answer": Mutation(blocks, "_charge", "0.125", "0.1"),
    "the answer's account chosen by what came": Mutation(
        blocks, "_charge", "price * variance <", "price * told.powers[1, k, a] / told.counts[a] <"
    ),
    "the reward's u as if p did not move": Mutation(blocks, "_learn_reward", _LENGTH_OF_AWAY, "0.0"),
    "rates of the reward for a shorter Y": Mutation(
        blocks, "_learn_reward", "_REACHES[v] * f", "0.4 * _REACHES[v] * f"
    ),
    "rates of rows for a shorter Y": Mutation(blocks, "_learn_row", "_REACHES[v] * f", "0.4 * _REACHES[v] * f"),
    "a row's blocks weigh f, not f^2": Mutation(blocks, "_learn_row", "f * f * _stated", "f * _stated"),
    "the reward's blocks weigh f, not f^2": Mutation(blocks, "_learn_reward", "f * f * _stated", "f * _stated"),
    # Statistics, precisions and shares.
    "a slack has the wrong sign": Mutation(
        blocks, "add_block", "start.slack[k - 1] -= p * total", "start.slack[k - 1] += p * total"
    ),
    "bounds are left out": Mutation(blocks, "add_block", "total -= size * model.bounds[k - 1]", "total -= 0.0"),
    "r counts twice": Mutation(blocks, "_write_variant", "start.terms.weight * r", "start.terms.weight * 2.0 * r"),
    "Lambda without its constant part": Mutation(blocks, "_write_variant", "prior_fixed + own", "prior_fixed"),
    "Lambda of the answer is halved": Mutation(
        blocks, "settle_priors", "start.priors[i] = total", "start.priors[i] = 0.5 * total"
    ),
    "V of the reward without its tilt": Mutation(
        blocks, "_write_variant", "tilt = sums.cross[v, a] + prior_tilt", "tilt = 1.05 * sums.cross[v, a] + prior_tilt"
    ),
    "the estimated variance has no guard": Mutation(blocks, "guard_of", "return guard(", "return 1.0 + 0.0 * guard("),
    "shares of rows at q are not divided": Mutation(
        blocks, "share_delta", "ROWS_SHARE * spent / n_unknown", "ROWS_SHARE * spent"
    ),
    "shares of rows at the answer are not divided": Mutation(
        blocks, "share_delta", "ANSWER_SHARE * spent / n_unknown", "ANSWER_SHARE * spent"
    ),
    "every start spends what the first may": Mutation(
        blocks, "share_delta", "START_WEIGHTS[number]", "START_WEIGHTS[0]"
    ),
    # Evidence.
    "the mixture has no price at q": Mutation(evidence, "threshold_of", "0.5 * math.log(ratio)", "0.0"),
    "J at q as if there were no Y": Mutation(evidence, "threshold_of", "evidence.reaches[k, v]", "np.inf"),
    "the mixture has no price at the answer": Mutation(
        blocks, "answer_evidence", "0.5 * math.log(total / prior)", "0.0"
    ),
    "weights of the answer's points sum to two": Mutation(
        blocks, "_mixture_evidence", "weights += x *", "weights += 0.5 * x *"
    ),
    # The average.
    "log J is not concave": Mutation(lemma, "log_mixture", "0.5 * z * z", "0.02 * z * z * z * z"),
    "thresholds' levels rise by less": Mutation(
        evidence, "steepness_of", "return float(evidence.levels[k, v])", "return 0.8 * float(evidence.levels[k, v])"
    ),
    "mixtures' levels rise by less": Mutation(
        evidence, "steepness_of", "- log_mixture(0.0, evidence.reaches[k, v])", "- 0.3 * evidence.levels[k, v]"
    ),
    "levels in boxes rise by less": Mutation(
        cuts, "steepness_of", "return float(evidence.levels[k, v])", "return 0.8 * float(evidence.levels[k, v])"
    ),
    "nothing spare for those that say nothing": Mutation(
        evidence, "_average", "spare += math.exp(-evidence.steeps[k])", "spare += 0.0"
    ),
    "nothing spare in boxes": Mutation(cuts, "set_cut", "spare += math.exp(-cuts.steeps[k])", "spare += 0.0"),
    "the best coordinate decides": Mutation(evidence, "_average", "spare, value = 0.0, largest", "return largest"),
    "too much is spare": Mutation(evidence, "_average", "math.log1p(spare)", "math.log1p(4.0 * spare)"),
    # Boxes.
    "below the cut nothing is taken off": Mutation(
        cuts, "bound_box", "(cut - found) * cuts.terms.dilution", "(cut - found)"
    ),
    "S/Lambda of a box is that of a mix": Mutation(
        cuts, "_largest_ratio", "for _ in range(_RATIO_ROUNDS):", "return ratio\n    for _ in range(0):"
    ),
    "a chord is too high": Mutation(cuts, "write_cuts", _CHORDS, f"0.7 * {_CHORDS}"),
    "a chord without its constant": Mutation(
        cuts, "write_cuts", "fixed -= cuts.curves[k, a] * box.low[a] * box.high[a]", "fixed -= cuts.curves[k, a]"
    ),
    "shares of parts sum to a half": Mutation(
        cuts, "_share_out", "look.shares[k] *= steeps[k] /", "look.shares[k] *= 0.5 * steeps[k] /"
    ),
    "tolls are forgotten": Mutation(
        cuts, "write_tangent", "0.5 * look.shares[k] * y * y", "0.2 * look.shares[k] * y * y"
    ),
}


def main() -> None:
    """Try every mutation, and none."""
    found: dict[str, str | None] = {"none": first_failure()}
    for name, mutation in MUTATIONS.items():
        with patch.object(mutation.module, mutation.kernel, mutation.edited()):
            try:
                found[name] = first_failure(mutation.module)
            except (ArithmeticError, ValueError, AssertionError) as error:  # a variance below zero, say
                found[name] = f"raised {error!r}"
    print(json.dumps(found))


if __name__ == "__main__":
    main()
