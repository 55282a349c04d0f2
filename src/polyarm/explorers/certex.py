"""`certex`, which stops only with a proof: its settings, and which of its two forms they ask for."""

from typing import Any, Literal, Self

from pydantic import model_validator

from polyarm.explorers.certex_blocks import build_blocks
from polyarm.explorers.certex_pooled import build_pooled
from polyarm.explorers.certified_settings import CertifiedSettings, build_certified_rule, build_levels
from polyarm.problem import Model

#: Beside the averaged certificate the pooled one keeps this share of delta: for infeasibility, the best safe mix of an
#: unfinished run, and the bounds on slack and value.
_POOLED_SHARE = 0.1


class CertexSettings(CertifiedSettings):
    """Settings of `certex`: those of the certified stop, and which certificate proves the answer.

    `averaged` plans in blocks and answers with the average of their answers: no price per arm; `pooled` weighs all
    outcomes at once, pull by pull. Stylised thresholds exist for `pooled` only, which they select.
    """

    certificate: Literal["averaged", "pooled"] = "averaged"

    @model_validator(mode="before")
    @classmethod
    def _pool_if_stylised(cls, given: Any) -> Any:
        chosen = {"certificate": "pooled"} if given.get("thresholds") == "stylised" else {}
        return {**chosen, **given}

    @model_validator(mode="after")
    def _average_only_with_proof(self) -> Self:
        if self.certificate == "averaged" and self.thresholds != "proved":
            raise ValueError(
                "certificate=averaged has proved thresholds only; use certificate=pooled with stylised ones"
            )
        return self

    def pooled_share(self) -> float:
        """The share of delta that the pooled certificate may spend."""
        return _POOLED_SHARE if self.certificate == "averaged" else 1.0


def build_certex(settings: CertexSettings, model: Model) -> tuple[Any, Any, Any]:
    """Make the rule, a fresh state and scratch of the explorer that belongs to the certificate."""
    certified = build_certified_rule(settings, model)
    if settings.certificate == "averaged":
        return build_blocks(certified, build_levels(settings, model), model)
    return build_pooled(certified, model)
