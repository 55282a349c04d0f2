// What is claimed of the mix, with the assumptions told once instead of in every sentence.

import { formatConfidence } from "../format.js";

/** Returns {proved, missing, assumed}: lists of sentences; those proved hold if what is assumed does. */
export function readClaims({ mix, status }) {
  const assumed = status.assumptions;
  const proved = mix.proved.map((sentence) => withoutAssumptions(sentence, assumed));
  const missing = mix.not_proved.filter((sentence) => !assumed.some((what) => sentence.startsWith(`that ${what}: `)));
  return { proved, missing, assumed };
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

/** Whether the explorer's bounds for this mix are proved ones; where they are not, the claims say so. */
export function isProved({ mix }) {
  return !mix.not_proved.some((sentence) => sentence.endsWith("stylised thresholds, without a proof"));
}

/** The server puts "if this: " before each claim, once for each assumption. */
function withoutAssumptions(sentence, assumed) {
  const lead = assumed.map((what) => `if ${what}: `).find((words) => sentence.startsWith(words));
  return lead === undefined ? sentence : withoutAssumptions(sentence.slice(lead.length), assumed);
}
