"""Laws of outcomes as tables of equally likely values, so that a mean is known exactly whatever its tail."""

import numpy as np
from scipy import stats

from oracle.reference import FloatArray

#: Values in a table: with 4,000 of them, one in 200 and one in 1,000 are exact.
SIZE = 4000
#: The share of values that are cut, in a law with a long tail.
_CUT = 0.999


def _quantiles(law: object) -> FloatArray:
    return np.asarray(law.ppf((np.arange(SIZE) + 0.5) / SIZE))  # type: ignore[attr-defined]


def bernoulli(mean: float, low: float = 0.0, high: float = 1.0) -> FloatArray:
    """Two values, with this mean up to one in 4,000."""
    ones = round((mean - low) / (high - low) * SIZE)
    return np.where(np.arange(SIZE) >= SIZE - ones, high, low).astype(np.float64)


def beta(mean: float, std: float) -> FloatArray:
    """A beta law on [0, 1]."""
    strength = mean * (1.0 - mean) / std**2 - 1.0
    return _quantiles(stats.beta(strength * mean, strength * (1.0 - mean)))


def lognormal(mean: float, sigma: float) -> FloatArray:
    """A lognormal law, cut at its 99.9th percentile; the mean is that after the cut."""
    law = stats.lognorm(sigma)
    return _rescaled(np.minimum(_quantiles(law), law.ppf(_CUT)), mean)


def pareto(mean: float, index: float) -> FloatArray:
    """A Pareto law, cut at its 99.9th percentile; the mean is that after the cut."""
    law = stats.pareto(index)
    return _rescaled(np.minimum(_quantiles(law), law.ppf(_CUT)), mean)


def exponential(mean: float) -> FloatArray:
    """An exponential law."""
    return _rescaled(_quantiles(stats.expon()), mean)


def contaminated(share: float, jump: float) -> FloatArray:
    """Gaussian outcomes of standard deviation one, of which a small share lies `jump` higher.

    Until the first of these has come, nothing of what was told says that there are any.
    """
    values = normal(0.0, 1.0)
    chosen = np.linspace(0, SIZE - 1, round(share * SIZE), dtype=np.int64)
    values[chosen] += jump
    return values


def zero_inflated(share: float, sigma: float) -> FloatArray:
    """Zero but for a share of lognormal values with mean one, cut at their 99.9th percentile."""
    values, ones = np.zeros(SIZE), round(share * SIZE)
    law = stats.lognorm(sigma)
    values[SIZE - ones :] = np.minimum(law.ppf((np.arange(ones) + 0.5) / ones), law.ppf(_CUT))
    return values


def normal(mean: float, std: float) -> FloatArray:
    """A Gaussian law, of exactly this standard deviation."""
    values = _quantiles(stats.norm())
    return np.asarray(mean + std * values / values.std())


def _rescaled(values: FloatArray, mean: float) -> FloatArray:
    return np.asarray(values * (mean / values.mean()))
