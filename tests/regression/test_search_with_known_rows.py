"""The search for witnesses gave up at the first cell that no mix within the known rows touches; it can be left out."""

import numpy as np

from polyarm._arena import make_arena
from polyarm.certify.evidence import Evidence, witness_value
from polyarm.certify.search import CERTIFIED, search_witness, size_branch


def test_a_cell_outside_the_known_rows_is_left_out() -> None:
    known = np.array([True, True])
    rows = np.array([[-0.5, -0.2, 0.6], [-0.35, -0.1, 0.25]])
    evidence = Evidence(
        np.array([0.62, 0.74, 0.86]), rows, np.array([0.2, 0.13, 0.3]), np.zeros((2, 3)), known, np.zeros(2)
    )
    answer, r = np.array([0.15, 0.545, 0.305]), 0.06
    start = np.array([0.6, 0.0, 0.4])
    assert (rows @ answer).max() <= 0.0
    incumbent = witness_value(evidence, answer, start, r)
    outcome, cells, lower = search_witness(
        evidence, answer, r, incumbent, 0.02, 0.0, 50.0, 5000, make_arena(size_branch(3, 2)), start
    )
    assert outcome == CERTIFIED
    assert cells > 1
    # Every mix within the known rows, on a grid, respects the bound; the witness nearly attains it.
    grid = np.linspace(0.0, 1.0, 201)
    mixes = [np.array([x, y, 1.0 - x - y]) for x in grid for y in grid if x + y <= 1.0]
    least = min(witness_value(evidence, answer, mix, r) for mix in mixes)
    assert lower <= least
    assert lower >= 0.979 * witness_value(evidence, answer, start, r)
