"""The search for witnesses divided arms whose range was 1e-15 again and again, and stepped to and fro over a kink.

The evidence is that of `polyarm run router`: its certificate did not verify, for a change in the last digit.
"""

import numpy as np

from polyarm.certify.evidence import Evidence, Terms
from polyarm.certify.search import CERTIFIED, Task, make_search_work, search_witness

ROW_VARIANCE = [2.17409e-3, 4.13291e-4, 1.39265e-4, 9.44948e-5, 1.83758e-3, 2.01521e-4, 2.40238e-3]
ROUTER = Evidence(
    mu=np.array([0.556790, 0.652891, 0.693124, 0.759170, 0.718006, 0.869161, 0.908482]),
    rows=np.array(
        [
            [-2.860747, -2.477878, -2.119825, -1.010323, -1.489013, 2.985007, 6.000615],
            [-1.719728, -1.519459, -1.204515, -0.108073, 0.309956, 1.323288, 9.756880],
        ]
    ),
    mu_var=np.array([1.35881e-4, 2.58307e-5, 8.70408e-6, 5.90592e-6, 1.14849e-4, 1.25951e-5, 1.50149e-4]),
    row_var=np.array([ROW_VARIANCE, ROW_VARIANCE]),
    known=np.zeros(2, dtype=np.bool_),
    centre=np.array([7.5994e-5, 8.852222e-3, 0.3209253, 0.2926790, 1.08998e-4, 0.3294706, 9.86512e-5]),
    terms=Terms(tolerance=0.0436367605, spread=1.01935e-6, floor=1.5854602),
)
THRESHOLD = 17.45377


def test_a_last_digit_does_not_decide_whether_a_search_ends() -> None:
    work, witness = make_search_work(7, 2), np.zeros(7)
    rng = np.random.default_rng(0)
    for _ in range(20):
        shaken = Evidence(
            mu=ROUTER.mu * (1.0 + 1e-15 * rng.standard_normal(7)),
            rows=ROUTER.rows * (1.0 + 1e-15 * rng.standard_normal((2, 7))),
            mu_var=ROUTER.mu_var,
            row_var=ROUTER.row_var,
            known=ROUTER.known,
            centre=ROUTER.centre,
            terms=ROUTER.terms,
        )
        outcome, cells, _ = search_witness(shaken, Task(THRESHOLD, 0.0, THRESHOLD, 50.0, 1000), work, witness)
        assert (outcome, cells < 200) == (CERTIFIED, True)
