"""What polyarm raises, and how that travels over HTTP: the status and the title of a problem document."""

from polyarm.errors import (
    Conflict,
    ExplorationOver,
    InvalidInput,
    NoFeasibleMix,
    NotYet,
    PolyarmError,
    StorageError,
    StudyHalted,
    UnknownStudy,
)

#: The first that fits.
KINDS: tuple[tuple[type[PolyarmError], int, str], ...] = (
    (UnknownStudy, 404, "No such study"),
    (Conflict, 409, "Contradicts what is stored"),
    (NotYet, 409, "Not yet"),
    (ExplorationOver, 409, "The exploration is over"),
    (NoFeasibleMix, 409, "No mix is feasible"),
    (StudyHalted, 409, "The study is halted"),
    (StorageError, 503, "The storage failed"),
    (InvalidInput, 422, "Invalid input"),
)
