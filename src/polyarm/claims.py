"""What is claimed of an answer, as data; written out for people in one place."""

from dataclasses import dataclass, replace
from typing import Literal

#: How far a claim may be trusted: proved at its confidence, proved in the limit of many outcomes, resting on thresholds
#: without a proof, or not at all.
Kind = Literal["proved", "asymptotic", "stylised", "none"]

# What a claim is about.
KNOWN_CONSTRAINTS = "known-constraints"
FEASIBLE = "feasible"
NEAR_OPTIMAL = "near-optimal"
INFEASIBLE = "infeasible"
SAMPLING = "sampling"
ASSUMPTION = "assumption"


@dataclass(frozen=True)
class Claim:
    """One claim, and how far it may be trusted.

    Args:
        about: A short code for what it is about: one of those above.
        kind: How far it may be trusted; see `Kind`.
        text: The plain statement.
        confidence: The least probability with which it holds; None if it needs none, or has none.
        assumptions: What must also be true, in words, beyond what every claim of its kind needs.
        why: Why it is not proved; None if it is.
    """

    about: str
    kind: Kind
    text: str
    confidence: float | None = None
    assumptions: tuple[str, ...] = ()
    why: str | None = None

    @property
    def proved(self) -> bool:
        """Whether it is proved, if its assumptions hold."""
        return self.kind == "proved"

    @property
    def label(self) -> str:
        """What to put before the sentence."""
        return "proved" if self.proved else "not proved"

    @property
    def sentence(self) -> str:
        """The claim for people, with everything that belongs to it."""
        premise = "".join(f"if {assumption}: " for assumption in self.assumptions)
        confidence = "" if self.confidence is None else f" with confidence {self.confidence:g}"
        limit = ", as outcomes become many" if self.kind == "asymptotic" else ""
        return f"{premise}{self.text}{confidence}{limit}" + ("" if self.why is None else f": {self.why}")

    def under(self, *assumptions: str) -> "Claim":
        """Return the same claim, resting on more assumptions."""
        return replace(self, assumptions=(*self.assumptions, *assumptions))


@dataclass(frozen=True)
class Claims:
    """Everything that is claimed of an answer."""

    all: tuple[Claim, ...] = ()

    @property
    def proved(self) -> tuple[str, ...]:
        """What is proved, as sentences for people."""
        return tuple(claim.sentence for claim in self.all if claim.proved)

    @property
    def not_proved(self) -> tuple[str, ...]:
        """What is not, and why, as sentences for people."""
        return tuple(claim.sentence for claim in self.all if not claim.proved)

    def under(self, assumption: str, why: str) -> "Claims":
        """Rest every claim on an assumption; `why` says why the assumption itself is not proved."""
        rested = (claim if claim.about == ASSUMPTION else claim.under(assumption) for claim in self.all)
        return Claims((*rested, Claim(ASSUMPTION, "none", assumption, why=why)))
