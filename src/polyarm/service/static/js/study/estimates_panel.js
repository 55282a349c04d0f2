// Estimates with intervals: the reward of each arm, and its cost under each constraint.

import { makeWhiskers } from "../charts/whiskers.js";
import { el, makeNumberCell, makeNumberTable, makeSlot, panel } from "../dom.js";
import { formatConstraint, formatNumber } from "../format.js";
import { describeIntervals, describeIntervalTrust, describeProviso, describeProvisoAndPlace, NOT_PROVED } from "./claims.js";

export function makeRewardPanel(problem) {
  const chart = makeEstimates();
  const lead = el("p", { class: "lead" });
  return {
    node: panel("Reward of each arm", null, lead, makeDeclaration(problem.declared), chart.node),
    update(view) {
      const confidence = describeIntervals(view);
      lead.textContent =
        confidence === null
          ? "Dots are estimates. Nothing is claimed of the intervals while an outcome is outside what is declared."
          : `Dots are estimates. All intervals hold at once, at all times, with confidence ${confidence}` +
            `${describeProvisoAndPlace(view.status)}.`;
      const rows = rowsOf(problem.arms, view.intervals.reward);
      chart.update({ what: "Reward", rows, bound: null, known: false, ...describeLevel(view) });
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
      charts.map(({ constraint, node }) => [
        el("h3", { class: "chart-title" }, formatConstraint(constraint)),
        constraint.known ? null : makeDeclaration(constraint.declared),
        node,
      ]),
    ),
    update(view) {
      const { intervals } = view;
      const trust = ` Intervals hold together with those of the rewards (${describeIntervalTrust(view)}).`;
      lead.textContent = `A mix has to respect the bounds; a single arm need not.${measured ? trust : ""}`;
      for (const { constraint, update } of charts) {
        const { name, bound, sense, known } = constraint;
        const rows = rowsOf(problem.arms, intervals.costs[name] ?? {});
        update({ what: `Cost ${name}`, rows, bound: { value: bound, sense }, known, ...describeLevel(view) });
      }
    },
  };
}

function describeLevel(view) {
  const confidence = describeIntervals(view);
  return confidence === null
    ? { confidence: NOT_PROVED, proviso: "" }
    : { confidence, proviso: describeProviso(view.status) };
}

/** What is declared of an outcome, as its account says: "range 0 to 20, larger values cut". */
function makeDeclaration(declared) {
  const words = declared === "estimated" ? "Nothing is declared: the variance is estimated." : `Declared: ${declared}.`;
  return el("p", { class: "muted small" }, words);
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
