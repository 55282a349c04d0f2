"""What requests and answers hold."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator
from pydantic.config import JsonDict

from polyarm import errors
from polyarm.claims import Claim, Claims, Kind
from polyarm.problem import Problem
from polyarm.studies.breaker import Breaker
from polyarm.studies.status import Interval, StudyStatus

#: Limits of one request; create larger studies with the library or the command line.
MOST_ARMS, MOST_CONSTRAINTS = 200, 20
MOST_TRIALS = 10_000
_MOST_FIELDS = 50

#: Strict: "0.5" and true are no numbers.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


def _few(costs: Any) -> Any:
    if isinstance(costs, dict) and len(costs) > _MOST_FIELDS:
        raise ValueError(f"at most {_MOST_FIELDS} costs, got {len(costs)}")
    return costs


#: The length is looked at before the entries.
Costs = Annotated[dict[str, Number], BeforeValidator(_few)]

_PROBLEM: JsonDict = {
    "arms": ["small", "medium", "large"],
    "reward_std": 0.2,
    "delta": 0.05,
    "r": 0.05,
    "constraints": [{"name": "price", "bound": 1.0, "std": 0.3}],
}


class Body(BaseModel):
    """A request: unknown fields are mistakes."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _has_few_fields(cls, data: Any) -> Any:
        """Refuse a flood of fields at once: each unknown one would cost an error of its own."""
        if isinstance(data, dict) and len(data) > _MOST_FIELDS:
            raise ValueError(f"at most {_MOST_FIELDS} fields, got {len(data)}")
        return data


class NewStudy(Body):
    """A study to create: see docs/studies.md. `lease` is in seconds; `seed` is drawn if it is not given."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "router", "problem": _PROBLEM}]})

    name: str = Field(min_length=1, max_length=200)
    problem: Problem
    explorer: str = "certex"
    settings: dict[str, Any] = {}
    seed: int | None = Field(default=None, ge=0, lt=2**63, strict=True)
    lease: float | None = Field(default=None, gt=0, le=1e9, strict=True)
    breaker: Breaker | None = None

    @field_validator("problem", mode="before")
    @classmethod
    def _of_a_size(cls, problem: Any) -> Any:
        """Refuse what is too large before validating it."""
        given = problem if isinstance(problem, dict) else {}
        if _count(given.get("arms")) > MOST_ARMS or _count(given.get("constraints")) > MOST_CONSTRAINTS:
            raise ValueError(f"at most {MOST_ARMS} arms and {MOST_CONSTRAINTS} constraints through the service")
        _require_small(problem)
        return problem

    @field_validator("breaker", mode="before")
    @classmethod
    def _of_a_size_too(cls, breaker: Any) -> Any:
        _require_small(breaker)
        return breaker

    @model_validator(mode="after")
    def _can_be_written(self) -> "NewStudy":
        """Refuse text that cannot be encoded: halves of characters."""
        try:
            self.model_dump_json()
        except ValueError:
            raise ValueError(
                "it holds text that is not Unicode (half of a surrogate pair), or is nested too deeply"
            ) from None
        return self


def _require_small(thing: Any, depth: int = 4) -> None:
    """Refuse lists and objects that are longer than anything in a problem may be."""
    parts = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, list) else ()
    if len(parts) > MOST_ARMS:
        raise ValueError(f"at most {MOST_ARMS} entries in a list or an object, got {len(parts)}")
    if parts and depth == 0:
        raise ValueError("nested too deeply")
    for part in parts:
        _require_small(part, depth - 1)


def _count(things: Any) -> int:
    return len(things) if isinstance(things, list) else things if isinstance(things, int) else 0


class Stop(Body):
    """Why a study is stopped."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "the sensor is being repaired"}]})

    reason: str = Field(default="", max_length=1_000)


class Ask(Body):
    """How many trials to hand out."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"n": 20}]})

    n: int = Field(default=1, ge=1, le=MOST_TRIALS, strict=True)


class Tell(Body):
    """The outcome of a trial, whole or in parts: what is left out is not known yet."""

    trial: int = Field(ge=1, lt=2**63, strict=True)
    reward: Number | None = None
    costs: Costs | None = None


class Tells(Body):
    """Outcomes of trials: all are recorded, or none."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"tells": [{"trial": 1, "reward": 0.61, "costs": {"price": 0.22}}]}]}
    )

    tells: list[Tell] = Field(min_length=1, max_length=MOST_TRIALS)


class Observation(Body):
    """An outcome that nobody asked for."""

    arm: str
    reward: Number
    costs: Costs = {}


