"""Ask/tell: one exploration driven by observations from anywhere."""

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from polyarm._types import FloatArray
from polyarm.certify.proof import Standing, find_safe_mix, weigh_statistics
from polyarm.claims import Claim
from polyarm.engine.answer_proof import AnswerProof, Case, averaged_proof, name_conflict, pooled_proof
from polyarm.engine.claims import claim_infeasible, kind_of_bounds, make_claims
from polyarm.engine.loop import driver_for, tell
from polyarm.engine.outcomes import check_costs, check_outcome
from polyarm.engine.plan import Plan, make_plan
from polyarm.engine.randomness import EXPLORER, check_seed, make_stream
from polyarm.engine.snapshot import all_or_nothing, pack_state, unpack_state
from polyarm.errors import ExplorationOver, InvalidInput, NoFeasibleMix, NotYet, PolyarmError
from polyarm.problem import Problem
from polyarm.report.answer import Recommendation
from polyarm.round import INFEASIBLE, LOOK, NO_ARM, RUNNING, Round
from polyarm.rules.registry import find_explorer, get_explorer
from polyarm.stops.blocks import Block, take_next

_FORMAT = 3
#: Most runs stop between these multiples of what the plan expects.
_EARLY, _LATE = 0.7, 1.3


class Session:
    """One exploration: `ask()` for an arm, `tell()` its outcome, until `stopped`; then `recommend()`.

    Args:
        plan: The problem, the explorer and its settings, checked; `make_explorer` builds it.
        seed: The seed of the explorer's own randomness, a whole number, 0 or more; drawn by default.
    """

    def __init__(self, plan: Plan, seed: int | None = None) -> None:
        self.plan = plan
        self.seed = secrets.randbits(63) if seed is None else check_seed(seed)
        self.rule, self.state, self.work = plan.explorer.init(plan.settings, plan.model)
        self.stop = None if plan.terms is None else plan.settings.make_stop(plan.terms, plan.model, self.state)
        self.rng = make_stream(self.seed, EXPLORER)
        self._conflict: tuple[str, ...] | None = None

    @property
    def problem(self) -> Problem:
        """The problem being explored."""
        return self.plan.problem

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting in force, given or from the preset."""
        return self.plan.settings.model_dump()

    @property
    def round(self) -> Round:
        """The explorer's round; its arrays, not copies."""
        return self.state.round  # type: ignore[no-any-return]

    @property
    def steps(self) -> int:
        """Number of outcomes told."""
        return int(self.round.now.steps)

    @property
    def stopped(self) -> bool:
        """Whether the explorer's stopping rule has fired."""
        self._decide()
        return bool(self.round.now.status != RUNNING)

    @property
    def infeasible(self) -> bool:
        """Whether the explorer stopped because no mix satisfies every constraint."""
        self._decide()
        return bool(self.round.now.status == INFEASIBLE)

    @property
    def certified(self) -> bool:
        """Whether the certified rule decides when to stop."""
        return self.plan.terms is not None

    @property
    def certificate(self) -> str | None:
        """Which certificate a stop with an answer would give: averaged, pooled, or None."""
        return self.plan.certificate

    @property
    def statistic(self) -> float:
        """The test statistic at the last decision; nan before there is one."""
        self._decide()
        return float(self.round.now.statistic)

    @property
    def threshold(self) -> float:
        """The threshold that the statistic must exceed; nan before there is one."""
        self._decide()
        return float(self.round.now.threshold)

    @property
    def policy(self) -> FloatArray | None:
        """The current mix; None before every arm was pulled, while no mix fits the estimates, or when none exists."""
        self._decide()
        if self._unpulled() or self.infeasible:
            return None
        if self.stop is None:
            missing = self.round.now.no_policy
        else:
            missing = self.stop.state.now.looks_empty or self.stop.state.now.reviews == 0
        return None if missing else self.round.answer.copy()

    @property
    def _block(self) -> Block | None:
        """The block under way, for a stop that proves its answer by blocks."""
        return None if self.stop is None else self.stop.block

    @property
    def _is_waiting(self) -> bool:
        """Whether nothing can be decided until an outcome is told: the block is handed out, but not complete."""
        block, now = self._block, self.round.now
        return block is not None and bool(now.steps < now.due) and not block.left.any()

    def _unpulled(self) -> int:
        """How many arms have never been pulled."""
        return int(np.count_nonzero(self.round.estimates.pulls == 0.0))

    def _decide(self) -> int:
        """Run the rule if no arm is pending, and the stop when it must look; never changes a decision."""
        now = self.round.now
        if now.pending != NO_ARM or now.status != RUNNING or self._is_waiting:
            return int(now.pending)  # what the kernel would return, without the cost of a call
        ask = driver_for(self.plan.explorer).ask
        while now.status == RUNNING:
            arm = int(ask(self.rule, self.state, self.plan.model, self.rng, self.work))
            self.refuse_stop_of_rule()
            if arm != LOOK:
                return arm
            self.look()
        return NO_ARM

    def refuse_stop_of_rule(self) -> None:
        """Raise if the rule has ended the exploration, where only a proof may."""
        now = self.round.now
        if self.stop is not None and now.status != RUNNING:
            now.status = RUNNING
            raise InvalidInput(
                f"explorer {self.plan.explorer.name!r} returned no arm after {self.steps} pulls, but its stop is the "
                "certified one, which alone may end the exploration: its rule must always return an arm"
            )

    def look(self) -> None:
        """Let the stop look at the data; a look that is interrupted has not begun."""
        assert self.stop is not None  # without a stop no look is ever due
        # Half a look would count a block twice, or leave an empty block, which looks like the end of the exploration.
        with all_or_nothing(self.state, self.stop.saved):
            self.stop.look()

    def ask(self) -> int:
        """Return the index of the arm to pull next; the same one until its outcome is told."""
        arm = self._decide()
        if arm == NO_ARM:
            raise self._why_nothing_to_ask()
        return arm

    def committed(self) -> FloatArray:
        """How many pulls of each arm (K,) are already decided: they will be asked for whatever their outcomes."""
        arm, block = self._decide(), self._block
        pulls = np.zeros(self.problem.n_arms) if block is None else block.left.copy()
        if arm != NO_ARM:
            pulls[arm] += 1.0
        return pulls

    def ask_batch(self, limit: int | None = None) -> list[int]:
        """Return arms to pull now, all at once; their outcomes may be told in any order.

        An explorer that plans in blocks hands out what is left of the block (an arm may stand there several times).
        Every call returns further arms, each to be told once; the first is the arm that `ask` returned, if that has not
        been told. Any other explorer hands out the one arm that `ask` returns.

        Args:
            limit: The most arms to return, 1 or more; by default there is no limit but the block.
        """
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 1):
            raise InvalidInput(f"limit: expected a whole number, 1 or more, got {limit!r}")
        block = self._block
        if block is None:
            return [self.ask()]
        arms = [self.ask()]  # opens the next block if need be
        with all_or_nothing(self.state):  # an arm that is handed out to nobody would be missing for ever
            self.round.now.pending = NO_ARM
            while (limit is None or len(arms) < limit) and block.left.any():
                arms.append(take_next(block))
            for arm in arms:
                block.waiting[arm] += 1.0
        return arms

    @property
    def waiting(self) -> dict[str, int]:
        """The arms that were handed out in batches, and how many of their outcomes have not been told."""
        block = self._block
        counts = [] if block is None else block.waiting.tolist()
        return {arm: int(count) for arm, count in zip(self.problem.arms, counts, strict=False) if count > 0.0}

    def _why_nothing_to_ask(self) -> PolyarmError:
        block = self._block
        if self.round.now.status == RUNNING and block is not None:
            return InvalidInput(
                f"every pull of this block is handed out, and outcomes are missing: {self.waiting}; tell them and ask "
                "again"
            )
        what = "no mix satisfies every constraint" if self.infeasible else "call recommend()"
        return ExplorationOver(f"the explorer stopped after {self.steps} pulls; {what}")

    def tell(self, arm: int | str, reward: float, costs: Sequence[float] | Mapping[str, float] = ()) -> None:
        """Record the outcome of an arm that was asked for. Anything wrong raises `InvalidInput` and changes nothing.

        Args:
            arm: The arm that was pulled: its index or its name.
            reward: Its reward, a finite number.
            costs: One finite number per unknown constraint, in their order or by name; by default none, for problems
                without.
        """
        index = self.problem.arm_index(arm)
        pending = int(self.round.now.pending)
        block = self._block
        in_batch = index != pending and block is not None and bool(block.waiting[index] > 0.0)
        if pending == NO_ARM and not in_batch:
            waiting = f"only these are: {self.waiting}" if self.waiting else "no arm is"
            raise InvalidInput(
                f"tell for arm {self.problem.arms[index]!r}, which is not waiting for an outcome ({waiting}); was it "
                "told already? call ask() first"
            )
        if index != pending and not in_batch:
            raise InvalidInput(
                f"tell for arm {self.problem.arms[index]!r}, but {self.problem.arms[pending]!r} was asked; "
                "tell the outcome of the arm that ask() returned"
            )
        value = check_outcome("reward", reward)
        row_costs = self._order_costs(costs)
        tell(self.round, self.plan.model, index, value, row_costs)
        if block is not None and in_batch:
            block.waiting[index] -= 1.0

    def _order_costs(self, costs: Sequence[float] | Mapping[str, float]) -> FloatArray:
        """Return one entry per constraint; known rows stay zero and are never read."""
        out = np.zeros(self.problem.n_constraints)
        out[list(self.problem.unknown)] = list(check_costs(self.problem, costs).values())
        return out

    def expected_stop(self) -> tuple[float, float] | None:
        """About when the explorer will stop, as a range of pulls; None while it has no plan, or after it stopped.

        The plan says when the statistics would reach their thresholds if the estimates were true. They are not, so the
        range leaves room on both sides. Asked half-way through 20 runs on each of five instances, about four in five
        stopped within the range.
        """
        if self.stop is None or self.stopped or self.policy is None:
            return None
        planned = self.stop.expected_stop()
        if planned is None:
            return None
        return max(_EARLY * planned, float(self.steps)), _LATE * planned

    def safe_mix(self) -> FloatArray | None:
        """The best mix that is certainly feasible, at confidence 1 - delta; None while there is none.

        Needs the certified rule; computed afresh at every call.
        """
        if not self.certified or self._unpulled() or self.infeasible:
            return None
        return find_safe_mix(self.standing())

    def standing(self) -> Standing:
        """Where the pooled certificate stands: its evidence and thresholds, once every arm was pulled."""
        estimates, model = self.round.estimates, self.plan.model
        # A breaker's alarm is proved with any explorer, even one that stops by its own test.
        terms = self.plan.terms or self.plan.settings.make_terms(model)
        return weigh_statistics(model, terms.make_rule(model), estimates.pulls, estimates.mu_hat, estimates.columns[1:])

    def _proof(self, policy: FloatArray) -> AnswerProof:
        """What is proved of a mix: by its blocks if it is the averaged answer, by all outcomes otherwise."""
        assert self.stop is not None
        blocks = self.stop.winning_blocks()
        if blocks is None:
            return pooled_proof(self.case, self.standing(), policy)
        return averaged_proof(self.case, self.standing(), *blocks)

    @property
    def case(self) -> Case:
        """What a certificate of this session is about, and what it is made with."""
        if self.plan.terms is None:
            raise InvalidInput(
                f"explorer {self.plan.explorer.name!r} stops by its own rule, which proves no certificate; use certex, "
                "or stopping=certified"
            )
        return Case(self.problem, self.plan.model, self.plan.terms)

    def final_mix(self) -> FloatArray | None:
        """The mix to use if sampling ends now: the answer, else the best safe mix, else the candidate."""
        if not self.certified or self.stopped:
            return self.policy
        safe = self.safe_mix()
        return self.policy if safe is None else safe

    def recommend(self) -> Recommendation:
        """Return the current mix and its estimates; works before the explorer stops, and says so."""
        if self.infeasible:
            raise NoFeasibleMix(self.claim_infeasible().sentence)
        if self._unpulled():
            raise NotYet(f"nothing to recommend yet: {self._unpulled()} arms have not been pulled once")
        safe = None if self.stopped else self.safe_mix()
        policy = self.policy if safe is None else safe
        if policy is None:
            raise NotYet(
                "nothing to recommend yet: no mix satisfies the constraints as estimated so far; keep sampling"
            )
        value, slack = float(self.round.estimates.mu_hat @ policy), self.estimated_slack(policy)
        slack_low = value_interval = None
        if self.certified:
            proof = self._proof(policy)
            slack_low = dict(zip(slack, proof.slack_low.tolist(), strict=True))
            value_interval = proof.value_interval
        return Recommendation(
            policy=policy,
            value=value,
            slack=slack,
            slack_low=slack_low,
            value_interval=value_interval,
            steps=self.steps,
            stopped=self.stopped,
            safe=safe is not None,
            claims=make_claims(self.problem, self.plan.settings, self.stopped, safe is not None),
            bounds=kind_of_bounds(self.plan.settings),
            pulls=self.round.estimates.pulls.copy(),
            rewards=self.round.estimates.mu_hat.copy(),
            problem=self.problem,
        )

    @property
    def conflict(self) -> list[str] | None:
        """The constraints that contradict each other, if the exploration ended because of that; computed once."""
        if not self.infeasible:
            return None
        if self._conflict is None:
            self._conflict = tuple(name_conflict(self.problem, self.standing()))
        return list(self._conflict)

    def claim_infeasible(self) -> Claim:
        """Return the claim of an exploration that ended because no mix satisfies every constraint."""
        return claim_infeasible(self.problem, self.plan.settings, self.conflict or ())

    def estimated_slack(self, policy: FloatArray) -> dict[str, float]:
        """Return the room that each constraint leaves a mix under the estimates, by name, in the user's units.

        Args:
            policy: The mix: the share of each arm (K,).
        """
        excess = self.round.estimates.columns[1:] @ policy / np.abs(self.plan.model.factors)
        return {c.name: -float(x) for c, x in zip(self.problem.constraints, excess, strict=True)}

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to continue, as plain JSON types."""
        saved = {
            "format": _FORMAT,
            "problem": self.problem.model_dump(mode="json"),
            "explorer": self.plan.explorer.name,
            "settings": self.plan.settings.model_dump(mode="json"),
            "seed": self.seed,
            "rng": self.rng.bit_generator.state,
            "state": pack_state(self.state),
            "stop": None if self.stop is None else pack_state(self.stop.saved),
        }
        if self.plan.explorer.source is not None:
            saved["source_hash"] = self.plan.explorer.source_hash
        return {**saved, "checksum": _checksum(saved)}

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by saving and restoring: the memory of kernels is never shared."""
        return type(self).from_state_dict, (self.state_dict(),)

    @classmethod
    def from_state_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Continue a session exactly where `state_dict` left it.

        Args:
            saved: What `state_dict` returned, untouched.
        """
        if not isinstance(saved, Mapping) or saved.get("format") != _FORMAT:
            raise InvalidInput(f"state: expected a session saved in format {_FORMAT}; see Session.state_dict()")
        # Kernels follow indices without looking: nothing but what state_dict wrote may reach them.
        if saved.get("checksum") != _checksum({key: value for key, value in saved.items() if key != "checksum"}):
            raise InvalidInput("state: damaged or edited: its checksum does not match; restore an untouched copy")
        try:
            if find_explorer(saved["explorer"]).source_hash != saved.get("source_hash"):
                raise InvalidInput(
                    f"state: saved by another version of explorer {saved['explorer']!r} than the one that is loaded; "
                    "load its file as it was then"
                )
            plan = make_plan(saved["explorer"], Problem(**saved["problem"]), saved["settings"])
            session = cls(plan, saved["seed"])
            unpack_state(saved["state"], session.state)
            if session.stop is not None:
                unpack_state(saved["stop"], session.stop.saved, "stop")
            session.rng.bit_generator.state = saved["rng"]
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"state: not a complete saved session: {error!r}") from None
        return session


def _checksum(saved: Mapping[str, Any]) -> str:
    try:
        text = json.dumps(saved, sort_keys=True)
    except (TypeError, ValueError):
        raise InvalidInput("state: holds values that state_dict() never writes; restore an untouched copy") from None
    return hashlib.sha256(text.encode()).hexdigest()


def make_explorer(name: str | Path, problem: Problem, seed: int | None = None, **settings: Any) -> Session:
    """Start a session of an explorer on a problem.

    Args:
        name: The name of an explorer, or the Python file of your own.
        problem: The problem to explore.
        seed: The seed of the explorer's own randomness, a whole number, 0 or more; drawn by default.
        settings: The explorer's settings; by default those of its preset.
    """
    return Session(make_plan(get_explorer(name).name, problem, settings), seed)
