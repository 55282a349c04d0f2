"""Play simulated runs one pull at a time and write down every decision: as a function, and as a program.

As a program it reads cases as JSON from standard input and writes their trajectories to standard output, so that
another process, or one without compilation, can be compared with this one.
"""

import json
import sys
from typing import Any

import numpy as np

from polyarm import Instance, Problem
from polyarm.engine.run import Exploration, plan_run

Case = dict[str, Any]
Trajectory = dict[str, Any]


def make_case(instance: Instance, explorer: str, settings: dict[str, Any], seed: int, pulls: int) -> Case:
    """Write down a run as plain JSON types."""
    return {
        "problem": instance.problem.model_dump(mode="json"),
        "mu": instance.mu.tolist(),
        "A": instance.A.tolist(),
        "explorer": explorer,
        "settings": settings,
        "seed": seed,
        "pulls": pulls,
    }


def read_case(case: Case) -> tuple[Exploration, int]:
    """Make the exploration of a case, not yet started, and the number of pulls it is to make."""
    problem, mu = Problem(**case["problem"]), np.array(case["mu"])
    rows = np.array(case["A"]).reshape(-1, mu.size)
    instance, plan = plan_run(Instance("case", "", problem, mu, rows), case["explorer"], case["settings"])
    return Exploration(instance, plan, case["seed"]), int(case["pulls"])


def follow(case: Case) -> Trajectory:
    """Play a case pull by pull."""
    exploration, pulls = read_case(case)
    session = exploration.session
    arms: list[int] = []
    while len(arms) < pulls and not session.stopped:
        arms.append(session.ask())
        exploration.advance_to(len(arms))
    record = exploration.record()
    scores = [record.policy_violations, record.allocation_violations, record.excess]
    return {"arms": arms, "stopped": session.stopped, "scores": scores, "saved": session.state_dict()}


if __name__ == "__main__":
    json.dump([follow(case) for case in json.load(sys.stdin)], sys.stdout)
