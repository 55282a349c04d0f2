r"""Problems that people have, stated as `Problem`: most are the applications of the paper (docs/applications.md).

Every constructor returns a `Problem`; what it does not name (`delta`, `r`, `reward_std`, `family`, ...) goes to it
unchanged. All of them speak of the *mix*: a condition holds on average over the arms that the mix draws, not for each
arm in it. The `std` of a measured row is a sub-Gaussian scale, as everywhere: 1/2 for outcomes that are 0 or 1, half
the range for bounded ones. Where rewards or costs are not what was measured but derived from it, a function makes them
(`subpopulation_outcome`, `exposure_outcome`, `guardrail_costs`), and the constructor has declared scales that hold for
what it returns.

Every constructor takes `guess`, for `polyarm.plan`: the mean that you expect of each thing that is measured, by name,
one number per arm, `reward` among them: `guess={"reward": [0.6, 0.8], "price": [0.2, 0.9]}`. No explorer sees it.

Shadow prices. The paper's Theorem 6 defines one for every problem, `shadow_price` here; for some applications its
appendix prints a formula of its own, and those are functions of their own. They describe how hard the paper's LATS
finds a problem; `certex` does not use them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from polyarm._types import FloatArray
from polyarm.errors import Checked, InvalidInput, unknown_name
from polyarm.problem import Constraint, PerArm, Positive, Problem
from polyarm.tolerances import PRIMAL, SIMPLEX

Arms = int | Sequence[str]
Scale = float | Sequence[float]
#: Means by name, one number per arm.
Expected = Mapping[str, Sequence[float] | FloatArray]
#: Zero without noise has every scale, but a declared one must be positive: this share of the row's largest.
_NO_NOISE = 0.01


def thresholds(
    arms: Arms,
    limits: Scale | None = None,
    *,
    toxicity_limit: float | None = None,
    toxicity_std: Scale | None = None,
    guess: Expected | None = None,
    **stated: Any,
) -> Problem:
    r"""Thresholding and dose finding: the most effective mix of doses, each within its limit, or the mix safe, or both.

    .. math:: \max_\pi \mu^\top \pi \quad\text{subject to}\quad \pi_a \le \theta_a \ \text{for every arm } a,
              \qquad \sum_a \pi_a c_a \le \theta.

    The arms are doses or drugs; the reward is the effect. The rows of the limits :math:`\theta_a` are known, so exact.
    The mean toxicity :math:`c` of the mix is measured: tell `costs={"toxicity": ...}`.

    The paper has the first rows alone (:math:`I \pi \le I \theta`); the second is what its words ask for, a mix that
    stays below a safety level that only trials show. Shadow price: `thresholds_shadow_price`.

    Args:
        arms: The names of the doses, or how many there are.
        limits: The largest share :math:`\theta_a` that each arm may have, one number or one per arm; a limit of 1 or
            more forbids nothing and makes no row. By default there are none.
        toxicity_limit: The bound :math:`\theta` on the mean toxicity of the mix; by default there is none.
        toxicity_std: The noise of a measured toxicity, one number or one per arm: 1/2 for events that happen or not.
            Required with `toxicity_limit`.
        guess: For `polyarm.plan`: the mean that you expect of each measured thing, by name, one number per arm;
            `reward`, and `toxicity` if it has a limit.
        stated: Other fields of `Problem`: `delta`, `r`, `reward_std`, `family`, ...
    """
    names = _name_arms(arms)
    if limits is None and toxicity_limit is None:
        raise InvalidInput("thresholds: give limits, the largest share of each arm, or toxicity_limit, or both")
    rows = []
    if limits is not None:
        rows = [
            _share_row(names, arm, "<=", limit)
            for arm, limit in zip(names, _check_limits(limits, len(names)), strict=True)
            if limit < 1.0
        ]
    if toxicity_limit is not None:
        if toxicity_std is None:
            raise InvalidInput("toxicity_std: required with toxicity_limit, the noise of a measured toxicity")
        bound, std = _number("toxicity_limit", toxicity_limit), _scales(["toxicity"], toxicity_std)
        rows.append(Constraint(name="toxicity", bound=bound, std=std["toxicity"]))
    elif toxicity_std is not None:
        raise InvalidInput("toxicity_std: belongs to toxicity_limit, which is not given")
    return _make(names, rows, stated, guess)


def thresholds_shadow_price(limits: Scale, policy: Sequence[float] | FloatArray) -> float | None:
    r"""Return :math:`\max_a(\theta_a - \pi_a)/\min_a(\theta_a - \pi_a)`; None when the mix reaches a limit.

    Differs from paper: it prints :math:`\pi - \theta` in place of :math:`\theta - \pi` and says the ratio is at least
    1. The entries of :math:`\pi - \theta` are negative, so the printed ratio is at most 1, the reciprocal of this one.

    Args:
        limits: The largest share of each arm, one number or one per arm.
        policy: The mix: one share per arm.
    """
    mix = _check_mix(policy)
    return _ratio(np.array(_check_limits(limits, mix.size)) - mix)


def knapsack(
    arms: Arms,
    capacities: Mapping[str, float],
    std: Scale | Mapping[str, Scale] | None = None,
    *,
    consumption: Mapping[str, Sequence[float]] | None = None,
    rounds: int = 1,
    guess: Expected | None = None,
    **stated: Any,
) -> Problem:
    r"""End-of-time knapsack: the best mix to deploy within resources; exploration itself may use as much as it likes.

    .. math:: \max_\pi \mu^\top \pi \quad\text{subject to}\quad T \sum_a \pi_a A_{ia} \le C_i
              \ \text{for every resource } i.

    The arms are ways to spend; one pull shows a reward and how much of each resource it used, the costs to tell.

    Exact in expectation: what :math:`T` rounds really use scatters around its mean, by about std times :math:`\sqrt T`
    and with the arms that are drawn; lower the capacity by as much as you want to be safe from.

    Shadow price: `shadow_price`. Differs from paper: it states :math:`s \le c`, the largest capacity. That holds when
    nothing is consumed negatively and every row has slack 1 or more, in the units chosen; but s is at least 1, so not
    with capacities below 1, and a row with little slack makes s as large as you like.

    Args:
        arms: The names of the ways to spend, or how many there are.
        capacities: How much of each resource, by name, may be used in :math:`T` pulls of the deployed mix: :math:`C_i
            \ge 0`.
        std: The noise of each measured resource, one for all or by name; each may be one number or one per arm.
            Required unless all rows are known.
        consumption: The rows :math:`A_i` that are known, by name: what one pull of each arm uses; by default all are
            measured.
        rounds: :math:`T`, a whole number; by default 1: capacities are those of an average pull.
        guess: For `polyarm.plan`: the mean that you expect of each measured thing, by name, one number per arm;
            `reward` and the measured resources.
        stated: Other fields of `Problem`: `delta`, `r`, `reward_std`, `family`, ...
    """
    _require_some("capacities", capacities, "name: the capacity of the resource")
    _require_whole("rounds", rounds)
    known: dict[str, Any] = dict(consumption or {})
    _require_known_names("resource in consumption", known, capacities)
    scales = _scales([name for name in capacities if name not in known], std)
    rows = [
        Constraint(
            name=name,
            bound=_number(f"capacity of {name!r}", capacity, low=0.0) / rounds,
            row=known.get(name),
            std=scales.get(name),
        )
        for name, capacity in capacities.items()
    ]
    return _make(_name_arms(arms), rows, stated, guess)


def feasible_arms(
    arms: Arms,
    floors: Mapping[str, float],
    std: Scale | Mapping[str, Scale],
    *,
    guess: Expected | None = None,
    **stated: Any,
) -> Problem:
    r"""Feasible arm selection: the team of highest utility whose average performance reaches a floor on every task.

    .. math:: \max_\pi \mu^\top \pi \quad\text{subject to}\quad f_l^\top \pi \ge \tau_l \ \text{for every task } l.

    The arms are workers (or foods, or models); one pull shows the worker's utility, the reward, and how well it did
    each task: tell `costs={task: performance}`, of mean :math:`f_{la}`. Floors that differ between workers, as the
    paper mentions, are the same problem: tell the performance minus the worker's own floor, and state the floor 0.

    Exact for the team. A worker below a floor may be in it, if others make up for that; a single worker above every
    floor is the original problem, and no linear one. Shadow price: `feasible_arms_shadow_price`.

    Args:
        arms: The names of the workers, or how many there are.
        floors: The least average performance :math:`\tau_l` of the team, by task.
        std: The noise of a measured performance, one for all tasks or by task: 1/2 for tasks that succeed or not.
        guess: For `polyarm.plan`: the mean that you expect of each measured thing, by name, one number per arm;
            `reward` and the tasks.
        stated: Other fields of `Problem`: `delta`, `r`, `reward_std`, `family`, ...
    """
    _require_some("floors", floors, "task: the least average performance")
    scales = _scales(list(floors), std)
    rows = [
        Constraint(name=task, sense=">=", bound=_number(f"floor of {task!r}", floor), std=scales[task])
        for task, floor in floors.items()
    ]
    return _make(_name_arms(arms), rows, stated, guess)


def feasible_arms_shadow_price(
    performance: Sequence[float] | FloatArray, floor: float, policy: Sequence[float] | FloatArray
) -> float | None:
    r"""Return :math:`(f_{\max} - \tau)/(f_{\min} - \tau)` over the arms of a mix; None if one is not above the floor.

    Differs from paper: it prints :math:`(\tau - f_{\min})/(\tau - f_{\max}) \ge 1`. When every arm is above the floor
    that is the reciprocal, at most 1; when some are below and the mix is feasible it is negative. Both compare arms,
    where Theorem 6 compares rows: with a single row, `shadow_price` is 1.

    Args:
        performance: The mean performance of each arm.
        floor: The floor of the task.
        policy: The mix: one share per arm.
    """
    mix = _check_mix(policy)
    values = np.array([_number("performance", x) for x in performance])
    if values.shape != mix.shape:
        raise InvalidInput(f"performance: expected {mix.size} numbers, one per arm, got {values.size}")
    return _ratio(values[mix > PRIMAL] - _number("floor", floor))


def subpopulations(
    arms: Arms,
    shares: Mapping[str, float],
    std: Scale | Mapping[str, Scale],
    *,
    floors: float | Mapping[str, float] = 0.0,
    reward_std: Scale | None = None,
    delta: float,
    r: float,
    guess: Expected | None = None,
) -> Problem:
    r"""Fairness across sub-populations: the mix that is best for everyone together and not too bad for any group.

    .. math:: \max_\pi \sum_m w_m \mu_m^\top \pi \quad\text{subject to}\quad \mu_m^\top \pi \ge \tau_m
              \ \text{for every group } m.

    The arms are treatments. One pull gives a treatment to one member of *every* group; `subpopulation_outcome` makes
    the reward (the outcomes weighted by :math:`w`) and the costs (the outcomes themselves) to tell.

    The reward is made of the same outcomes as the costs, so the noise is correlated and cannot be declared otherwise.
    The scale of the reward is :math:`\sum_m w_m s_m`, valid however the outcomes of one pull depend on each other; if
    they are independent, :math:`\sqrt{\sum_m w_m^2 s_m^2}` is valid, too, and may be given as `reward_std`.

    Differs from paper: it asks that the mix use only arms that are good for every group, :math:`1_{\mu_m \ge 0}^\top
    \pi = 1`. An indicator of an unknown mean is not the mean of anything that is measured, and an equality leaves no
    slack to prove. Every such mix satisfies the rows above; they also admit mixes in which one arm makes up for
    another. Shadow price: `subpopulations_shadow_price`.

    Args:
        arms: The names of the treatments, or how many there are.
        shares: The share :math:`w_m` of each group in the population, by name; they sum to 1.
        std: The noise :math:`s_m` of an outcome, one for all groups or by group.
        floors: The least mean outcome :math:`\tau_m`, one for all groups or by group; by default 0.
        reward_std: The noise of the reward, one number or one per arm; by default :math:`\sum_m w_m s_m`.
        delta: The error probability, between 0 and 1.
        r: How far the answer may fall short of the best mix, in units of the reward.
        guess: For `polyarm.plan`: the mean outcomes that you expect of each group, by name, one number per arm.
    """
    names = _name_arms(arms)
    weights = _check_shares(shares)
    scales = _scales(list(weights), std)
    if isinstance(floors, Mapping):
        _require_same_names("floors", floors, weights)
    rows = []
    for group in weights:
        floor = floors[group] if isinstance(floors, Mapping) else floors
        bound = _number(f"floor of {group!r}", floor)
        rows.append(Constraint(name=group, sense=">=", bound=bound, std=scales[group]))
    if reward_std is None:
        spread = sum((weights[row.name] * _spread(row, len(names)) for row in rows), np.zeros(len(names)))
        reward_std = tuple(spread.tolist())
    problem = _make(names, rows, {"reward_std": reward_std, "delta": delta, "r": r})
    if guess is None:
        return problem
    means = _expected(problem, guess, weights)
    return problem.with_guess(sum((weights[group] * means[group] for group in weights), np.zeros(len(names))), means)


def subpopulation_outcome(
    problem: Problem, shares: Mapping[str, float], outcomes: Mapping[str, float]
) -> tuple[float, dict[str, float]]:
    """Return the reward and the costs to tell, given the outcome of one member of each group.

    Args:
        problem: The problem that `subpopulations` made.
        shares: The shares of the groups, as they were given to it.
        outcomes: The outcome of each group's member, by group.
    """
    weights = _check_shares(shares)
    _require_known_names("group in shares", weights, [problem.constraints[i].name for i in problem.unknown])
    _require_same_names("outcomes", outcomes, weights)
    costs = {group: _number(f"outcome of {group!r}", outcomes[group]) for group in weights}
    return sum(weight * costs[group] for group, weight in weights.items()), costs


def subpopulations_shadow_price(policy: Sequence[float] | FloatArray) -> float:
    r"""Return the largest share of a mix over its smallest that is not zero, as the paper prints it.

    Differs from paper: "above 1" is "at least 1" (a single arm has 1); and it does not follow from Theorem 6, whose
    slack is 0 in every row of the paper's equality. For the rows of `subpopulations` the theorem's is `shadow_price`.

    Args:
        policy: The mix: one share per arm.
    """
    mix = _check_mix(policy)
    used = mix[mix > PRIMAL]
    return float(used.max() / used.min())


def exposure(
    arms: Arms,
    *,
    tolerance: float,
    least_merit: float,
    outcomes_per_pull: int,
    delta: float,
    r: float,
    guess: Expected | None = None,
) -> Problem:
    r"""Fairness of exposure: the best mix in which no arm is shown much more, for its merit, than another.

    .. math:: \max_\pi f^\top \pi \quad\text{subject to}\quad
              \frac{\pi_a}{f_a} \le (1 + \text{tolerance}) \frac{\pi_b}{f_b} \ \text{for all arms } a \ne b.

    The arms are items to show; :math:`f_a` is the item's merit, the mean of an outcome from 0 to 1 (a click, a grade),
    and is at least `least_merit`. One pull shows the item `outcomes_per_pull` times, independently; `exposure_outcome`
    makes the reward (their mean) and the costs to tell.

    The paper asks for equality, which leaves one mix, :math:`\pi_a = f_a/\sum_b f_b`, and no slack to prove. Rows need
    :math:`1/f_a`, which is not the mean of an outcome. From n outcomes :math:`g_1 \ldots g_n`,

    .. math:: x = \sum_{k=0}^n \prod_{j \le k} (1 - g_j), \qquad
              \mathrm{E}\,x = \frac{1 - (1 - f)^{n+1}}{f}, \qquad 1 \le x \le n + 1

    (for clicks: how often the item was shown until the first one, cut off at n + 1). Its mean falls short of
    :math:`1/f` by at most the share :math:`B = (1 - \text{least merit})^{n+1}`. The rows are

    .. math:: \mathrm{E}\,x_a\,\pi_a - (1 + \text{tolerance})(1 - B)\,\mathrm{E}\,x_b\,\pi_b \le 0.

    *Exact:* a mix that satisfies them is fair within the tolerance as stated above, and a proof for the rows is one for
    that. The mix in proportion to merits always satisfies them strictly. *Approximate:* a mix whose exposures per merit
    differ by a factor between :math:`(1 + \text{tolerance})(1 - B)^2` and 1 + tolerance may be shut out, and the answer
    is within r of the best mix of those that are not. B falls quickly with n, but the scale of x is n/2: the least n
    that is accepted for a tolerance a little below yours is a good choice.

    The merit :math:`f(\mu)` of the paper must be affine and increasing in the reward: outcomes are then told as merits,
    divided by the largest that is possible, and r is in these units. For other f the mean merit of an outcome is not
    the merit of the mean outcome. The reward and the costs come from the same outcomes, so the noise is correlated.
    There are K(K - 1) rows: this is for a handful of arms. Shadow price: `exposure_shadow_price`.

    Args:
        arms: The names of the items, or how many there are.
        tolerance: By how much the exposure per merit of one arm may exceed another's, as a share: above 0, such as 0.2.
        least_merit: A merit that no arm falls below: above 0, at most 1.
        outcomes_per_pull: How often a pull shows the item, n; the error says how many a tolerance needs.
        delta: The error probability, between 0 and 1.
        r: How far the answer may fall short of the best mix, in units of the merit.
        guess: For `polyarm.plan`: the mean merit that you expect of each arm, `{"merit": [...]}`.
    """
    names = _name_arms(arms)
    weight = _exposure_weight(tolerance, least_merit, outcomes_per_pull)
    rows = _exposure_rows(names, outcomes_per_pull / 2.0, weight)
    reward_std = 0.5 / math.sqrt(outcomes_per_pull)
    problem = _make(names, rows, {"reward_std": reward_std, "delta": delta, "r": r})
    if guess is None:
        return problem
    merits = _expected(problem, guess, ["merit"])["merit"]
    costs = np.diag([_expect_cost(merit, least_merit, outcomes_per_pull) for merit in merits])
    return problem.with_guess(merits, [shown - weight * other for shown, other in permutations(costs, 2)])


def _expect_cost(merit: float, least_merit: float, outcomes_per_pull: int) -> float:
    """Return E x, the mean that stands for 1/f, of an arm whose merit is guessed."""
    merit = _number("guess, merit", merit, low=least_merit, high=1.0)
    return (1.0 - (1.0 - merit) ** (outcomes_per_pull + 1)) / merit


def _exposure_rows(names: Sequence[str], scale: float, weight: float) -> list[Constraint]:
    """Return one row per ordered pair of arms; the scales of its costs are the one place that states n and weights."""
    rows = []
    for a, b in permutations(range(len(names)), 2):
        std = np.full(len(names), _NO_NOISE * scale)
        std[a], std[b] = scale, scale * weight
        rows.append(Constraint(name=_exposure_row(names[a], names[b]), bound=0.0, std=tuple(std.tolist())))
    return rows


def _exposure_weight(tolerance: float, least_merit: float, outcomes_per_pull: int) -> float:
    """Return what the second arm of a row weighs, (1 + tolerance)(1 - B)."""
    wanted = 1.0 + _number("tolerance", tolerance, above=0.0)
    merit = _number("least_merit", least_merit, above=0.0, high=1.0)
    _require_whole("outcomes_per_pull", outcomes_per_pull)
    kept = 1.0 - (1.0 - merit) ** (outcomes_per_pull + 1)
    if wanted * kept**2 <= 1.0:
        enough = math.floor(math.log(1.0 - wanted**-0.5) / math.log(1.0 - merit))
        raise InvalidInput(
            f"outcomes_per_pull: {outcomes_per_pull} are too few for tolerance {tolerance:g} when a merit may be "
            f"{merit:g}; give {enough} or more, or a tolerance above {kept**-2 - 1.0:.3g}"
        )
    return wanted * kept


def exposure_outcome(problem: Problem, arm: int | str, outcomes: Sequence[float]) -> tuple[float, dict[str, float]]:
    """Return the reward and the costs to tell, given the outcomes of one pull of a problem made by `exposure`.

    Args:
        problem: The problem that `exposure` made.
        arm: The item that was shown: its name or its index.
        outcomes: What each showing gave, from 0 to 1; `outcomes_per_pull` of them.
    """
    pairs = list(permutations(range(problem.n_arms), 2))
    expected = [_exposure_row(problem.arms[a], problem.arms[b]) for a, b in pairs]
    rows = dict(zip(expected, problem.constraints, strict=False))
    if len(problem.constraints) < len(pairs) or any(name != row.name for name, row in rows.items()):
        raise InvalidInput("problem: expected one that templates.exposure made; its rows are not here")
    index = problem.arm_index(arm)
    values = [_number("outcome", x, low=0.0, high=1.0) for x in outcomes]
    # The problem is the one place where n and the weights of the rows are stated: as scales of their costs.
    scale = float(np.asarray(problem.constraints[0].std)[pairs[0][0]])
    if len(values) != round(2.0 * scale):
        raise InvalidInput(f"outcomes: expected {round(2.0 * scale)}, the outcomes of one pull, got {len(values)}")
    inverse_merit = 1.0 + float(np.cumprod(1.0 - np.array(values)).sum())
    costs = {}
    for (a, b), (name, row) in zip(pairs, rows.items(), strict=True):
        weight = float(np.asarray(row.std)[index]) / scale
        costs[name] = inverse_merit * weight * (1.0 if index == a else -1.0) if index in (a, b) else 0.0
    return float(np.mean(values)), costs


def exposure_shadow_price(merits: Sequence[float] | FloatArray) -> float | None:
    r"""Return :math:`\max|1/f_a - 1/f_b| / \min|1/f_a - 1/f_b|` over pairs of arms; None when two merits are equal.

    Differs from paper: it prints no absolute values, without which the smallest difference is minus the largest and the
    ratio -1; and it equates this to the same ratio of :math:`f_a - f_b`, which is another number (4 and 2 for merits
    1, 2, 3). Nor does it follow from Theorem 6: equalities have no slack. For the rows of `exposure` the theorem's is
    `shadow_price`.

    Args:
        merits: The mean merit of each arm, above 0.
    """
    values = np.array([_number("merit", x, above=0.0) for x in merits])
    if values.size < 2:
        raise InvalidInput(f"merits: expected at least 2, got {values.size}")
    return _ratio(np.array([abs(1.0 / x - 1.0 / y) for x, y in permutations(values, 2)]))


class Guardrail(Checked):
    """A metric that a mix must not worsen by more than a margin against the control.

    Args:
        name: Its name, which costs are told by.
        margin: By how much the mix may be worse than the control, above 0, in the metric's own units.
        std: The noise of one outcome of the metric, one number or one per arm.
        better: Which way is good: `higher` or `lower`.
        baseline: The control's mean if it is known; by default it is measured beside every pull.
    """

    name: Annotated[str, Field(min_length=1)]
    margin: Positive
    std: PerArm
    better: Literal["higher", "lower"]
    baseline: float | None = None


def guardrails(arms: Arms, metrics: Sequence[Guardrail], *, guess: Expected | None = None, **stated: Any) -> Problem:
    r"""A/B/n test with guardrails: the best split of traffic that is not inferior to the control in other metrics.

    .. math:: \max_\pi \mu^\top \pi \quad\text{subject to}\quad g_i^\top \pi - g_{i0} \le \text{margin}_i
              \quad\text{(or } g_i^\top \pi - g_{i0} \ge -\text{margin}_i \text{ where higher is better)}.

    The arms are the control, **first**, and its variants; the reward is the metric to raise. If the control's mean
    :math:`g_{i0}` is unknown, the row needs :math:`g_{ia} - g_{i0}` from one pull of arm a: expose one user to a and
    another one, drawn independently, to the control, and tell the difference (for the control itself, 0):
    `guardrail_costs` does. The scale of a difference is :math:`\sqrt{s_a^2 + s_0^2}`, and that of 0 is as small as you
    like. The control alone satisfies these rows, so there is always an answer. One control user may not serve two
    pulls: pulls must be independent. With a `baseline` the metric is told as measured, and the bound is as good as the
    baseline.

    Exact for the split. To ship one variant, read it as a test of mixes: a variant that gets all the traffic passed.
    Not in the paper; shadow price as in its Theorem 6: `shadow_price`.

    Args:
        arms: The names of the control, first, and its variants, or how many there are.
        metrics: The metrics that the mix must not worsen, each a `Guardrail`.
        guess: For `polyarm.plan`: the means that you expect of `reward` and of the metrics themselves, by name, one
            number per arm.
        stated: Other fields of `Problem`: `delta`, `r`, `reward_std`, `family`, ...
    """
    names = _name_arms(arms)
    if not metrics or not all(isinstance(metric, Guardrail) for metric in metrics):
        raise InvalidInput(f"metrics: expected one or more templates.Guardrail(...), got {metrics!r}")
    if len({metric.name for metric in metrics}) < len(metrics):
        raise InvalidInput(f"metrics: names must differ, got {[metric.name for metric in metrics]}")
    rows = []
    for metric in metrics:
        sense: Literal["<=", ">="] = "<=" if metric.better == "lower" else ">="
        margin = metric.margin if metric.better == "lower" else -metric.margin
        if metric.baseline is not None:
            bound = metric.baseline + margin
            rows.append(Constraint(name=metric.name, sense=sense, bound=bound, std=metric.std))
            continue
        own = _spread(metric, len(names))
        std = np.hypot(own, own[0])
        std[0] = _NO_NOISE * std.max()
        name = _paired_row(metric.name, names[0])
        rows.append(Constraint(name=name, sense=sense, bound=margin, std=tuple(std.tolist())))
    problem = _make(names, rows, stated)
    if guess is None:
        return problem
    means = _expected(problem, guess, ["reward", *(metric.name for metric in metrics)])
    costs = [means[m.name] - (means[m.name][0] if m.baseline is None else 0.0) for m in metrics]
    return problem.with_guess(means["reward"], costs)


def guardrail_costs(
    problem: Problem,
    arm: int | str,
    metrics: Mapping[str, float],
    control_metrics: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Return the costs to tell, given the metrics of the arm's user and those of the control's beside it.

    Metrics with a baseline need no control; a pull of the control needs none either.

    Args:
        problem: The problem that `guardrails` made.
        arm: The arm that was pulled: its name or its index.
        metrics: What the arm's user gave, by name of the metric.
        control_metrics: What the control's user gave, for each metric without a baseline.
    """
    index, beside, costs = problem.arm_index(arm), control_metrics or {}, {}
    plain = {problem.constraints[i].name for i in problem.unknown}
    suffix = _paired_row("", problem.arms[0])
    wanted = [name.removesuffix(suffix) for name in plain]
    _require_same_names("metrics", metrics, wanted)
    for name in metrics:
        value = _number(f"metric {name!r}", metrics[name])
        if name in plain:
            costs[name] = value
        elif index == 0:
            costs[_paired_row(name, problem.arms[0])] = 0.0
        elif name in beside:
            costs[_paired_row(name, problem.arms[0])] = value - _number(f"control metric {name!r}", beside[name])
        else:
            raise InvalidInput(f"control_metrics: {name!r} is required, of a control user of this pull's own")
    return costs


