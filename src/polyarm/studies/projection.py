"""What a log says of each trial: the rows that look-ups use, made from the events alone."""

from collections.abc import Mapping
from typing import Any

from polyarm.studies import events
from polyarm.studies.events import Event
from polyarm.studies.storage import TrialRow
from polyarm.studies.trial import COMPLETE, EXPIRED, OBSERVED, PARTIAL, PENDING


def project(event: Event, rows: dict[int, TrialRow]) -> None:
    """Change the rows as an event says."""
    said: Mapping[str, Any] = event.payload
    if event.kind == events.ASKED:
        rows[said["trial"]] = TrialRow(said["trial"], said["arm"], PENDING, None, {}, event.at, None)
    elif event.kind == events.OBSERVED:
        rows[said["trial"]] = TrialRow(
            said["trial"], said["arm"], OBSERVED, said["reward"], said["costs"], None, event.at
        )
    elif event.kind == events.EXPIRED:
        rows[said["trial"]] = rows[said["trial"]]._replace(state=EXPIRED)
    elif event.kind == events.TOLD:
        row = rows[said["trial"]]
        state = COMPLETE if said["complete"] else EXPIRED if row.state == EXPIRED else PARTIAL
        rows[row.id] = row._replace(state=state, reward=said["reward"], costs=said["costs"], told_at=event.at)
