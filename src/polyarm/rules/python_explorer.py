"""Explorers whose sampling rule is a plain Python function; the rest of their round is the shared, compiled one."""

from collections.abc import Callable
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np

from polyarm._structs import struct
from polyarm._types import FloatArray
from polyarm.errors import InvalidInput
from polyarm.model import Model
from polyarm.round import Round, make_round
from polyarm.rules.base import RoundRule, RoundWork, make_round_work
from polyarm.rules.explorer import Explorer
from polyarm.rules.settings import TrackingSettings, build_round_rule


class View(NamedTuple):
    """What a sampling rule may look at, in the user's units; every array but `memory` is a copy or read-only.

    `steps` outcomes were told so far, `pulls` (K,) of each arm, at least 1; `mu_hat` (K,) are the mean rewards.
    `cost_hat` (d, K) has one row per constraint, in their order, known ones included: the mean cost minus the bound,
    negated for `>=`. A mix x fits the estimates when every entry of `cost_hat @ x` is at most 0. `policy` (K,) is the
    best mix on the estimated set that the setting `policy` names, or None when that set is empty. `reward_std` (K,) and
    `cost_std` (d, K) are the noise of one pull: nan for rewards without a sub-Gaussian scale, 0 for known rows.
    `memory` is the explorer's own: what is written to it is there at the next step, and saved with the session.
    """

    steps: int
    pulls: FloatArray
    mu_hat: FloatArray
    cost_hat: FloatArray
    policy: FloatArray | None
    delta: float
    r: float
    reward_std: FloatArray
    cost_std: FloatArray
    memory: FloatArray


Allocate = Callable[[View, np.random.Generator], Any]


class PythonRule(NamedTuple):
    """Settings of the round, the user's function, and what its view always shows; `units` (d, 1) undo the scaling."""

    round: RoundRule
    name: str
    allocate: Allocate
    units: FloatArray
    reward_std: FloatArray
    cost_std: FloatArray


@struct
class PythonState:
    """State of the round, and the numbers that the user's function keeps."""

    round: Round
    memory: FloatArray


@struct
class PythonWork:
    """Scratch: that of the round."""

    round: RoundWork


def python_explorer(name: str, summary: str, allocate: Allocate, memory: int = 0) -> Explorer:
    """Make an explorer of a Python function that says where to sample next.

    Args:
        name: Lowercase words joined by dashes.
        summary: A few words for lists.
        allocate: Called as `allocate(view, rng)`. It returns K non-negative numbers, one per arm and not all zero;
            divided by their sum they are the shares that the pulls follow, as the setting `tracking` says. It must take
            its randomness from `rng` and remember things in `view.memory` only: then a saved session continues bit for
            bit.
        memory: How many numbers `view.memory` has, zero at first; by default none.
    """
    if not callable(allocate):
        raise InvalidInput(f"explorer {name!r}: allocate: expected a function of (view, rng), got {allocate!r}")
    if isinstance(memory, bool) or not isinstance(memory, int) or memory < 0:
        raise InvalidInput(f"explorer {name!r}: memory: expected a whole number, 0 or more, got {memory!r}")

    def init(settings: TrackingSettings, model: Model) -> tuple[PythonRule, PythonState, PythonWork]:
        units = 1.0 / np.abs(model.factors)[:, None]
        rule = PythonRule(
            round=build_round_rule(settings, model)._replace(needs_policy=False),
            name=name,
            allocate=allocate,
            units=units,
            reward_std=_read_only(model.family.scale),
            cost_std=_read_only(model.cost_std * units),
        )
        return rule, PythonState(make_round(model), np.zeros(memory)), PythonWork(make_round_work(model))

    return Explorer(name, summary, TrackingSettings, init, {PythonRule: allocate_by_function}, compiled=False)


def allocate_by_function(
    rule: PythonRule, state: PythonState, model: Model, rng: np.random.Generator, work: PythonWork
) -> None:
    """Ask the user's function where to sample."""
    core = state.round
    view = View(
        steps=int(core.now.steps),
        pulls=core.estimates.pulls.copy(),
        mu_hat=core.estimates.mu_hat.copy(),
        cost_hat=core.estimates.columns[1:] * rule.units,
        policy=None if core.now.no_policy else core.policy.copy(),
        delta=model.delta,
        r=model.r,
        reward_std=rule.reward_std,
        cost_std=rule.cost_std,
        memory=state.memory[:],  # a view: its shape may be changed without changing the state's
    )
    core.allocation[:] = _shares(rule.name, rule.allocate(view, rng), core.allocation.size)


def _shares(explorer: str, given: Any, n_arms: int) -> FloatArray:
    """Return what a sampling rule answered as shares, or raise in the explorer's name."""
    try:
        wanted = np.asarray(given)
    except ValueError:  # lists of unequal lengths
        wanted = np.asarray(None)
    if wanted.dtype.kind in "fiub" and wanted.shape == (n_arms,) and wanted.min() >= 0:
        wanted = wanted.astype(np.float64)
        with np.errstate(over="ignore"):
            total = wanted.sum()
        if 0.0 < total < np.inf:
            return np.asarray(wanted / total)
    raise InvalidInput(
        f"explorer {explorer!r}: allocate returned {shorten(repr(given), 200)}; expected {n_arms} finite numbers, one "
        "per arm, none below 0 and not all 0"
    )


def _read_only(array: FloatArray) -> FloatArray:
    copy = array.copy()
    copy.flags.writeable = False
    return copy
