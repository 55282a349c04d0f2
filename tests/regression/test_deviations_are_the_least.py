"""Deviations were far larger than needed where they lie far beyond a short reach, or where Newton's last step landed
a digit too low: right, but up to a fifth larger than the least that suffice.
"""

import numpy as np

from polyarm.certify.lemma import deviation_for, log_mixture

FARTHEST = 30.0


def test_a_deviation_meets_its_level_from_above_to_nine_digits() -> None:
    rng = np.random.default_rng(1)
    met = 0
    for reach in (0.4, 0.7, 1.0, 2.0, 4.5, np.inf):
        for level in 10.0 ** rng.uniform(-4.0, 2.0, size=400):
            z = deviation_for(level, reach)
            if z == np.inf:
                assert log_mixture(reach + FARTHEST, reach) < level
                continue
            met += 1
            assert level <= log_mixture(z, reach) < level + 1e-9
    assert met > 1_500
