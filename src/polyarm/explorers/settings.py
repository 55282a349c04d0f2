"""Settings that every explorer of the paper shares, and the two presets that fill them in."""

from typing import Any, Literal

from pydantic import Field, model_validator

from polyarm.errors import Checked
from polyarm.estimates import RADIUS_CODES
from polyarm.explorers.round import EMPIRICAL, POLICY_CODES, RoundRule
from polyarm.geometry.vertices import MAX_CANDIDATES, count_candidates
from polyarm.problem import Model
from polyarm.stopping.thresholds import BETA_CODES, theory_constant

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


class RoundSettings(Checked):
    """How the policy is chosen and when to stop.

    `policy` and the alternatives live on the polytope of that name; `set` is the confidence set behind the
    optimistic and pessimistic ones; `margin` is the sign of r in the statistic.
    """

    preset: Literal["corrected", "paper"] = "corrected"
    policy: Literal["optimistic", "empirical", "pessimistic"]
    set: Literal["scalar", "arm"]
    alternatives: Literal["neighbours", "vertices"]
    margin: Literal["plus", "none", "printed"]
    beta: Literal["paper", "log", "theory"]
    assumed_reward_std: float | None = Field(gt=0)

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, given: Any) -> Any:
        preset = PRESETS.get(given.get("preset", "corrected"), {})
        own = {name: value for name, value in preset.items() if name in cls.model_fields}
        return {**own, **given}


def build_round_rule(settings: RoundSettings, model: Model) -> RoundRule:
    """Translate settings for the kernels; see METHOD Section 3 for polytopes with too many vertices."""
    d, n_arms = model.known_rows.shape
    target = {"plus": model.r, "none": 0.0, "printed": -model.r}[settings.margin]
    confirm = settings.alternatives == "vertices" and target != 0.0
    if confirm and count_candidates(n_arms, d) > MAX_CANDIDATES:
        # Too many vertices to walk. Neighbours suffice for the statistic without r, which is never larger.
        target, confirm = 0.0, False
    return RoundRule(
        policy_set=POLICY_CODES[settings.policy],
        radius=RADIUS_CODES[settings.set],
        needs_widths=POLICY_CODES[settings.policy] != EMPIRICAL,
        confirm_on_vertices=confirm,
        target=target,
        one_sided=settings.margin != "printed",
        beta=BETA_CODES[settings.beta],
        theory_constant=theory_constant(n_arms, d, model.delta),
    )
