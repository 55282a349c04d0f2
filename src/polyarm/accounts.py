r"""Accounts of variance: how the variance of an outcome is known, stated for each outcome on its own.

- `declared`: a sub-Gaussian scale. Proved under that declaration, for outcomes without limits, too.
- `range`: the least and the largest value. The variance is learned, and the proof holds for every distribution there.
- `estimated`: neither. The variance is estimated, and what follows holds as outcomes become many: never `proved`.

An outcome X of mean m enters a martingale with a coefficient c that is fixed before it. For x > 0 its *account* is
:math:`x^2 s / 2`, what the logarithm of :math:`\exp(x c (X - m))` must be lowered by for its expectation to be at most
one; s is the variance that the account states for the pull. With a guess g of m that is fixed before the pull, and
:math:`\xi = X - g`,

=============== =============================================================================
account         s, per pull
=============== =============================================================================
declared        :math:`c^2 \sigma^2`
range, learned  :math:`c^2 \xi^2 G(u)`, as long as :math:`u = x |c| b \le 0.9`
range, else     :math:`c^2 w^2 / 4`, w the width of the range (Hoeffding)
estimated       :math:`c^2 \xi^2`, times the guard
=============== =============================================================================

Here b is how far an outcome can lie from the guess on the side that lowers c (X - g), and
:math:`G(u) = 2 (-\log(1 - u) - u)/u^2`.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from polyarm._compile import inlined_kernel, kernel
from polyarm._types import FloatArray

# Codes of accounts, for kernels.
DECLARED = 0
RANGE = 1
ESTIMATED = 2
KNOWN = 3  # a row that is not measured

#: Learned variances hold up to this u; beyond it, Hoeffding's account.
LEARNABLE = 0.9
#: The guard of `estimated`: variances count in full once this many outcomes, in effect, have been seen.
GUARDED = 80.0

AccountKind = Literal["declared", "range", "estimated"]
PerArm = float | tuple[float, ...]
Range = tuple[float, float]
RangePerArm = Range | tuple[Range, ...]

_CODES = {"declared": DECLARED, "range": RANGE, "estimated": ESTIMATED}


@dataclass(frozen=True)
class Account:
    """How the variance of one outcome is known.

    Args:
        std: Its sub-Gaussian scale, one number or one per arm; None: not declared.
        range: Its least and largest value, one pair or one per arm; None: not declared.
        cap: Whether larger values are cut to the end of the range, rather than refused.
    """

    std: PerArm | None = None
    range: RangePerArm | None = None
    cap: bool = False

    @property
    def kind(self) -> AccountKind:
        """Which account it is."""
        if self.range is not None:
            return "range"
        return "estimated" if self.std is None else "declared"

    @property
    def code(self) -> int:
        """The same for kernels."""
        return _CODES[self.kind]

    def ends(self, n_arms: int) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest value of each arm; infinite where no range is declared.

        Args:
            n_arms: The number of arms.
        """
        if self.range is None:
            return np.full(n_arms, -np.inf), np.full(n_arms, np.inf)
        pairs = np.broadcast_to(np.asarray(self.range, dtype=np.float64), (n_arms, 2))
        return pairs[:, 0].copy(), pairs[:, 1].copy()

    def scale(self, n_arms: int) -> FloatArray:
        """Return the sub-Gaussian scale of each arm: the declared one, half the range, or nan where neither is given.

        Args:
            n_arms: The number of arms.
        """
        if self.range is not None:
            low, high = self.ends(n_arms)
            return 0.5 * (high - low)
        return np.broadcast_to(np.float64(np.nan) if self.std is None else np.asarray(self.std), (n_arms,)).astype(
            np.float64
        )

    def __str__(self) -> str:
        if self.range is not None:
            low, high = np.asarray(self.range, dtype=np.float64).reshape(-1, 2).T
            pair = f"{low.min():g} to {high.max():g}"
            return f"range {pair}{', larger values cut' if self.cap else ''}"
        if self.std is None:
            return "estimated"
        return f"std {self.std:g}" if isinstance(self.std, float | int) else f"std {list(self.std)}"


@inlined_kernel
def learning_price(u: float) -> float:
    """G(u): what learning the variance costs, a factor of at least one; 3.46 at u = 0.9."""
    if u < 1e-4:
        return 1.0 + u * (2.0 / 3.0 + 0.5 * u)
    return 2.0 * (-math.log1p(-u) - u) / (u * u)


@inlined_kernel
def guess_mean(total: float, pulls: float, low: float, high: float) -> float:
    """The guess of a mean in a range: the mean of the outcomes so far and one more in the middle of the range."""
    return (total + 0.5 * (low + high)) / (pulls + 1.0)


@kernel
def guard(squares: float, fourths: float) -> float:
    r"""The guard's factor, from weighted sums of second and fourth powers about the mean; infinite without variation.

    :math:`(\sum f^2 y^2)^2 / \sum f^4 y^4` is how many outcomes these are, in effect: few where the tail is heavy.
    """
    effective = squares * (squares / fourths) if squares > 0.0 and fourths > 0.0 else 0.0
    if not effective > 0.0:  # sums that overflowed say nothing: max(1, NaN) would be no guard at all
        return math.inf
    return max(1.0, GUARDED / effective) ** 2
