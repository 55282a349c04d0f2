"""Round-off in a known row proves nothing: 0.1 + 0.2 is not above 0.3 in any sense that matters.

Without rewards and with all prices on known rows the half-spaces of a cell have no noise at all, so that a violation of
1e-17 excluded it: two thirds of these runs ended `INFEASIBLE` after some twenty pulls, at delta = 0.1.
"""

import numpy as np
from scipy import stats

from contract.suitable import make_instance
from oracle.joint import make_evidence
from polyarm import make_explorer
from polyarm.certify.evidence import witness_value
from polyarm.certify.search import CERTIFIED, Task, make_search_work, search_witness
from polyarm.round import INFEASIBLE


def test_a_feasible_problem_is_not_proved_infeasible() -> None:
    costs = [-0.02, 0.3, 0.3]
    constraints = [
        {"name": "known", "bound": 0.3, "row": (0.1 + 0.2, 1.3, 1.3)},
        {"name": "u", "bound": 0.0, "std": 1.0},
    ]
    instance = make_instance([0.0, 0.0, 0.0], [[0.3, 1.3, 1.3], costs], constraints, r=0.3, delta=0.1)
    alarms, runs = 0, 40
    for seed in range(runs):
        session = make_explorer("certex", instance.problem, seed=seed)
        rng = np.random.default_rng(seed)
        while not session.stopped and session.steps < 200:
            arm = session.ask()
            session.tell(arm, rng.standard_normal(), [costs[arm] + rng.standard_normal()])
        alarms += int(session.round.now.status) == INFEASIBLE
    assert stats.binomtest(alarms, runs, 0.1, alternative="greater").pvalue > 1e-3


def test_the_search_without_rewards_forgives_round_off() -> None:
    """The only mix that the known row allows, within its tolerance, is a witness far below the threshold."""
    rng = np.random.default_rng(1)
    mix = np.array([1.0, 0.0, 0.0])
    for _ in range(200):
        evidence = make_evidence(
            mu=np.zeros(3),
            rows=np.array([[5.6e-17, 1.0, 1.0], [0.05, *rng.normal(size=2)]]),
            mu_var=np.zeros(3),
            row_var=np.vstack([np.zeros(3), 1.0 / rng.uniform(10.0, 1000.0, size=3)]),
            known=np.array([True, False]),
            centre=np.full(3, 1.0 / 3.0),
            tolerance=0.0,
        )
        threshold = 1.5 * witness_value(evidence, mix)
        task = Task(threshold, 0.0, threshold, 200.0, 500)
        outcome, _, _ = search_witness(evidence, task, make_search_work(3, 2), np.zeros(3))
        assert outcome != CERTIFIED
