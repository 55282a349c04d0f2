"""Certificates: what was proved, with every number needed to check it, and the check itself.

A certificate is a JSON document. Its numbers are computed from the sufficient statistics it carries, by the same
function that verification runs on them again, so that a reader need not trust whoever wrote it: only the statistics,
the declared noise, and that pulls were chosen without looking ahead.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyarm import __version__
from polyarm._html import html_table
from polyarm.certify.proof import (
    Standing,
    breaks_known_rows,
    prove_reward,
    proves_infeasible,
    weigh_statistics,
)
from polyarm.certify.terms import AVERAGED, POOLED, Terms
from polyarm.engine.answer_proof import (
    AnswerProof,
    Case,
    averaged_proof,
    name_conflict,
    pooled_proof,
    pooled_thresholds,
)
from polyarm.engine.block_table import read_blocks, tabulate_blocks
from polyarm.engine.session import Session
from polyarm.errors import CertificateError, InvalidInput, NotYet
from polyarm.files import replaced
from polyarm.model import build_model
from polyarm.problem import Problem
from polyarm.stops.settings import check_certifiable

FORMAT = "polyarm-certificate-3"

POLICY = "POLICY"
INFEASIBLE = "INFEASIBLE"

#: Numbers recomputed on another machine may differ in the last digits.
_AGREEMENT = 1e-6
#: ... and by this where they are close to zero.
_ABSOLUTE_AGREEMENT = 1e-8


@dataclass(frozen=True)
class Certificate:
    """A certificate as a document of plain JSON types; see docs/guarantee.md for its fields."""

    document: dict[str, Any]

    @property
    def verdict(self) -> str:
        """POLICY or INFEASIBLE."""
        return str(self.document["verdict"])

    @property
    def proved(self) -> bool:
        """Whether the thresholds are proved ones; stylised thresholds prove nothing."""
        return bool(self.document["proved"])

    @property
    def policy(self) -> dict[str, float] | None:
        """The certified mix by arm."""
        return self.document["policy"]  # type: ignore[no-any-return]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must also hold, in words, beyond what every certificate assumes; see docs/studies.md."""
        return tuple(self.document.get("study", {}).get("assumptions", ()))

    def _repr_html_(self) -> str:
        document = self.document
        rows = [(arm, f"{share:.1%}") for arm, share in (self.policy or {}).items() if share > 0.0]
        notes = [f"confidence {document['confidence']:g}, r = {document['r']:g}, {document['steps']:,} pulls"]
        if self.verdict == INFEASIBLE:
            notes.append(f"no mix satisfies all of: {', '.join(document['conflict'])}")
        notes += ["thresholds: " + ("proved" if self.proved else "stylised, without a proof")]
        notes += [f"assumes: {assumption}" for assumption in self.assumptions]
        return html_table(f"Certificate: {self.verdict}", ("arm", "share"), rows, notes)

    def write(self, path: str | Path) -> None:
        """Write the document as JSON; the file appears whole or not at all.

        Args:
            path: The file to write; one that exists is replaced.
        """
        with replaced(path) as file:
            file.write((json.dumps(self.document, indent=2, allow_nan=False) + "\n").encode())


@dataclass(frozen=True)
class Verification:
    """The outcome of checking a certificate: valid if `faults` is empty; `proved` if it also claims a proof."""

    faults: tuple[str, ...]
    proved: bool
    verdict: str | None

    @property
    def valid(self) -> bool:
        """Whether everything in the certificate was confirmed."""
        return not self.faults


