// The set of feasible mixes closing in: a ternary diagram for three arms, parallel coordinates otherwise.

import { makeParallel } from "../charts/parallel.js";
import { makeRegionLegend } from "../charts/region_words.js";
import { makeTernary } from "../charts/ternary.js";
import { el, makeSlot, panel } from "../dom.js";
import { formatConfidence, listWords } from "../format.js";
import { describeProvisoAndPlace, describeTrust, isProvedFeasible, readClaims } from "./claims.js";

const MIX_NAMES = { answer: "the answer", safe: "best safe mix", candidate: "best guess", none: null };

export function makeRegionPanel(problem) {
  const { arms } = problem;
  const chart = arms.length === 3 ? makeTernary() : makeParallel();
  const lead =
    arms.length === 3
      ? "Each corner is one arm alone; each point is a mix."
      : "Each thin line is a corner of a set of feasible mixes; bars show how far an arm's share may range.";
  const measured = problem.constraints.some(({ known }) => !known);
  const why = el("p", { class: "muted" });
  const legend = el("div");
  const showLegend = makeSlot(legend, makeRegionLegend);
  const note = el("p", { class: "muted small sets-note" });
  const node = panel("Feasible mixes", lead, why, chart.node, legend, note);

  return {
    node,
    update(view) {
      const { region, mix, status } = view;
      why.textContent = region === null ? describeAbsence(status.pulls) : describeGaps(view);
      why.hidden = why.textContent === "";
      chart.node.hidden = legend.hidden = region === null || isEmpty(region);
      note.textContent = describeSets(view);
      note.hidden = legend.hidden || !measured;
      if (region === null) return;
      chart.update({ arms, region, shares: mix.shares === null ? null : arms.map((arm) => mix.shares[arm] ?? 0) });
      showLegend(MIX_NAMES[mix.kind]);
    },
  };
}

function describeAbsence(pulls) {
  const missing = Object.keys(pulls).filter((arm) => pulls[arm] === 0);
  if (missing.length === 0) return "The sets have too many corners to draw.";
  const names = missing.length > 5 ? [...missing.slice(0, 5), `${missing.length - 5} more`] : missing;
  return `Drawn once every arm has an outcome; still missing: ${listWords(names)}.`;
}

function isEmpty(region) {
  return Object.values(region).every((corners) => corners.length === 0);
}

/** What the sets are, and that they are not what the explorer proves. */
function describeSets({ problem, status }) {
  const confidence = `${formatConfidence(problem.delta)}${describeProvisoAndPlace(status)}`;
  return (
    "At worst: feasible if every cost is as bad as its interval below allows. At best: feasible if every cost is as " +
    `good as its interval allows. The truth lies between the two with confidence ${confidence}. An explorer's own ` +
    "proof is often sharper and may know more: a mix that it has proved may lie outside the inner set."
  );
}

/** Where a set is empty, or the explorer has proved more than the sets show: how the two go together. */
function describeGaps(view) {
  const { region, mix } = view;
  const trust = describeTrust(view);
  const emptied = region.optimistic.length === 0;
  const { proved: claimed, missing } = readClaims(view);
  if (mix.kind === "none" && claimed.length + missing.length > 0) {
    // The explorer has stopped without a mix.
    if (emptied) return `The intervals leave no mix (${trust}).`;
    return missing.length > 0 ? "" : "The explorer's own proof is sharper than these sets: it leaves no mix.";
  }
  const found = mix.kind === "safe" || mix.kind === "answer";
  if (emptied && found) return `The intervals leave no mix (${trust}), though the explorer has found one.`;
  if (emptied) return `The intervals leave no mix (${trust}); the explorer has not finished its own proof.`;
  if (region.pessimistic.length > 0) return "";
  const proved = found && isProvedFeasible(view) && (mix.kind === "safe" || missing.length === 0);
  const sharper = proved ? "; the explorer's own proof is sharper and has found one" : "";
  return `At worst, the intervals leave no mix${sharper}.`;
}
