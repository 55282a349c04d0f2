"""Planning what remains of an exploration after a start: what its blocks have earned, and what a plan leads to."""

from polyarm._compile import kernel
from polyarm._types import FloatArray
from polyarm.certify.blocks import ANCHOR, Start, row_variance
from polyarm.certify.evidence import Evidence
from polyarm.planner.objective import Scene

#: The pulls planned for are at least and at most this many times those since the start.
_LEAST_REST, _MOST_REST = 0.3, 4.0


@kernel
def recall(start: Start, scene: Scene) -> None:
    """Write what a start has earned into the scene's memory, for a plan of the pulls that remain; all per pull."""
    memory, model, mu, rows = scene.memory, scene.model, scene.mu, scene.rows
    n_arms, d = mu.size, model.known.size
    weight = start.terms.weight
    rest = min(max(start.terms.forecast - weight, _LEAST_REST * weight), _MOST_REST * weight)
    share = rest / (weight + rest)
    per = 1.0 / (weight + rest)
    base = 0.0
    for a in range(n_arms):
        lam, anchor = start.lam[a], start.anchor[a]
        memory.spreads[a] = per * (start.v[a] + lam)
        memory.cross[a] = per * (start.u[a] + lam * anchor)
        memory.means[a] = per * start.rewards[a] + share * mu[a]
        base += model.reward_noise[a] * (start.z[a] + (1.0 + ANCHOR) * lam * anchor * anchor)
        for i in range(d):
            measured = per * start.rows[i, a] + share * rows[i, a]
            memory.rows[i, a] = rows[i, a] if model.known[i] else measured
    memory.terms.share = share
    memory.terms.earned = per * start.terms.earned
    memory.terms.settled = per * base
    memory.terms.floor = start.terms.row_floor / max(start.terms.forecast, 1.0)
    for i in range(d):
        memory.slacks[i] = per * start.slack[i]
        memory.bases[i] = per * row_variance(start, i, model)


@kernel
def foresee(scene: Scene, allocation: FloatArray, answer: FloatArray, evidence_out: Evidence) -> None:
    """Write the evidence per pull that a plan leads to, as the reward test will see it."""
    memory, model, mu, centre = scene.memory, scene.model, scene.mu, evidence_out.centre
    spreads, means, noise = memory.spreads, memory.means, model.reward_noise
    share = memory.terms.share
    spread = memory.terms.settled
    gap = model.r + memory.terms.earned
    for a in range(answer.size):
        planned = share / allocation[a]
        total = spreads[a] + planned
        centre[a] = (memory.cross[a] + planned * answer[a]) / total
        evidence_out.mu[a] = means[a]
        evidence_out.mu_var[a] = noise[a] * total
        gap += share * mu[a] * answer[a] - evidence_out.mu[a] * centre[a]
        around = planned * answer[a] * answer[a] - total * centre[a] * centre[a]
        spread += noise[a] * around
        for i in range(model.known.size):
            evidence_out.rows[i, a] = memory.rows[i, a]
            evidence_out.row_var[i, a] = model.row_noise[i, a] * total
    for i in range(model.known.size):
        evidence_out.known[i] = model.known[i]
    terms = evidence_out.terms
    terms.spread, terms.floor, terms.tolerance = max(spread, 0.0), memory.terms.floor, gap
