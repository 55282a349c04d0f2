// The log of the study, latest first, as sentences; long runs of the same kind become one.

import { el, makeSlot, panel } from "../dom.js";
import { countOf, formatCount, formatNumber, formatTime, listWords } from "../format.js";
import { describeExcess } from "./sentences.js";

/** Runs longer than this are told in one line. */
const LONGEST_RUN = 3;
const LOUD = new Set(["tripped", "stopped", "resumed", "archived"]);

export function makeLogPanel(problem) {
  // Focusable, since it scrolls: arrow keys move it.
  const list = el("ol", { class: "log", tabindex: "0", "aria-label": "Log, latest first" });
  const show = makeSlot(list, (events) => makeEntries(events, problem.arms));
  const node = panel("Log", null, list);
  node.classList.add("wide");
  return {
    node,
    update(events) {
      show(events);
    },
  };
}

function makeEntries(events, arms) {
  const runs = gatherRuns([...events].reverse());
  const whole = events.length === 0 || events[0].seq === 1;
  if (!whole && runs.length > 1) runs.pop(); // it may have begun before the first event we have
  return runs.map((run) =>
    el(
      "li",
      { class: LOUD.has(run[0].kind) ? "loud" : null },
      el("time", { datetime: run[0].at }, formatTime(run[0].at)),
      el("span", {}, run.length > 1 ? describeRun(run, arms) : describeEvent(run[0], arms)),
    ),
  );
}

function gatherRuns(events) {
  const runs = [];
  for (const event of events) {
    if (runs.at(-1)?.[0].kind === event.kind) runs.at(-1).push(event);
    else runs.push([event]);
  }
  return runs.flatMap((run) => (run.length > LONGEST_RUN ? [run] : run.map((event) => [event])));
}

const RUNS = {
  asked: (count) => `${countOf(count, "trial")} handed out`,
  told: (count) => `${countOf(count, "tell")} recorded`,
  observed: (count) => `${countOf(count, "outcome")} observed, not asked for`,
  expired: (count) => `${countOf(count, "trial")} given up: not told in time`,
};

function describeRun(run, arms) {
  const text = RUNS[run[0].kind]?.(run.length) ?? `${formatCount(run.length)} times: ${run[0].kind}`;
  const counts = new Map();
  for (const { payload } of run) {
    if (payload.arm !== undefined) counts.set(payload.arm, (counts.get(payload.arm) ?? 0) + 1);
  }
  const parts = [...counts].sort((a, b) => b[1] - a[1]).map(([arm, count]) => `${nameArm(arm, arms)} ${count}`);
  if (parts.length > 6) parts.splice(5, parts.length, `${parts.length - 5} more arms`);
  return parts.length === 0 ? text : `${text}: ${listWords(parts)}`;
}

function describeEvent({ kind, payload }, arms) {
  const arm = nameArm(payload.arm, arms);
  switch (kind) {
    case "created":
      return "Study created";
    case "asked":
      return `Trial ${payload.trial} handed out: ${arm}${payload.route === "control" ? " (control mix)" : ""}`;
    case "told":
      return `Trial ${payload.trial} told: ${arm}, ${describeOutcome(payload)}`;
    case "observed":
      return `Observed, not asked for: ${arm}, ${describeOutcome(payload)}`;
    case "expired":
      return `Trial ${payload.trial} given up: not told in time`;
    case "tripped":
      return `Circuit breaker tripped: the sampling breaks ${describeExcess(payload.excess)}`;
    case "stopped":
      return payload.reason ? `Stopped by hand: ${payload.reason}` : "Stopped by hand";
    case "resumed":
      return "Resumed";
    case "archived":
      return "Archived";
    default:
      return kind;
  }
}

/** The log stores arms by number. */
function nameArm(arm, arms) {
  return typeof arm === "number" ? (arms[arm] ?? `arm ${arm}`) : String(arm);
}

function describeOutcome({ reward, costs, complete = true }) {
  const parts = [];
  if (reward !== null && reward !== undefined) parts.push(`reward ${formatNumber(reward)}`);
  for (const [name, cost] of Object.entries(costs ?? {})) {
    if (cost !== null) parts.push(`${name} ${formatNumber(cost)}`);
  }
  return `${parts.join(", ")}${complete ? "" : "; more to come"}`;
}
