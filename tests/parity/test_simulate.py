"""Bulk simulation: the runs of a seed do not depend on what runs beside it, or how the seeds are cut."""

from typing import Any

import numpy as np
import pytest

from contract.suitable import ALL_EXPLORERS, CERTIFYING, suit
from polyarm import Instance, Simulation, load_instance, simulate
from polyarm.engine.run import Exploration, RunRecord, plan_run

SEEDS = 12
HORIZON = 600


def instance_for(explorer: str) -> Instance:
    """An instance on which some runs stop before the horizon; a proof takes longer than the paper's tests."""
    if explorer in CERTIFYING:
        return load_instance("setup2-easy").with_problem(r=0.35)
    return suit(explorer, load_instance("setup1-easy"))


def run(explorer: str, **changes: Any) -> Simulation:
    return simulate(instance_for(explorer), explorer, **{"seeds": SEEDS, "workers": 1, "horizon": HORIZON, **changes})


def bits(record: RunRecord) -> dict[str, Any]:
    """Every field of a record, arrays as bytes."""
    return {
        name: (value.dtype.str, value.tobytes()) if isinstance(value, np.ndarray) else (type(value), value)
        for name, value in vars(record).items()
    }


def all_bits(*simulations: Simulation) -> list[dict[str, Any]]:
    return [bits(record) for simulation in simulations for cell in simulation.cells for record in cell.runs]


@pytest.mark.parametrize("explorer", ALL_EXPLORERS)
def test_runs_do_not_depend_on_the_number_of_workers(explorer: str) -> None:
    alone = all_bits(run(explorer, workers=1))
    assert len(alone) == SEEDS
    assert len({record["excess"] for record in alone} | {record["pulls"] for record in alone}) > SEEDS // 2
    for workers in (2, 5):
        assert all_bits(run(explorer, workers=workers)) == alone


@pytest.mark.parametrize("explorer", ALL_EXPLORERS)
def test_runs_do_not_depend_on_how_the_seeds_are_cut(explorer: str) -> None:
    pieces = [run(explorer, first_seed=first, seeds=n, workers=2) for first, n in ((0, 1), (1, 6), (7, 5))]
    assert all_bits(*pieces) == all_bits(run(explorer))


def test_runs_do_not_depend_on_the_company() -> None:
    plain = load_instance("figure2")
    names = [name for name in ALL_EXPLORERS if suit(name, plain) is plain]
    together = simulate(["setup1-easy", "figure2"], names, seeds=4, workers=2, horizon=300)
    assert len(together.cells) == 2 * len(names)
    for cell in together.cells:
        alone = simulate(cell.instance, cell.explorer, seeds=4, workers=1, horizon=300)
        assert [bits(record) for record in cell.runs] == all_bits(alone)


@pytest.mark.parametrize("explorer", ALL_EXPLORERS)
def test_a_run_in_bulk_is_a_run_alone(explorer: str) -> None:
    bulk = run(explorer, workers=2)
    for seed, record in enumerate(bulk.cells[0].runs):
        instance, plan = plan_run(instance_for(explorer), explorer, {})
        alone = Exploration(instance, plan, seed)
        alone.advance_to(HORIZON)
        assert record.seed == seed
        assert bits(record) == bits(alone.record())


@pytest.mark.parametrize("explorer", ALL_EXPLORERS)
def test_a_horizon_only_cuts(explorer: str) -> None:
    """A run that stops before a cap is the same under a higher cap."""
    short, long = run(explorer).cells[0].runs, run(explorer, horizon=4 * HORIZON).cells[0].runs
    finished = [(a, b) for a, b in zip(short, long, strict=True) if a.status == "STOPPED"]
    cut = [(a, b) for a, b in zip(short, long, strict=True) if a.status == "HORIZON"]
    assert finished, "some of these runs stop"
    for early, late in finished:
        assert bits(early) == bits(late)
    for early, late in cut:
        assert early.steps == HORIZON
        assert late.steps > HORIZON or late.status == "STOPPED"
