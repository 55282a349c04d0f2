// What is claimed of the mix, with the assumptions told once instead of in every sentence.

/** Returns {proved, missing, assumed}: lists of sentences; those proved hold if what is assumed does. */
export function readClaims({ mix, status }) {
  const assumed = status.assumptions;
  const proved = mix.proved.map((sentence) => withoutAssumptions(sentence, assumed));
  const missing = mix.not_proved.filter((sentence) => !assumed.some((what) => sentence.startsWith(`that ${what}: `)));
  return { proved, missing, assumed };
}

/** The server puts "if this: " before each claim, once for each assumption. */
function withoutAssumptions(sentence, assumed) {
  const lead = assumed.map((what) => `if ${what}: `).find((words) => sentence.startsWith(words));
  return lead === undefined ? sentence : withoutAssumptions(sentence.slice(lead.length), assumed);
}
