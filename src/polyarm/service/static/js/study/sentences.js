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
import { describeClaim, describeProviso, isProvedClaim, readClaims } from "./claims.js";

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
  const describe = { exploring, tripped, stopped, answered, infeasible, archived }[view.status.state];
  return describe === undefined ? { headline: view.status.state, detail: "" } : describe(view);
}

function exploring({ status }) {
  if (status.used === 0 && status.told === 0 && status.observed === 0) {
    return { headline: "Exploring: no outcomes yet", detail: "Ask for trials, and tell what they gave." };
  }
  const used = `${countOf(status.used, "outcome")} used so far.`;
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

function describeAlarm(status) {
  const { alarm } = status;
  const how = isProvedClaim(alarm) ? "Proved" : "Not proved";
  return `${how}: ${describeClaim(alarm)}${describeProviso(status)}.`;
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
    return { headline: `Answered with ${after}, but not proved`, detail: `Not proved: ${missing[0]}.` };
  }
  const proviso = assumed.length === 0 ? "Proved" : "Proved, if what is assumed below holds";
  return { headline: `Answered: proved with ${after}`, detail: `${proviso}: ${proved.join("; ")}.` };
}

function infeasible(view) {
  const names = view.conflict ?? [];
  const { missing, assumed } = readClaims(view);
  const how = missing.length === 0 ? "proved" : "it seems (not proved)";
  const conflict = names.length === 0 ? "" : describeConflict(names);
  return {
    headline: `Infeasible: ${how} with ${countOf(view.status.used, "outcome")} that no mix satisfies every constraint`,
    detail: assumed.length === 0 ? conflict : `If what is assumed below holds. ${conflict}`.trim(),
  };
}

function describeConflict(names) {
  if (names.length === 1) return `No mix satisfies ${names[0]}: every arm is beyond its bound.`;
  return `These contradict each other: ${listWords(names)}. Loosen a bound, or add an arm.`;
}

function archived({ status }) {
  return {
    headline: "Archived: no trials, no outcomes",
    detail: `${countOf(status.used, "outcome")} used. Resume to open it again.`,
  };
}

/** "price by at least 0.12" */
export function describeExcess(excess) {
  return listWords(Object.entries(excess ?? {}).map(([name, by]) => `${name} by at least ${formatNumber(by)}`));
}