def routing(
    models: Arms,
    *,
    budgets: Mapping[str, float] | None = None,
    std: Scale | Mapping[str, Scale] | None = None,
    at_most: Mapping[str, float] | None = None,
    least_share: float = 0.0,
    guess: Expected | None = None,
    **stated: Any,
) -> Problem:
    r"""Model routing: the traffic split of highest quality within average budgets and service levels.

    .. math:: \max_\pi \mu^\top \pi \quad\text{subject to}\quad A_i^\top \pi \le b_i, \qquad
              \sum_a \pi_a P_a(\text{event}_j) \le \alpha_j, \qquad \pi_a \ge \text{least share}.

    The arms are models; the reward of a pull is the graded quality of one answer. Of an event tell 1
    if it happened and 0 if not; its scale is 1/2. The rows of the least share are known.

    Exact. The share of slow requests is linear in the mix, where a percentile of latency is not, and says the same: the
    95 % percentile is at most 2 s when at most 5 % of requests take longer. Prices have heavy tails: a limit on the
    length of answers bounds them, and half the range is then a valid scale.

    Not in the paper; shadow price as in its Theorem 6: `shadow_price`.

    Args:
        models: The names of the models, or how many there are.
        budgets: Bounds :math:`b_i` on means (price per request, say), by name; by default none.
        std: The noise of what has a budget, one for all or by name; required with `budgets`.
        at_most: The share of requests :math:`\alpha_j` in which an event may happen (too slow, refused), by name:
            between 0 and 1; by default none.
        least_share: The least share of every model, which keeps it warm; by default 0, which makes no rows.
        guess: For `polyarm.plan`: the mean that you expect of each measured thing, by name, one number per arm;
            `reward`, the budgets and the events.
        stated: Other fields of `Problem`: `delta`, `r`, `reward_std`, `family`, ...
    """
    names = _name_arms(models)
    means, events = dict(budgets or {}), dict(at_most or {})
    if not means and not events:
        raise InvalidInput("routing: give budgets, bounds on means, or at_most, bounds on shares of requests, or both")
    scales = _scales(list(means), std)
    rows = [
        Constraint(name=name, bound=_number(f"budget {name!r}", bound), std=scales[name])
        for name, bound in means.items()
    ]
    for name, share in events.items():
        bound = _number(f"at_most {name!r}", share, above=0.0, below=1.0)
        rows.append(Constraint(name=name, bound=bound, std=0.5))
    floor = _number("least_share", least_share, low=0.0, high=1.0 / len(names))
    if floor > 0.0:
        rows += [_share_row(names, name, ">=", floor) for name in names]
    return _make(names, rows, stated, guess)


