// The set of feasible mixes closing in: a ternary diagram for three arms, parallel coordinates otherwise.

import { makeParallel } from "../charts/parallel.js";
import { makeRegionLegend } from "../charts/region_words.js";
import { makeTernary } from "../charts/ternary.js";
import { el, makeSlot, panel } from "../dom.js";
import { listWords } from "../format.js";

const MIX_NAMES = { answer: "the answer", safe: "best safe mix", candidate: "best guess", none: null };

export function makeRegionPanel(problem) {
  const { arms } = problem;
  const chart = arms.length === 3 ? makeTernary() : makeParallel();
  const lead =
    arms.length === 3
      ? "Each corner is one arm alone; each point is a mix."
      : "Each thin line is a corner of a set of feasible mixes; bars show how far an arm's share may range.";
  const why = el("p", { class: "muted" });
  const legend = el("div");
  const showLegend = makeSlot(legend, makeRegionLegend);
  const node = panel("Feasible mixes", lead, why, chart.node, legend);

  return {
    node,
    update({ region, mix, status }) {
      why.textContent = region === null ? describeAbsence(status.pulls) : describeGaps(region);
      why.hidden = why.textContent === "";
      chart.node.hidden = legend.hidden = region === null || isEmpty(region);
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

function describeGaps({ optimistic, pessimistic }) {
  if (optimistic.length === 0) return "No mix can be feasible any more.";
  return pessimistic.length === 0 ? "No mix is surely feasible yet." : "";
}
