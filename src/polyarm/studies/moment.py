"""A study at one event, to be looked at in peace while the study goes on."""

from dataclasses import dataclass
from typing import Any

from polyarm.engine.session import Session
from polyarm.studies.status import StudyStatus


@dataclass(frozen=True)
class Moment:
    """As of event `seq`: the status, what has to be assumed, the readings so far, and a copy of the explorer."""

    seq: int
    status: StudyStatus
    assumptions: tuple[str, ...]
    history: dict[str, list[Any]]
    session: Session