def shadow_price(
    problem: Problem, policy: Sequence[float] | FloatArray, costs: Sequence[Sequence[float]] | FloatArray = ()
) -> float | None:
    """Return the shadow price of the paper's Theorem 6 at a mix: the largest slack of a row over the smallest.

    None when the mix is on the edge of a row or beyond (as the optimum is whenever a row matters), or when there is no
    row. It depends on the units of the rows.

    Args:
        problem: The problem.
        policy: The mix: one share per arm.
        costs: The mean costs of the measured rows, in their order: one number per arm each; by default none, for
            problems without.
    """
    mix = problem.check_policy(policy)
    if len(costs) != len(problem.unknown):
        names = [problem.constraints[i].name for i in problem.unknown]
        raise InvalidInput(f"costs: expected {len(names)} rows, one per measured constraint {names}, got {len(costs)}")
    measured = iter(costs)
    slack = []
    for constraint in problem.constraints:
        row = constraint.row if constraint.known else next(measured)
        cost = float(problem.check_numbers(f"costs of {constraint.name!r}", row) @ mix)
        slack.append(constraint.sign * (constraint.bound - cost))
    return _ratio(np.array(slack))


def _ratio(slack: FloatArray) -> float | None:
    """Largest over smallest; None when that is undefined."""
    if slack.size == 0 or slack.min() <= PRIMAL:
        return None
    return float(slack.max() / slack.min())