def make_certificate(session: Session, study: Mapping[str, Any] | None = None) -> Certificate:
    """Return the certificate of a session that the certified rule has stopped; raises `NotYet` before that.

    Args:
        session: The session, with a certified rule: `certex`, or `stopping=certified`.
        study: Where its outcomes came from, in plain JSON types, to be kept in the certificate; by default nothing is
            said.
    """
    case = session.case
    if not session.stopped:
        raise NotYet(f"nothing is certified after {session.steps} pulls: the explorer has not stopped; keep sampling")
    estimates, model, unknown = session.round.estimates, case.model, case.problem.unknown
    statistics = {
        "pulls": estimates.pulls.tolist(),
        "reward_sums": estimates.reward_sums.tolist(),
        "cost_sums": {
            session.problem.constraints[i].name: (estimates.cost_sums[i] / model.factors[i]).tolist() for i in unknown
        },
    }
    verdict = INFEASIBLE if session.infeasible else POLICY
    mix = None if session.infeasible else session.round.answer.tolist()
    blocks = None if session.stop is None else session.stop.winning_blocks()
    table = {} if blocks is None else tabulate_blocks(case, *blocks)
    document = {
        "format": FORMAT,
        "version": __version__,
        "verdict": verdict,
        "explorer": session.plan.explorer.name,
        "settings": session.plan.settings.model_dump(mode="json"),
        "problem": session.problem.model_dump(mode="json"),
        "constants": case.terms.model_dump(mode="json"),
        "statistics": statistics,
        **table,
        **_compute(case, statistics, verdict, mix, table),
        **({} if study is None else {"study": dict(study)}),
    }
    return Certificate({**document, "checksum": _checksum(document)})


def write_certificate(session: Session, path: str | Path) -> None:
    """Write a session's certificate, read it back and verify it; raises if it is not confirmed."""
    make_certificate(session).write(path)
    faults = verify_certificate(read_certificate(path)).faults
    if faults:
        raise CertificateError(
            f"{path}: the certificate was written, but verification does not confirm it, so nothing counts as proved; "
            f"please report this with the file: {'; '.join(faults)}"
        )


def _compute(
    case: Case, statistics: Mapping[str, Any], verdict: str, mix: list[float] | None, table: Mapping[str, Any]
) -> dict[str, Any]:
    """Every number of a certificate that follows from its statistics, the mix (POLICY) and the blocks (averaged)."""
    standing = _stand(case, statistics)
    shared = {
        "certificate": _kind(case, verdict),
        "confidence": 1.0 - case.problem.delta,
        "r": case.problem.r,
        "proved": case.terms.proved,
        "steps": int(sum(statistics["pulls"])),
    }
    if verdict == INFEASIBLE:
        return {
            **shared,
            "thresholds": pooled_thresholds(case, standing),
            "policy": None,
            "passed": proves_infeasible(standing),
            "conflict": name_conflict(case.problem, standing),
        }
    if shared["certificate"] == AVERAGED:
        pulls = case.problem.check_counts("statistics.pulls", statistics["pulls"])
        proof = averaged_proof(case, standing, *read_blocks(case, table, pulls))
    elif mix is None:
        raise InvalidInput("policy: required for verdict POLICY, but not given")
    else:
        proof = pooled_proof(case, standing, case.problem.check_policy(mix))
    return {**shared, **_describe_answer(case, proof)}


def _kind(case: Case, verdict: str) -> str:
    """Which certificate proves a verdict: infeasibility is always proved by the pooled one."""
    return POOLED if verdict == INFEASIBLE else case.terms.certificate


def _describe_answer(case: Case, proof: AnswerProof) -> dict[str, Any]:
    """Decide the reward test of an answer, and write its proof out."""
    problem, reward = case.problem, prove_reward(proof.reward)
    low, high = proof.value_interval
    return {
        "thresholds": proof.thresholds,
        "policy": dict(zip(problem.arms, proof.mix.tolist(), strict=True)),
        "passed": reward.passed and proof.costs_pass and not breaks_known_rows(case.model, proof.mix),
        "value": {"estimate": proof.value, "low": low, "high": high},
        "constraints": [
            {
                "name": c.name,
                "sense": c.sense,
                "bound": c.bound,
                "known": c.known,
                "slack": float(proof.slack[i]),
                "slack_low": float(proof.slack_low[i]),
                "statistic": proof.cost_statistics[i],
            }
            for i, c in enumerate(problem.constraints)
        ],
        "reward_test": {
            "statistic_low": reward.lower,
            "closest_witness": dict(zip(problem.arms, reward.witness.tolist(), strict=True)),
            "witness_value": reward.witness_value if math.isfinite(reward.witness_value) else None,
        },
    }


