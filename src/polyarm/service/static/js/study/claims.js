// What is claimed of the mix: claims are data, and this is where they become words.

import { formatConfidence } from "../format.js";

const ASSUMPTION = "assumption";
const OF_FEASIBILITY = ["feasible", "known-constraints"];

/** What claims that are not plainly proved are called, the weakest first. */
export const NOT_PROVED = "not proved";
export const ASYMPTOTIC = "asymptotic";
export const OF_CUT_VALUES = "proved of cut values";
const LACKING = [NOT_PROVED, ASYMPTOTIC, OF_CUT_VALUES];

/**
 * Returns {proved, missing, assumed}: `proved` and `assumed` are lists of words; those proved hold if what is assumed
 * does. `missing` is what lacks a plain proof, the weakest first: a list of {label, words}.
 */
export function readClaims({ mix, status }) {
  const claims = mix.claims.filter(({ about }) => about !== ASSUMPTION);
  const proved = claims.filter(isProvedClaim).map(describeClaim);
  const missing = claims
    .filter((claim) => !isProvedClaim(claim))
    .map((claim) => ({ label: labelClaim(claim), words: describeClaim(claim) }))
    .sort((one, other) => LACKING.indexOf(one.label) - LACKING.indexOf(other.label));
  return { proved, missing, assumed: status.assumptions };
}

/** How far a claim may be trusted, in a word or two. */
export function labelClaim(claim) {
  if (isProvedClaim(claim)) return "proved";
  if (claim.kind === "asymptotic") return ASYMPTOTIC;
  return claim.kind === "proved" ? OF_CUT_VALUES : NOT_PROVED;
}

/** A claim without its assumptions, which are listed once. */
export function describeClaim({ text, kind, confidence, why }) {
  const trust = confidence === null ? "" : ` with confidence ${formatConfidence(1 - confidence)}`;
  const limit = kind === "asymptotic" ? ", as outcomes become many" : "";
  return `${text}${trust}${limit}${why === null ? "" : `: ${why}`}`;
}

export function isProvedClaim({ kind, cut }) {
  return kind === "proved" && !cut;
}

/** Whether everything that is claimed of the mix's feasibility is proved. */
export function isProvedFeasible({ mix }) {
  return mix.claims.filter(({ about }) => OF_FEASIBILITY.includes(about)).every(isProvedClaim);
}

/** How far the bounds on value and slack are to be trusted. */
export function describeBounds(view) {
  if (view.mix.bounds === "proved") return describeTrust(view);
  return view.mix.bounds === "asymptotic" ? `${describeTrust(view)}, as outcomes become many` : "not proved";
}

/** The proviso of everything that is claimed, as words to append; empty when nothing has to be assumed. */
export function describeProviso({ assumptions }) {
  return assumptions.length === 0 ? "" : ", if what is assumed holds";
}

/** The same, and where the assumptions are listed. */
export function describeProvisoAndPlace(status) {
  const proviso = describeProviso(status);
  return proviso === "" ? "" : `${proviso} (listed under “What is proved”)`;
}

/** How far a proved bound is to be trusted: "95%", or "95%, if what is assumed holds". */
export function describeTrust({ problem, status }) {
  return `${formatConfidence(problem.delta)}${describeProviso(status)}`;
}

/** The confidence of the intervals of single means; null where nothing is claimed of them. */
export function describeIntervals({ problem, intervals }) {
  if (intervals.kind === "none") return null;
  return `${formatConfidence(problem.delta)}${intervals.kind === "asymptotic" ? ", as outcomes become many" : ""}`;
}

/** The same with its proviso, as words for brackets. */
export function describeIntervalTrust(view) {
  const confidence = describeIntervals(view);
  return confidence === null ? NOT_PROVED : `${confidence}${describeProviso(view.status)}`;
}
