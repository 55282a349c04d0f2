"""What an explorer of one's own in Numba is made of, in one place to import from; see docs/bring-your-own.md."""

from polyarm._compile import inlined_kernel, kernel
from polyarm.explorers.explorer import Explorer
from polyarm.explorers.round import (
    N_MOVES,
    SET_IS_EMPTY,
    STEPS,
    STOP,
    RoundRule,
    RoundState,
    RoundWork,
    confine,
    examine,
    has_alternatives,
    make_round_state,
    make_round_work,
    sample_blindly,
)
from polyarm.explorers.settings import RoundSettings, TrackingSettings, build_round_rule
from polyarm.explorers.tracking import TRACKING_CODES, track
from polyarm.problem import Model

__all__ = [
    "N_MOVES",
    "SET_IS_EMPTY",
    "STEPS",
    "STOP",
    "TRACKING_CODES",
    "Explorer",
    "Model",
    "RoundRule",
    "RoundSettings",
    "RoundState",
    "RoundWork",
    "TrackingSettings",
    "build_round_rule",
    "confine",
    "examine",
    "has_alternatives",
    "inlined_kernel",
    "kernel",
    "make_round_state",
    "make_round_work",
    "sample_blindly",
    "track",
]