def _make(
    arms: tuple[str, ...], rows: list[Constraint], stated: dict[str, Any], guess: Expected | None = None
) -> Problem:
    """Make the problem, with a guess of what is told as it is measured."""
    if "constraints" in stated:
        raise InvalidInput(
            "constraints: the template makes them; add your own with "
            "problem.replace(constraints=[*problem.constraints, ...])"
        )
    problem = Problem(arms=arms, constraints=tuple(rows), **stated)
    if guess is None:
        return problem
    measured = [problem.constraints[i].name for i in problem.unknown]
    means = _expected(problem, guess, ["reward", *measured])
    return problem.with_guess(means["reward"], {name: means[name] for name in measured})


def _expected(problem: Problem, guess: Expected, names: Iterable[str]) -> dict[str, FloatArray]:
    """Return the means of a guess, which must have these names."""
    _require_same_names("guess", guess, names)
    return {name: problem.check_numbers(f"guess, {name}", guess[name]) for name in names}


def _name_arms(arms: Any) -> tuple[str, ...]:
    """Return the names of arms as `Problem` reads them: it alone says what is valid."""
    return Problem(arms=arms, reward_std=1.0, delta=0.5, r=1.0).arms


def _share_row(arms: tuple[str, ...], arm: str, sense: Literal["<=", ">="], bound: float) -> Constraint:
    """A known bound on the share of one arm."""
    row = tuple(1.0 if name == arm else 0.0 for name in arms)
    return Constraint(name=f"share of {arm}", sense=sense, bound=bound, row=row)


