"""Families as the user meets them: what a problem must state, which means fit, and runs that never break."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract.suitable import ALL_EXPLORERS, CERTIFYING, make_instance, suit
from oracle.records import leaves
from polyarm import Instance, InvalidInput, Problem, load_instance
from polyarm.engine.run import Exploration, plan_run
from polyarm.families.family import (
    FAMILY_CODES,
    alternative_cost,
    confidence_ends,
    divergence,
    is_sub_gaussian,
    linearise_move,
    make_family,
    sample_reward,
    write_nearest_alternative,
)
from polyarm.model import build_model
from polyarm.polytope.neighbours import Move, Moves

FAMILIES = sorted(FAMILY_CODES)
NEEDS: dict[str, dict[str, Any]] = {"gaussian": {"reward_std": 0.5}, "bounded": {"reward_range": (-1.0, 2.0)}}
WITHOUT_NOISE = [name for name in FAMILIES if name not in NEEDS]
every_family = pytest.mark.parametrize("family", FAMILIES)


def problem(family: str, **changes: Any) -> Problem:
    return Problem(**{"arms": 3, "delta": 0.1, "r": 0.1, "family": family, **NEEDS.get(family, {}), **changes})


def refusal(family: str, **changes: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        problem(family, **changes)
    return str(caught.value)


# -- Problems --------------------------------------------------------------------------------------------------


@every_family
def test_a_problem_survives_json(family: str) -> None:
    stated = problem(family)
    assert Problem(**json.loads(json.dumps(stated.model_dump(mode="json")))) == stated
    assert stated.replace(r=0.2).replace(r=0.1) == stated


def test_gaussian_rewards_need_their_noise() -> None:
    assert refusal("gaussian", reward_std=None) == "reward_std: required, but not given"


def test_bounded_rewards_need_their_range() -> None:
    assert refusal("bounded", reward_range=None) == "reward_range: required, but not given"


@pytest.mark.parametrize("family", ["bounded", *WITHOUT_NOISE])
def test_other_families_refuse_a_reward_std(family: str) -> None:
    message = refusal(family, reward_std=0.5)
    assert message == f"reward_std: belongs to family 'gaussian'; leave it out for family {family!r}, got 0.5"


@pytest.mark.parametrize("family", ["gaussian", *WITHOUT_NOISE])
def test_other_families_refuse_a_reward_range(family: str) -> None:
    message = refusal(family, reward_range=[0, 1])
    assert message == f"reward_range: belongs to family 'bounded'; leave it out for family {family!r}, got (0.0, 1.0)"


@pytest.mark.parametrize("ends", [[1.0, 1.0], [2.0, -1.0]])
def test_a_range_goes_upwards(ends: list[float]) -> None:
    expected = f"reward_range: expected the least reward, then a larger one, got {ends}"
    assert refusal("bounded", reward_range=ends) == expected


@pytest.mark.parametrize("ends", [[0.0], [0.0, 1.0, 2.0], [0.0, np.inf], [np.nan, 1.0], "wide"])
def test_a_range_is_two_finite_numbers(ends: Any) -> None:
    assert refusal("bounded", reward_range=ends).startswith("reward_range")


def test_an_unknown_family_is_the_only_complaint() -> None:
    assert refusal("bernouli", reward_std=1.0).endswith("Did you mean 'bernoulli'?")
    assert "\n" not in refusal("bernouli")


# -- Models ----------------------------------------------------------------------------------------------------


def test_scales_are_sub_gaussian() -> None:
    scales = {family: build_model(problem(family)).family.scale.tolist() for family in FAMILIES}
    assert scales["gaussian"] == [0.5] * 3
    assert scales["bounded"] == [1.5] * 3
    assert scales["bernoulli"] == [0.5] * 3
    assert np.isnan(scales["poisson"]).all()
    assert np.isnan(scales["exponential"]).all()


@every_family
def test_sub_gaussian_families_are_those_with_a_scale(family: str) -> None:
    assert is_sub_gaussian(family) == bool(np.isfinite(build_model(problem(family)).family.scale).all())


@every_family
def test_an_assumed_noise_changes_gaussian_rewards_only(family: str) -> None:
    plain, assumed = build_model(problem(family)), build_model(problem(family), assumed_reward_std=7.0)
    if family == "gaussian":
        assert assumed.family.scale.tolist() == [7.0] * 3
    else:
        np.testing.assert_array_equal(assumed.family.scale, plain.family.scale)
    assert (assumed.family.kind, assumed.family.low, assumed.family.high) == (
        plain.family.kind,
        plain.family.low,
        plain.family.high,
    )


# -- Instances -------------------------------------------------------------------------------------------------

OUTSIDE = [
    ("bernoulli", [0.2, 1.2, 0.5], "mu: expected means from 0 to 1 for family 'bernoulli', got [1.2]"),
    ("bernoulli", [-0.1, 1.2, 0.5], "mu: expected means from 0 to 1 for family 'bernoulli', got [-0.1, 1.2]"),
    ("poisson", [0.2, -1.0, 0.5], "mu: expected means above 0 for family 'poisson', got [-1.0]"),
    ("poisson", [0.2, 0.0, 0.5], "mu: expected means above 0 for family 'poisson', got [0.0]"),
    ("exponential", [0.0, 1.0, 0.5], "mu: expected means above 0 for family 'exponential', got [0.0]"),
    ("bounded", [0.0, 2.5, 0.5], "mu: expected means from -1 to 2 for family 'bounded', got [2.5]"),
]


def instance(family: str, mu: list[float], **changes: Any) -> Instance:
    cost = {"name": "price", "bound": 0.6, "std": 0.3}
    stated = {"family": family, "reward_std": None, **NEEDS.get(family, {}), **changes}
    return make_instance(mu, [[1.0, 0.5, 0.0, 0.2][: len(mu)]], [cost], **stated)


@pytest.mark.parametrize(("family", "mu", "expected"), OUTSIDE)
def test_means_outside_the_domain_are_refused(family: str, mu: list[float], expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        instance(family, mu)
    assert str(caught.value) == expected


@pytest.mark.parametrize(("family", "mu"), [("bernoulli", [0.0, 1.0, 0.5]), ("bounded", [-1.0, 2.0, 0.5])])
def test_means_on_the_closed_edge_are_fine(family: str, mu: list[float]) -> None:
    assert instance(family, mu).mu.tolist() == mu


def test_another_family_checks_the_means_again() -> None:
    with pytest.raises(InvalidInput, match="from 0 to 1"):
        instance("poisson", [0.5, 3.0, 1.0]).with_problem(family="bernoulli")


def test_an_instance_file_may_name_a_family(tmp_path: Path) -> None:
    text = "mu = [0.5, 1.5]\nA = [[1, 0]]\nb = [0.5]\ncost_std = 1\ndelta = 0.1\nr = 0.1\n"
    path = tmp_path / "mine.toml"
    path.write_text(text + 'family = "bounded"\nreward_range = [0, 2]\n')
    assert load_instance(path).problem.reward_range == (0.0, 2.0)
    path.write_text(text + 'family = "exponential"\n')
    assert load_instance(path).problem.family == "exponential"
    path.write_text(text + 'family = "bernoulli"\n')
    with pytest.raises(InvalidInput, match=r"instance 'mine': mu: expected means from 0 to 1 .*got \[1.5\]"):
        load_instance(path)


# -- Runs ------------------------------------------------------------------------------------------------------

#: Means that leave arms with nothing but zeros, or ones, for a while.
MU = {
    "gaussian": [0.9, 0.6, 0.3, 0.1],
    "bounded": [2.0, 1.0, 0.2, -1.0],
    "bernoulli": [1.0, 0.5, 0.02, 0.0],
    "poisson": [2.0, 1.0, 0.02, 0.3],
    "exponential": [2.0, 1.0, 0.02, 0.3],
}


def plan_or_refusal(explorer: str, world: Instance, settings: dict[str, Any]) -> Any:
    """Plan a run; an explorer with proved thresholds may refuse a family that is not sub-Gaussian, and says why."""
    try:
        return plan_run(suit(explorer, world), explorer, settings)
    except InvalidInput as error:
        if is_sub_gaussian(world.problem.family) or world.problem.family not in str(error):
            raise
        pytest.skip(f"{explorer} refuses {world.problem.family} rewards")


@every_family
@pytest.mark.parametrize("explorer", ALL_EXPLORERS)
@pytest.mark.parametrize("preset", ["corrected", "paper"])
def test_every_explorer_runs_on_every_family(explorer: str, family: str, preset: str) -> None:
    world = instance(family, MU[family])
    own = {} if explorer in CERTIFYING else {"preset": preset}
    world, plan = plan_or_refusal(explorer, world, {"delta": 1e-100, **own})
    exploration = Exploration(world, plan, 3)
    exploration.advance_to(300)
    session = exploration.session
    assert session.steps == 300
    for name, value in leaves(session.round):
        if name not in ("now.statistic", "now.threshold"):  # undefined while no mix fits the estimates
            assert np.isfinite(value).all(), name
    assert session.round.allocation.min() >= 0.0
    assert session.round.allocation.sum() == pytest.approx(1.0, abs=1e-6)
    # An explorer that plans in blocks makes no test before its first start.
    assert not np.isnan(session.statistic) or session.policy is None or explorer in CERTIFYING
    assert session.policy is None or np.isfinite(session.policy).all()


# -- Without compilation ---------------------------------------------------------------------------------------


def compute_everything() -> list[float]:
    """Every kernel on a spread of cases, edges of the domain and unreachable targets included."""
    rng = np.random.default_rng(8)
    out: list[float] = []
    for name in FAMILIES:
        family = make_family(name, 4, 0.7, (-0.5, 1.5) if name == "bounded" else None)
        for mean in (0.0, 1e-9, 0.2, 0.5, 1.0):
            for level in (0.0, 1e-9, 0.1, 5.0, 60.0):
                out += confidence_ends(family, 0, mean, level)
                out.append(divergence(family, 0, mean, 0.3 + level / 100.0))
        for _ in range(40):
            size = int(rng.integers(1, 5))
            move = Move(Moves(np.arange(4)[None, :], rng.normal(size=(1, 4)), np.array([size])), 0)
            means = np.where(rng.random(4) < 0.2, np.round(rng.random(4)), rng.random(4))
            weights = 10.0 ** rng.uniform(-10.0, 3.0, 4)
            target = float(rng.normal())
            others, spread = np.zeros(4), np.zeros((1, 4))
            out += alternative_cost(family, means, weights, move, target)
            write_nearest_alternative(family, means, weights, move, target, others)
            out.append(linearise_move(family, means, weights, move, target, spread))
            out += [*others.tolist(), *spread[0].tolist()]
        out += [sample_reward(family, 0, mean, rng) for mean in (0.01, 0.3, 0.9, 0.9) for _ in range(20)]
    return [float(value) for value in out]


def test_without_compilation_the_numbers_are_the_same() -> None:
    program = "import json; from unit.test_families import compute_everything; print(json.dumps(compute_everything()))"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(compute_everything(), json.loads(done.stdout), rtol=1e-9, atol=1e-12)
