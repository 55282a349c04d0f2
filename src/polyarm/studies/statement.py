"""What a study was created with; it never changes."""

import json
import secrets
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import Field

from polyarm import __version__
from polyarm.engine.plan import Plan, make_plan
from polyarm.engine.randomness import check_seed
from polyarm.errors import Checked, InvalidInput
from polyarm.problem import Problem
from polyarm.rules.registry import find_explorer, get_explorer
from polyarm.studies.breaker import Breaker, check_breaker

#: In seconds: ten years. Python's calendar must not end before a lease does.
_LONGEST_LEASE = 10 * 366 * 86400.0


def check_lease(lease: float | timedelta | None) -> float | None:
    """Return a lease in seconds (None: trials never expire), or raise."""
    seconds = lease.total_seconds() if isinstance(lease, timedelta) else lease
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= _LONGEST_LEASE:
        raise InvalidInput(
            f"lease: expected more than 0 seconds and at most ten years ({_LONGEST_LEASE:.0f} s), got {lease!r}; omit "
            "it for trials that never expire"
        )
    return float(seconds)


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
        """Prepare the explorer; one of the user's own must be loaded."""
        how = "use polyarm.load_explorer('FILE.py'), or --explorer FILE.py on the command line"
        try:
            loaded = find_explorer(self.explorer)
        except InvalidInput:
            raise InvalidInput(
                f"the study was created with explorer {self.explorer!r}, which is not loaded: {how}"
            ) from None
        if loaded.source_hash != self.source_hash:
            raise InvalidInput(
                f"the study was created with another version of explorer {self.explorer!r} than the one that is "
                f"loaded: load that version of its file; {how}"
            )
        return make_plan(self.explorer, self.problem, self.settings)

    def document(self) -> dict[str, Any]:
        """Return the statement as plain JSON types."""
        return self.model_dump(mode="json")


def state_study(
    problem: Problem,
    explorer: str | Path,
    settings: Mapping[str, Any],
    *,
    seed: int | None = None,
    lease: float | timedelta | None = None,
    breaker: Breaker | None = None,
) -> Statement:
    """Check and complete what a study is created with: all settings, and a seed if none is given."""
    chosen = get_explorer(explorer)
    plan = make_plan(chosen.name, problem, settings)
    if breaker is not None:
        check_breaker(breaker, plan)
    return Statement(
        problem=problem,
        explorer=chosen.name,
        settings=plan.settings.model_dump(mode="json"),
        seed=secrets.randbits(63) if seed is None else check_seed(seed),
        lease=check_lease(lease),
        breaker=breaker,
        source_hash=chosen.source_hash,
        version=__version__,
    )


def read_stated(text: str) -> dict[str, Any]:
    """Parse a stored statement."""
    try:
        stated = json.loads(text)
    except ValueError:
        stated = None
    if not isinstance(stated, dict):
        raise InvalidInput("the stored statement of the study is damaged; see `polyarm study verify`")
    return stated
