// What is claimed of the mix: claims are data, and this is where they become words.

import { formatConfidence } from "../format.js";

const ASSUMPTION = "assumption";
const OF_FEASIBILITY = ["feasible", "known-constraints"];

/** Returns {proved, missing, assumed}: lists of words; those proved hold if what is assumed does. */
export function readClaims({ mix, status }) {
  const claims = mix.claims.filter(({ about }) => about !== ASSUMPTION);
  const proved = claims.filter(isProvedClaim).map(describeClaim);
  const missing = claims.filter((claim) => !isProvedClaim(claim)).map(describeClaim);
  return { proved, missing, assumed: status.assumptions };
}

/** A claim without its assumptions, which are listed once. */
export function describeClaim({ text, kind, confidence, why }) {
  const trust = confidence === null ? "" : ` with confidence ${formatConfidence(1 - confidence)}`;
  const limit = kind === "asymptotic" ? ", as outcomes become many" : "";
  return `${text}${trust}${limit}${why === null ? "" : `: ${why}`}`;
}

export function isProvedClaim({ kind }) {
  return kind === "proved";
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