def _stand(case: Case, statistics: Mapping[str, Any]) -> Standing:
    """Turn sufficient statistics, in the user's units, into evidence."""
    problem, model = case.problem, case.model
    pulls = problem.check_counts("statistics.pulls", statistics["pulls"])
    sums = problem.check_numbers("statistics.reward_sums", statistics["reward_sums"])
    rows = model.known_rows.copy()
    for i in problem.unknown:
        name = problem.constraints[i].name
        costs = problem.check_numbers(f"statistics.cost_sums.{name}", statistics["cost_sums"][name])
        rows[i] = costs * model.factors[i] / pulls - model.bounds[i]
    return weigh_statistics(model, case.terms.make_rule(model), pulls, sums / pulls, rows)


def _checksum(document: Mapping[str, Any]) -> str:
    text = json.dumps({k: v for k, v in document.items() if k != "checksum"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def read_certificate(path: str | Path) -> dict[str, Any]:
    """Read a certificate file; raises if it is not one."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise InvalidInput(f"{path}: not a JSON document: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else type(document).__name__
        raise InvalidInput(f"{path}: not a certificate: expected format {FORMAT!r}, got {found!r}")
    return document


def verify_certificate(document: Mapping[str, Any]) -> Verification:
    """Recompute everything in a certificate from its sufficient statistics; report every disagreement.

    Args:
        document: The certificate in plain JSON types: `Certificate.document`, or what is read from its file.
    """
    verdict = document.get("verdict")
    faults: list[str] = []
    if document.get("checksum") != _checksum(document):
        faults.append("checksum: the document was changed after it was written")
    if verdict not in (POLICY, INFEASIBLE):
        return Verification((*faults, f"verdict: expected POLICY or INFEASIBLE, got {verdict!r}"), False, None)
    if not all(isinstance(document.get(part), Mapping) for part in ("problem", "constants")):
        return Verification((*faults, "incomplete: problem and constants must be objects"), False, str(verdict))
    try:
        case = _read_case(document)
        policy = document["policy"]
        mix = None if policy is None else [policy[arm] for arm in case.problem.arms]
        computed = _compute(case, document["statistics"], verdict, mix, document)
    except (KeyError, TypeError, AttributeError, OverflowError, IndexError) as error:
        return Verification((*faults, f"incomplete: {error!r} is missing or malformed"), False, str(verdict))
    except InvalidInput as error:
        return Verification((*faults, str(error)), False, str(verdict))
    for name, value in computed.items():
        faults.extend(_compare(name, value, document.get(name)))
    if not computed["passed"]:
        faults.append("the statistics do not pass the test that the certificate claims")
    return Verification(tuple(faults), bool(computed["proved"]) and not faults, str(verdict))


def _read_case(document: Mapping[str, Any]) -> Case:
    """Read the problem and the constants of a certificate; no explorer is needed, and none is named."""
    problem, terms = Problem(**document["problem"]), Terms(**document["constants"])
    check_certifiable(problem)
    if not terms.spend_at_most(problem.delta):
        raise InvalidInput(
            f"constants: pooled_delta + averaged_delta = {terms.pooled_delta + terms.averaged_delta:g}, which is more "
            f"than delta = {problem.delta:g}"
        )
    return Case(problem, build_model(problem), terms)


def _compare(where: str, computed: Any, stated: Any) -> list[str]:
    """List where a stated value differs from the recomputed one."""
    if isinstance(computed, dict):
        if not isinstance(stated, dict) or set(stated) != set(computed):
            return [f"{where}: expected the fields {sorted(computed)}, got {stated!r}"]
        return [fault for key in computed for fault in _compare(f"{where}.{key}", computed[key], stated[key])]
    if isinstance(computed, list):
        if not isinstance(stated, list) or len(stated) != len(computed):
            return [f"{where}: expected {len(computed)} entries, got {stated!r}"]
        pairs = zip(computed, stated, strict=True)
        return [fault for k, (mine, theirs) in enumerate(pairs) for fault in _compare(f"{where}.{k}", mine, theirs)]
    if isinstance(computed, float) and isinstance(stated, int | float) and not isinstance(stated, bool):
        same = math.isclose(computed, stated, rel_tol=_AGREEMENT, abs_tol=_ABSOLUTE_AGREEMENT)
    else:
        same = type(computed) is type(stated) and computed == stated
    return [] if same else [f"{where}: stated {stated!r}, but the statistics give {computed!r}"]
