"""The search for witnesses gave up at the first cell that no mix within the known rows touches; it can be left out."""

import numpy as np

from oracle.joint import make_evidence
from polyarm.certify.evidence import witness_value
from polyarm.certify.search import CERTIFIED, Task, make_search_work, search_witness


def test_a_cell_outside_the_known_rows_is_left_out() -> None:
    known = np.array([True, True])
    rows = np.array([[-0.5, -0.2, 0.6], [-0.35, -0.1, 0.25]])
    answer, r = np.array([0.15, 0.545, 0.305]), 0.06
    means, variances = np.array([0.62, 0.74, 0.86]), np.array([0.2, 0.13, 0.3])
    evidence = make_evidence(means, rows, variances, np.zeros((2, 3)), known, answer, r)
    start = np.array([0.6, 0.0, 0.4])
    assert (rows @ answer).max() <= 0.0
    incumbent = witness_value(evidence, start)
    task = Task(incumbent, 0.02, 0.0, 50.0, 5000)
    outcome, cells, lower = search_witness(evidence, task, make_search_work(3, 2), start)
    assert outcome == CERTIFIED
    assert cells > 1
    # Every mix within the known rows, on a grid, respects the bound; the witness nearly attains it.
    grid = np.linspace(0.0, 1.0, 201)
    mixes = [np.array([x, y, 1.0 - x - y]) for x in grid for y in grid if x + y <= 1.0]
    least = min(witness_value(evidence, mix) for mix in mixes)
    assert lower <= least
    assert lower >= 0.979 * witness_value(evidence, start)
