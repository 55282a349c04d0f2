"""The parts of your own explorer in Numba, in one place to import from; see docs/bring-your-own.md."""

from polyarm._compile import inlined_kernel, kernel
from polyarm._structs import Scalars, struct
from polyarm.model import Model
from polyarm.round import STOP, Round, make_round
from polyarm.rules.base import RoundRule, RoundWork, make_round_work
from polyarm.rules.explorer import Explorer
from polyarm.rules.settings import RoundSettings, TrackingSettings, build_round_rule

__all__ = [
    "STOP",
    "Explorer",
    "Model",
    "Round",
    "RoundRule",
    "RoundSettings",
    "RoundWork",
    "Scalars",
    "TrackingSettings",
    "build_round_rule",
    "inlined_kernel",
    "kernel",
    "make_round",
    "make_round_work",
    "struct",
]
