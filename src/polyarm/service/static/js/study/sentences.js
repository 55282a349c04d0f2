// What a study does, in plain words.

import {
  countOf,
  formatConfidence,
  formatConstraint,
  formatCount,
  formatNumber,
  formatRough,
  listWords,
} from "../format.js";
import {
  ASYMPTOTIC,
  describeClaim,
  describeProviso,
  labelClaim,
  NOT_PROVED,
  OF_CUT_VALUES,
  readClaims,
} from "./claims.js";

/** What the study looks for. */
export function describeQuestion({ arms, constraints, delta, r }) {
  const subject = constraints.length === 0 ? "" : ` such that ${listWords(constraints.map(formatConstraint))}`;
  return (
    `Looks for the mix of ${formatCount(arms.length)} arms with the largest mean reward${subject}, ` +
    `within ${formatNumber(r)} of the best, with confidence ${formatConfidence(delta)}.`
  );
}

/** How it stands: {headline, detail}. */
export function describeState(view) {
  const describe = { exploring, tripped, contradicted, stopped, answered, infeasible, archived }[view.status.state];
  return describe === undefined ? { headline: view.status.state, detail: "" } : describe(view);
}

function exploring({ status }) {
  if (status.used === 0 && status.told === 0 && status.observed === 0) {
    return { headline: "Exploring: no outcomes yet", detail: "Ask for trials, and tell what they gave." };
  }
  const certified =
    status.certified_r === null ? "" : ` Certified now: a mix within r = ${formatNumber(status.certified_r)} of the best.`;
  const used = `${countOf(status.used, "outcome")} used so far.${certified}`;
  if (status.expected_stop === null) return { headline: "Exploring: too early to say how long", detail: used };
  const [low, high] = status.expected_stop.map((steps) => formatRough(Math.max(0, steps - status.used)));
  const range = low === high ? `about ${high}` : low === "0" ? `up to about ${high}` : `about ${low} to ${high}`;
  return { headline: `Exploring: ${range} outcomes to go`, detail: used };
}

function tripped({ status }) {
  return {
    headline: "Circuit breaker tripped: trials follow the control mix",
    detail: `${describeAlarm(status)} Resume to go on exploring.`,
  };
}

function contradicted({ status }) {
  return {
    headline: "Contradicted: an outcome is outside what is declared, so nothing is proved",
    detail:
      `Refused: ${status.contradictions.join(". Refused: ")}. It stays so until every such trial is told an allowed ` +
      "value, or larger values are cut (polyarm study cap).",
  };
}

function describeAlarm(status) {
  const { alarm } = status;
  return `${asHeading(labelClaim(alarm))}: ${describeClaim(alarm)}${describeProviso(status)}.`;
}

function stopped({ status }) {
  return {
    headline: "Stopped by hand: no new trials are handed out",
    detail: `${countOf(status.used, "outcome")} used; outcomes of trials under way are still taken.`,
  };
}

function answered(view) {
  const after = countOf(view.status.used, "outcome");
  const { proved, missing, assumed } = readClaims(view);
  if (missing.length > 0) {
    const [{ label, words }] = missing;
    const headlines = {
      [NOT_PROVED]: `Answered with ${after}, but not proved`,
      [ASYMPTOTIC]: `Answered with ${after}: asymptotic, not proved`,
      [OF_CUT_VALUES]: `Answered: proved of cut values with ${after}`,
    };
    return { headline: headlines[label], detail: `${asHeading(label)}: ${words}.` };
  }
  const proviso = assumed.length === 0 ? "Proved" : "Proved, if what is assumed below holds";
  return { headline: `Answered: proved with ${after}`, detail: `${proviso}: ${proved.join("; ")}.` };
}

function infeasible(view) {
  const { missing, assumed } = readClaims(view);
  const label = missing[0]?.label ?? "proved";
  const how = label === "proved" || label === OF_CUT_VALUES ? label : `it seems (${label})`;
  const hint = describeSuspects(view);
  return {
    headline: `Infeasible: ${how} with ${countOf(view.status.used, "outcome")} that no mix satisfies every constraint`,
    detail: assumed.length === 0 ? hint : `If what is assumed below holds. ${hint}`.trim(),
  };
}

/** Which constraints an estimate holds to be in conflict; nothing if that is all of them, which is the headline. */
function describeSuspects({ suspected_conflict: suspected, problem }) {
  const names = suspected ?? [];
  if (names.length === 0 || names.length === problem.constraints.length) return "";
  return `A hint, estimated and not proved: no mix seems to satisfy ${listWords(names)}. Loosen a bound, or add an arm.`;
}

function archived({ status }) {
  return {
    headline: "Archived: no trials, no outcomes",
    detail: `${countOf(status.used, "outcome")} used. Resume to open it again.`,
  };
}

function asHeading(label) {
  return `${label.charAt(0).toUpperCase()}${label.slice(1)}`;
}

/** "price by at least 0.12" */
export function describeExcess(excess) {
  return listWords(Object.entries(excess ?? {}).map(([name, by]) => `${name} by at least ${formatNumber(by)}`));
}
