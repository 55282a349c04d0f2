"""The projection on {simplex, G x <= 0} stopped moving where a multiplier at zero would have to fall.

Two rows that pull in opposite directions: the Newton step of a violated row whose multiplier is zero may point below
zero, which left a step of length zero and a point that breaks the constraints. One random program in ten did it.
"""

import numpy as np
import pytest

from polyarm._types import FloatArray
from polyarm.polytope.projection import PROJECTED, make_projection_work, project_polytope
from polyarm.problem import find_optimum

# Met by `ptns` on setup1-easy: known rows, seed 6, step 9.
SETUP1_ROWS = [[0.5, 0.5, -0.5, -0.5, -0.5, -0.5, -0.5], [-0.5, -0.5, 0.5, 0.5, 0.5, -0.5, -0.5]]
PLAN = [0.478298755, 0.012030569, 0.477755191, 0.016831943, 0.001980114, 0.005588153, 0.007515275]


def project(point: FloatArray, G: FloatArray, start: FloatArray) -> FloatArray:
    d, n = G.shape
    projection = np.zeros(n)
    columns = np.vstack([np.ones(n), G])
    status = project_polytope(point, np.ones(n), columns, start, make_projection_work(n, d), projection)
    assert status == PROJECTED
    return projection


def require_nearest(point: FloatArray, G: FloatArray, projection: FloatArray) -> None:
    """Check feasibility, and that no feasible direction leads closer: the best vertex in that direction does not."""
    assert (G @ projection).max() <= 1e-9
    assert projection.sum() == pytest.approx(1.0, abs=1e-12)
    assert projection.min() >= 0.0
    towards = point - projection
    best = find_optimum(towards, G)
    assert best is not None
    assert best.value <= float(towards @ projection) + 1e-9


@pytest.mark.parametrize("start", [[0.0, 0.0], [0.0, 0.08], [0.08, 0.0], [3.0, 5.0]])
def test_a_warm_start_does_not_matter(start: list[float]) -> None:
    point, G = np.array(PLAN), np.array(SETUP1_ROWS)
    projection = project(point, G, np.array(start))
    assert projection.tolist() == pytest.approx(PLAN, abs=1e-9), "the plan is feasible: its own projection"


def test_random_programs_are_projected_from_cold_and_warm_starts() -> None:
    rng = np.random.default_rng(0)
    projected = 0
    for _ in range(600):
        n, d = int(rng.integers(2, 8)), int(rng.integers(1, 4))
        G, point = rng.normal(size=(d, n)), rng.normal(size=n)
        if find_optimum(np.zeros(n), G) is not None:
            for start in (np.zeros(d), rng.exponential(size=d) * (rng.uniform(size=d) < 0.6)):
                require_nearest(point, G, project(point, G, start))
                projected += 1
    assert projected > 600
