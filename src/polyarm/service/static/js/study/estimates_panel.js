// Estimates with intervals: the reward of each arm, and its cost under each constraint.

import { makeWhiskers } from "../charts/whiskers.js";
import { el, makeNumberCell, makeNumberTable, makeSlot, panel } from "../dom.js";
import { formatConfidence, formatConstraint, formatNumber } from "../format.js";
import { describeProviso, describeProvisoAndPlace, describeTrust } from "./claims.js";

export function makeRewardPanel(problem) {
  const chart = makeEstimates();
  const confidence = formatConfidence(problem.delta);
  const lead = el("p", { class: "lead" });
  return {
    node: panel("Reward of each arm", null, lead, chart.node),
    update({ intervals, status }) {
      lead.textContent =
        `Dots are estimates. All intervals hold at once, at all times, with confidence ${confidence}` +
        `${describeProvisoAndPlace(status)}.`;
      const rows = rowsOf(problem.arms, intervals.reward);
      chart.update({ what: "Reward", rows, bound: null, known: false, ...describeLevel(problem, status) });
    },
  };
}

export function makeCostPanel(problem) {
  const charts = problem.constraints.map((constraint) => ({ constraint, ...makeEstimates() }));
  const measured = problem.constraints.some(({ known }) => !known);
  const lead = el("p", { class: "lead" });
  return {
    node: panel(
      "Cost of each arm",
      null,
      lead,
      charts.map(({ constraint, node }) => [el("h3", { class: "chart-title" }, formatConstraint(constraint)), node]),
    ),
    update({ intervals, status }) {
      const trust = ` Intervals hold together with those of the rewards (${describeTrust({ problem, status })}).`;
      lead.textContent = `A mix has to respect the bounds; a single arm need not.${measured ? trust : ""}`;
      for (const { constraint, update } of charts) {
        const { name, bound, sense, known } = constraint;
        const rows = rowsOf(problem.arms, intervals.costs[name] ?? {});
        const level = describeLevel(problem, status);
        update({ what: `Cost ${name}`, rows, bound: { value: bound, sense }, known, ...level });
      }
    },
  };
}

function describeLevel(problem, status) {
  return { confidence: formatConfidence(problem.delta), proviso: describeProviso(status) };
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
  const number = (value) => makeNumberCell(formatNumber(value));
  return makeNumberTable({
    caption: `${what} by arm`,
    columns: ["Arm", "Estimate", "At least", "At most"],
    rows: rows.map(({ name, mean, low, high }) => [name, ...[mean, low, high].map(number)]),
  });
}
