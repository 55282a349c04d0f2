"""Records what every explorer does on every shipped instance, to compare a change of the house bit for bit.

    python benchmarks/record_trajectories.py record before.json     # in the tree as it was
    python benchmarks/record_trajectories.py record after.json      # in the tree as it is
    python benchmarks/record_trajectories.py compare before.json after.json

Sessions are asked and told through the public interface, with noise drawn here: the comparison rests on nothing that a
change of the house could move. For each run: a hash of the arms of the first pulls at the shipped r, and the pulls,
the answer and the verdict at a larger r, at which most runs stop within seconds.
"""

import argparse
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import polyarm
from polyarm.environments.instances import instance_names, load_instance

SEEDS = range(5)
PULLS = 20_000
#: At which most runs stop soon; those that do not are recorded as they stand after `PULLS` pulls.
LARGE_R = {"router": 0.1, "setup1-hard": 0.3, "setup1-easy": 0.3, "setup2-easy": 0.2, "setup2-hard": 0.2, "imdb": 0.4}
EXPLORERS = ("lagex", "lats", "ctns", "ctns-wlag", "cge", "cge-wlag", "ptns", "uniform")


def _cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every explorer with every stop and every certificate."""
    yield "certex", {"certificate": "averaged"}
    yield "certex", {"certificate": "pooled"}
    yield "certex", {"certificate": "pooled", "thresholds": "stylised"}
    for explorer in EXPLORERS:
        yield explorer, {}
        yield explorer, {"stopping": "certified"}
        yield explorer, {"stopping": "certified", "thresholds": "stylised"}
    yield "lagex", {"preset": "paper"}
    yield "lats", {"preset": "paper"}


def _play(instance: Any, explorer: str, settings: dict[str, Any], seed: int, r: float | None) -> dict[str, Any]:
    problem = instance.problem if r is None else instance.with_problem(r=r).problem
    if explorer in ("cge", "ctns"):
        problem = problem.with_known_rows(instance.A)
    session = polyarm.make_explorer(explorer, problem, seed=seed, **settings)
    noise = np.random.default_rng(seed)
    unknown = list(problem.unknown)
    reward_std = np.broadcast_to(np.asarray(problem.reward_std, dtype=float), problem.n_arms)
    costs_std = [np.broadcast_to(np.asarray(problem.constraints[i].std, dtype=float), problem.n_arms) for i in unknown]
    arms = hashlib.sha256()
    while not session.stopped and session.steps < PULLS:
        arm = session.ask()
        arms.update(bytes([arm]))
        draws = noise.standard_normal(1 + len(unknown))
        costs = [instance.A[i][arm] + s[arm] * x for i, s, x in zip(unknown, costs_std, draws[1:], strict=True)]
        session.tell(arm, instance.mu[arm] + reward_std[arm] * draws[0], costs)
    policy = session.policy
    answer = None if policy is None else hashlib.sha256(policy.tobytes()).hexdigest()[:16]
    return {
        "arms": arms.hexdigest()[:16],
        "pulls": session.steps,
        "stopped": session.stopped,
        "infeasible": session.infeasible,
        "answer": answer,
        "mix": None if policy is None else [round(float(share), 6) for share in policy],
    }


def record(target: Path, only: str | None) -> None:
    """Write the runs that are not in the file yet."""
    runs = json.loads(target.read_text()) if target.exists() else {}
    for explorer, settings in _cases():
        for name in instance_names():
            for r in (None, LARGE_R.get(name, 0.3)):
                for seed in SEEDS:
                    key = f"{explorer} {settings} {name} r={r} seed={seed}"
                    if key in runs or (only is not None and only not in key):
                        continue
                    try:
                        runs[key] = _play(load_instance(name), explorer, settings, seed, r)
                    except polyarm.PolyarmError as error:
                        runs[key] = {"error": str(error)}
        target.write_text(json.dumps(runs, indent=0))
        print(f"{explorer} {settings}: {len(runs)} runs", flush=True)


def compare(before: Path, after: Path) -> int:
    """Print every run that differs; returns how many do."""
    old, new = json.loads(before.read_text()), json.loads(after.read_text())
    shared = [key for key in old if key in new]
    different = [key for key in shared if old[key] != new[key]]
    for key in different:
        print(key, old[key], new[key], sep="\n    ")
    print(
        f"{len(shared)} runs in both, {len(different)} differ; {len(old) - len(shared)} only before, "
        f"{len(new) - len(shared)} only after"
    )
    return len(different)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("target", type=Path)
    recording.add_argument("--only", help="runs whose name contains this")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "record":
        record(given.target, given.only)
    else:
        raise SystemExit(compare(given.before, given.after) > 0)


if __name__ == "__main__":
    main()