class Observations(Body):
    """Outcomes that nobody asked for: all are recorded, or none."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"outcomes": [{"arm": "small", "reward": 0.61, "costs": {"price": 0.22}}]}]}
    )

    outcomes: list[Observation] = Field(min_length=1, max_length=MOST_TRIALS)


class SignIn(Body):
    """A token, to sign in to the dashboard with."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"token": "pa_..."}]})

    token: str = Field(min_length=1, max_length=500)


# -- answers ----------------------------------------------------------------------------------------------------------


class Listed(BaseModel):
    """A study in the list."""

    id: int
    name: str
    lifecycle: Literal["running", "stopped", "archived"]
    explorer: str
    created_at: str
    trials: int
    events: int


class StudyList(BaseModel):
    """The studies of the storage, by name."""

    studies: list[Listed]


class StudyBody(BaseModel):
    """A study: its statement and its status."""

    id: int
    name: str
    created_at: str
    statement: dict[str, Any]
    status: StudyStatus


class TrialBody(BaseModel):
    """A trial to carry out: pull the arm and tell what it gave, before the lease ends (null: whenever)."""

    id: int
    arm: str
    arm_index: int
    lease_until: str | None
    route: Literal["plan", "control"]


class Asked(BaseModel):
    """The trials that were handed out."""

    trials: list[TrialBody]


class ToldBody(BaseModel):
    """The result of one tell."""

    trial: int
    status: Literal["recorded", "partial", "duplicate"]
    missing: list[str]


class ToldAll(BaseModel):
    """The result of each tell, in order."""

    results: list[ToldBody]


class Observed(BaseModel):
    """The numbers of the trials that the outcomes were recorded as."""

    trials: list[int]


class Mix(BaseModel):
    """The mix to choose now.

    `kind`: answer (the explorer has stopped with it), safe (the best that is certainly feasible so far), candidate (the
    best guess) or none (`why` says why). `slack_low` and `value_interval` hold with confidence 1 - delta, as far as
    `bounds` says. `claims`: what is claimed of the mix, or of the fact that there is none.
    """

    kind: Literal["answer", "safe", "candidate", "none"]
    shares: dict[str, float] | None = None
    value: float | None = None
    value_interval: Interval | None = None
    slack: dict[str, float] | None = None
    slack_low: dict[str, float] | None = None
    bounds: Kind = "none"
    pulls: dict[str, int] | None = None
    rewards: dict[str, float] | None = None
    claims: list[Claim] = []
    why: str | None = None

    @property
    def proved(self) -> tuple[str, ...]:
        """What is proved, as sentences for people."""
        return Claims(tuple(self.claims)).proved

    @property
    def not_proved(self) -> tuple[str, ...]:
        """What is not, and why, as sentences for people."""
        return Claims(tuple(self.claims)).not_proved


class RecommendationBody(Mix):
    """The mix to choose now, of a study."""

    study: str
    steps: int
    stopped: bool


class EventBody(BaseModel):
    """An entry of the log; its digest seals it to the entries before it."""

    seq: int
    at: str
    kind: str
    payload: dict[str, Any]
    digest: str


class Log(BaseModel):
    """The latest entries of the log, the oldest first."""

    events: list[EventBody]


class SessionBody(BaseModel):
    """Who is looking, and what they may do."""

    open: bool
    signed_in: bool
    name: str | None
    scopes: list[str]
    csrf: str | None
    version: str
    storage: str | None


class ExplorerBody(BaseModel):
    """An explorer, and whether its answers are certified by default."""

    name: str
    certified: bool


class ExplorerList(BaseModel):
    """The explorers that a study may use."""

    explorers: list[ExplorerBody]


class Health(BaseModel):
    """Whether the server works; `ready` once the kernels are loaded (compiled, the first time)."""

    status: Literal["ok", "failing"]
    storage: Literal["ok", "failing"]
    ready: bool
    version: str


# -- errors -----------------------------------------------------------------------------------------------------------

#: What polyarm raises, and how that travels: status and title of a problem document. The first that fits.
KINDS: tuple[tuple[type[errors.PolyarmError], int, str], ...] = (
    (errors.UnknownStudy, 404, "No such study"),
    (errors.Conflict, 409, "Contradicts what is stored"),
    (errors.NotYet, 409, "Not yet"),
    (errors.ExplorationOver, 409, "The exploration is over"),
    (errors.NoFeasibleMix, 409, "No mix is feasible"),
    (errors.StudyHalted, 409, "The study is halted"),
    (errors.StorageError, 503, "The storage failed"),
    (errors.InvalidInput, 422, "Invalid input"),
)


class Fault(BaseModel):
    """One thing that is wrong with a request."""

    where: str
    message: str


class ProblemDocument(BaseModel):
    """What went wrong (RFC 9457); `detail` says what to do."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Fault] | None = None
