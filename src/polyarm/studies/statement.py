"""What a study was stated to be when it was created; never changed afterwards."""

from typing import Any

from pydantic import Field

from polyarm.engine.plan import Plan, make_plan
from polyarm.errors import Checked, InvalidInput
from polyarm.explorers.registry import find_explorer
from polyarm.problem import Problem
from polyarm.studies.breaker import Breaker


class Statement(Checked):
    """Problem, explorer with every setting in force, seed, lease in seconds (None: trials never expire), breaker.

    `source_hash` is that of an explorer of the user's own; `version` the polyarm that created the study.
    """

    problem: Problem
    explorer: str
    settings: dict[str, Any]
    seed: int
    lease: float | None = Field(default=None, gt=0)
    breaker: Breaker | None = None
    source_hash: str | None = None
    version: str

    def plan(self) -> Plan:
        """Make the explorer ready; it must be loaded if it is one of the user's own."""
        if find_explorer(self.explorer).source_hash != self.source_hash:
            raise InvalidInput(
                f"the study was created with another version of explorer {self.explorer!r} than the one that is "
                "loaded; load its file as it was then"
            )
        return make_plan(self.explorer, self.problem, self.settings)

    def document(self) -> dict[str, Any]:
        """Return the statement as plain JSON types."""
        return self.model_dump(mode="json")
