"""Settings that every explorer of the paper shares, and the two presets that fill them in."""

import math
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from polyarm.estimates import RADIUS_CODES
from polyarm.model import Model
from polyarm.polytope.vertices import MAX_CANDIDATES, count_candidates
from polyarm.rules.base import C_TRACKING, EMPIRICAL, SET_CODES, TRACKING_CODES, RoundRule
from polyarm.stops.own import BETA_CODES, theory_constant
from polyarm.stops.settings import CertifiedSettings

#: What each preset sets; a setting given by the user wins over its preset.
PRESETS: dict[str, dict[str, Any]] = {
    "corrected": {
        "policy": "empirical",
        "set": "scalar",
        "alternatives": "vertices",
        "margin": "plus",
        "beta": "log",
        "assumed_reward_std": None,
        "gamma": "centroid",
    },
    "paper": {
        "policy": "optimistic",
        "set": "scalar",
        "alternatives": "neighbours",
        "margin": "printed",
        "beta": "paper",
        "assumed_reward_std": 1.0,
        "gamma": "slack",
    },
}


class RoundSettings(CertifiedSettings):
    """How the policy is chosen, when to stop, and what the sampling must respect.

    `policy` and the alternatives live on the polytope of that name; `set` is the confidence set behind the
    optimistic and pessimistic ones; `margin` is the sign of r in the statistic. With `exploration` anytime the
    allocation stays inside `exploration_set` at every step; end-of-time constrains the answer only. `stopping` own is
    the paper's reward-only test; certified replaces it by the rule that proves the answer, with `thresholds` and `lam`.
    """

    preset: Literal["corrected", "paper"] = "corrected"
    policy: Literal["optimistic", "empirical", "pessimistic"]
    set: Literal["scalar", "arm"]
    alternatives: Literal["neighbours", "vertices"]
    margin: Literal["plus", "none", "printed"]
    beta: Literal["paper", "log", "theory"]
    assumed_reward_std: float | None = Field(gt=0)
    exploration: Literal["end-of-time", "anytime"] = "end-of-time"
    exploration_set: Literal["optimistic", "empirical", "pessimistic"] = "empirical"
    stopping: Literal["own", "certified"] = "own"

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, given: Any) -> Any:
        # The field `preset` reports an unknown preset; filling the others keeps that the only complaint.
        preset = given.get("preset")
        chosen = PRESETS[preset] if isinstance(preset, str) and preset in PRESETS else PRESETS["corrected"]
        own = {name: value for name, value in chosen.items() if name in cls.model_fields}
        return {**own, **given}

    @model_validator(mode="after")
    def _certify_what_is_declared(self) -> Self:
        if self.stops_certified() and self.assumed_reward_std is not None:
            raise ValueError(
                "stopping=certified needs the declared reward noise: leave out assumed_reward_std (preset paper "
                "sets it)"
            )
        return self

    @model_validator(mode="after")
    def _refuse_what_changes_nothing(self) -> Self:
        """Refuse a setting that another one makes useless, unless it has its default."""
        if self.stops_certified():
            idle, because = {"beta": PRESETS[self.preset]["beta"]}, "stopping=certified, which has its own thresholds"
        else:
            idle, because = {"thresholds": "proved", "lam": None}, "stopping=own; add stopping=certified"
        self._check_idle(idle, because)
        if self.exploration == "end-of-time":
            self._check_idle({"exploration_set": "empirical"}, "exploration=end-of-time; add exploration=anytime")
        return self

    def _check_idle(self, defaults: dict[str, Any], because: str) -> None:
        for name, default in defaults.items():
            value = getattr(self, name)
            if value != default:
                raise ValueError(f"{name}={value} changes nothing with {because}, or leave {name} out")

    def assumed_std(self) -> float | None:
        """The reward noise to assume instead of the declared one."""
        return self.assumed_reward_std

    def stops_certified(self) -> bool:
        """Whether the certified rule decides when to stop."""
        return self.stopping == "certified"


class TrackingSettings(RoundSettings):
    """Settings of explorers that track an allocation."""

    tracking: Literal["c", "d"] = "c"


class GameSettings(TrackingSettings):
    """Settings of explorers whose allocation is played by AdaGrad."""

    step_size: float = Field(default=1.0 / math.sqrt(2.0), gt=0)
    epsilon: float = Field(default=0.01, gt=0)


class MultiplierSettings(RoundSettings):
    """Settings of explorers that price violations: the slack that bounds the multiplier."""

    gamma: Literal["slack", "slater", "centroid"]


def build_round_rule(settings: RoundSettings, model: Model) -> RoundRule:
    """Translate settings for the kernels."""
    d, n_arms = model.known_rows.shape
    target = {"plus": model.r, "none": 0.0, "printed": -model.r}[settings.margin]
    confirm = settings.alternatives == "vertices" and target != 0.0
    if confirm and count_candidates(n_arms, d) > MAX_CANDIDATES:
        # There are too many vertices to walk. Neighbours suffice for the statistic without r, which is never larger.
        target, confirm = 0.0, False
    anytime = settings.exploration == "anytime"
    policy_set, exploration_set = SET_CODES[settings.policy], SET_CODES[settings.exploration_set]
    return RoundRule(
        tests=not settings.stops_certified(),
        needs_policy=True,
        choice=TRACKING_CODES[settings.tracking] if isinstance(settings, TrackingSettings) else C_TRACKING,
        policy_set=policy_set,
        radius=RADIUS_CODES[settings.set],
        needs_widths=policy_set != EMPIRICAL or (anytime and exploration_set != EMPIRICAL),
        confined=anytime,
        exploration_set=exploration_set,
        confirm_on_vertices=confirm,
        target=target,
        one_sided=settings.margin != "printed",
        beta=BETA_CODES[settings.beta],
        theory_constant=theory_constant(n_arms, d, model.delta),
    )
