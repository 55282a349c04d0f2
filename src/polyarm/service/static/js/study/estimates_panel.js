// Estimates with intervals: the reward of each arm, and its cost under each constraint.

import { makeWhiskers } from "../charts/whiskers.js";
import { el, makeSlot, panel } from "../dom.js";
import { formatConfidence, formatConstraint, formatNumber } from "../format.js";

export function makeRewardPanel(problem) {
  const chart = makeEstimates();
  const confidence = formatConfidence(problem.delta);
  const lead = `Dots are estimates. All intervals hold at once, at all times, with confidence ${confidence}.`;
  return {
    node: panel("Reward of each arm", lead, chart.node),
    update({ intervals }) {
      chart.update({ what: "Reward", rows: rowsOf(problem.arms, intervals.reward), bound: null, known: false });
    },
  };
}

export function makeCostPanel(problem) {
  const charts = problem.constraints.map((constraint) => ({ constraint, ...makeEstimates() }));
  return {
    node: panel(
      "Cost of each arm",
      "A mix has to respect the bounds; a single arm need not.",
      charts.map(({ constraint, node }) => [el("h3", { class: "chart-title" }, formatConstraint(constraint)), node]),
    ),
    update({ intervals }) {
      for (const { constraint, update } of charts) {
        const { name, bound, sense, known } = constraint;
        const rows = rowsOf(problem.arms, intervals.costs[name] ?? {});
        update({ what: `Cost ${name}`, rows, bound: { value: bound, sense }, known });
      }
    },
  };
}

function rowsOf(arms, intervals) {
  return arms.map((arm) => {
    const { mean = null, low = null, high = null } = intervals[arm] ?? {};
    return { name: arm, mean, low, high };
  });
}

/** A plot, and the same as a table for those who want the digits. */
function makeEstimates() {
  const plot = makeWhiskers();
  const body = el("div", { class: "scroll-x" });
  const show = makeSlot(body, makeTable);
  const table = el("details", { class: "table-details" }, el("summary", {}, "As a table"), body);
  return {
    node: el("div", {}, plot.node, table),
    update(data) {
      plot.update(data);
      show(data);
    },
  };
}

function makeTable({ what, rows }) {
  const number = (value) => el("td", { class: "number" }, formatNumber(value));
  return el(
    "table",
    {},
    el("caption", { class: "visually-hidden" }, `${what} by arm`),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        el("th", { scope: "col" }, "Arm"),
        ["Estimate", "At least", "At most"].map((name) => el("th", { scope: "col", class: "number" }, name)),
      ),
    ),
    el(
      "tbody",
      {},
      rows.map(({ name, mean, low, high }) =>
        el("tr", {}, el("th", { scope: "row" }, name), [mean, low, high].map(number)),
      ),
    ),
  );
}