def _exposure_row(arm: str, other: str) -> str:
    return f"{arm} over {other}"


def _paired_row(metric: str, control: str) -> str:
    return f"{metric} against {control}"


def _spread(row: Constraint | Guardrail, n_arms: int) -> FloatArray:
    """Return the scales of a row, one per arm."""
    std = np.atleast_1d(np.asarray(row.std, dtype=np.float64))
    if std.size not in (1, n_arms):
        raise InvalidInput(f"std of {row.name!r}: expected one value per arm ({n_arms}), got {std.size}")
    return np.broadcast_to(std, (n_arms,)).copy()


def _scales(names: list[str], std: Scale | Mapping[str, Scale] | None) -> dict[str, Any]:
    """Return the noise of each measured row: by name, or one for all."""
    if not isinstance(std, Mapping):
        if names and std is None:
            raise InvalidInput(f"std: required, the noise of what is measured: {', '.join(names)}")
        return dict.fromkeys(names, std)
    _require_same_names("std", std, names)
    return dict(std)


def _check_shares(shares: Mapping[str, float]) -> dict[str, float]:
    _require_some("shares", shares, "group: its share of the population")
    weights = {group: _number(f"share of {group!r}", x, above=0.0, high=1.0) for group, x in shares.items()}
    if abs(sum(weights.values()) - 1.0) > SIMPLEX:
        raise InvalidInput(f"shares: expected shares of the population, which sum to 1, got {weights}")
    return weights


