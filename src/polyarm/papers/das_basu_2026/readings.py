"""The readings of the paper's text: each choice that it leaves open is an explorer's setting."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from polyarm.rules.explorer import Explorer
from polyarm.rules.registry import get_explorer
from polyarm.rules.settings import PRESETS as PRESET_SETTINGS

#: The two presets: the text as printed, and with its mathematics repaired.
PRESETS = ("paper", "corrected")

#: Settings that do not concern an explorer that is told the whole matrix.
_ABOUT_UNKNOWN_ROWS = {"policy", "set", "gamma"}


@dataclass(frozen=True)
class Reading:
    """One way to read the text: changes to the preset `paper`."""

    changes: tuple[tuple[str, Any], ...]

    @property
    def name(self) -> str:
        """The changes in words."""
        return ", ".join(f"{name}={value}" for name, value in self.changes) or "as printed"

    @property
    def is_printed(self) -> bool:
        """Whether this is the preset itself."""
        return all(PRESET_SETTINGS["paper"].get(name) == value for name, value in self.changes)

    def settings(self, explorer: Explorer) -> dict[str, Any]:
        """Return the settings for an explorer: the changes that concern it."""
        fields = {*explorer.settings.model_fields, "delta"}
        idle = _ABOUT_UNKNOWN_ROWS if explorer.needs_known_rows else set()
        return {"preset": "paper", **{name: v for name, v in self.changes if name in fields and name not in idle}}


def make_reading(**changes: Any) -> Reading:
    """Return the reading that changes these settings of the preset `paper`."""
    return Reading(tuple(changes.items()))


def preset_settings(explorer: str, preset: str) -> dict[str, Any]:
    """Return the settings of a preset; none for an explorer that has no presets."""
    return {"preset": preset} if "preset" in get_explorer(explorer).settings.model_fields else {}


#: One mixture of readings came close to one published median in an early experiment; the single changes start there.
MIXTURE: Mapping[str, Any] = {"policy": "empirical", "alternatives": "vertices", "margin": "printed", "beta": "paper"}

_SINGLE_CHANGES: tuple[Mapping[str, Any], ...] = (
    {"policy": "pessimistic"},
    {"beta": "theory"},
    {"set": "arm", "policy": "optimistic"},
    {"tracking": "d"},
    {"gamma": "centroid"},
    {"gamma": "slater"},
    {"assumed_reward_std": None},
    {"delta": 0.1},
)


def list_readings() -> list[Reading]:
    """Return every reading that is tried: all combinations of the four main choices, and single changes to one."""
    readings = [
        make_reading(policy=policy, alternatives=alternatives, margin=margin, beta=beta)
        for policy, alternatives, margin, beta in product(
            ("optimistic", "empirical"), ("neighbours", "vertices"), ("printed", "plus", "none"), ("paper", "log")
        )
        # Without a margin the neighbours suffice: all vertices give the same run.
        if margin != "none" or alternatives == "neighbours"
    ]
    readings = [reading for reading in readings if not reading.is_printed]
    return readings + [make_reading(**{**MIXTURE, **change}) for change in _SINGLE_CHANGES]


def list_few_readings() -> list[Reading]:
    """Return the readings of a quick look."""
    return [
        make_reading(**MIXTURE),
        make_reading(**{**MIXTURE, "margin": "none", "alternatives": "neighbours"}),
        make_reading(**{**MIXTURE, "delta": 0.1}),
    ]
