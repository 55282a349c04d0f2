"""Numbers in JSON, which knows neither nan nor infinity."""

import math


def finite(value: float | None) -> float | None:
    """Return a number, or None where there is none."""
    return float(value) if value is not None and math.isfinite(value) else None