def _check_limits(limits: Scale, n_arms: int) -> list[float]:
    values = list(limits) if isinstance(limits, Sequence | np.ndarray) else [limits] * n_arms
    if len(values) != n_arms:
        raise InvalidInput(f"limits: expected one number, or one per arm ({n_arms}), got {len(values)}")
    return [_number("limits", x, above=0.0) for x in values]


def _check_mix(policy: Sequence[float] | FloatArray) -> FloatArray:
    arms = tuple(map(str, range(len(policy))))
    return Problem(arms=arms, reward_std=1.0, delta=0.5, r=1.0).check_policy(policy)


def _number(
    field: str,
    value: Any,
    *,
    above: float = -math.inf,
    low: float = -math.inf,
    high: float = math.inf,
    below: float = math.inf,
) -> float:
    """Return a finite number within bounds, or raise."""
    try:
        number = math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isfinite(number) and above < number < below and low <= number <= high:
        return number
    bounds = [("above", above), ("at least", low), ("at most", high), ("below", below)]
    wanted = " and ".join(f"{word} {bound:g}" for word, bound in bounds if math.isfinite(bound))
    raise InvalidInput(f"{field}: expected a finite number{' ' + wanted if wanted else ''}, got {value!r}")


def _require_whole(field: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidInput(f"{field}: expected a whole number, 1 or more, got {value!r}")


def _require_some(field: str, values: Any, entries: str) -> None:
    if not isinstance(values, Mapping) or not values:
        raise InvalidInput(f"{field}: expected a dictionary, not empty, of {entries}; got {values!r}")


def _require_known_names(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    for name in given:
        if name not in known:
            raise unknown_name(kind, name, known)


def _require_same_names(field: str, given: Mapping[str, Any], wanted: Iterable[str]) -> None:
    if not isinstance(given, Mapping) or set(given) != set(wanted):
        got = sorted(given) if isinstance(given, Mapping) else given
        raise InvalidInput(f"{field}: expected a dictionary with a value for each of {sorted(wanted)}, got {got!r}")
