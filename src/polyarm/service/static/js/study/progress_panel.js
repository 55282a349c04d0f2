// How the proof closes in: the statistic against its threshold, and when the explorer expected to stop.

import { makeLineChart } from "../charts/line_chart.js";
import { el, panel } from "../dom.js";
import { formatCount, formatNumber, formatRough, isNumber } from "../format.js";

/** An expected stop further away than this many times the outcomes so far would squeeze the lines into a corner. */
const FURTHEST = 6;

export function makeProgressPanel() {
  const progress = makeLineChart({
    name: "Statistic against threshold",
    series: [
      { label: "statistic", look: "statistic" },
      { label: "threshold", look: "threshold dash-1" },
    ],
  });
  const expected = makeLineChart({
    name: "Expected number of outcomes",
    series: [
      { label: "at the latest", look: "eta" },
      { label: "at the earliest", look: "eta dash-1" },
      { label: "outcomes used", look: "statistic dash-2" },
    ],
    bands: [{ from: 0, to: 1, look: "eta" }],
    height: 200,
  });
  const words = el("p", { class: "muted small" });
  const empty = el("p", { class: "muted" });
  const expectedPart = el(
    "div",
    {},
    el("h3", { class: "chart-title" }, "Expected number of outcomes, as it was seen at the time"),
    expected.node,
  );
  const node = panel(
    "Statistic against threshold",
    "By outcomes used. The explorer stops when the statistic crosses the threshold.",
    empty,
    progress.node,
    words,
    expectedPart,
  );
  node.classList.add("wide");

  return {
    node,
    update({ status, trace }) {
      const hasLines = trace.statistic.some(isNumber) || trace.threshold.some(isNumber);
      empty.textContent = describeEmptiness(status);
      empty.hidden = hasLines;
      progress.node.hidden = !hasLines;
      words.textContent = describeStop(status);
      words.hidden = !hasLines || status.expected_stop === null;
      progress.update(chartProgress(trace, status));
      expectedPart.hidden = !trace.stop_high.some(isNumber);
      expected.update(chartExpected(trace, status));
    },
  };
}

function chartProgress(trace, status) {
  const { used, expected_stop: stop } = status;
  const [steps, ...lines] = withLatest(trace, status);
  const furthest = Math.min(stop?.[1] ?? 0, FURTHEST * Math.max(used, 1));
  const values = lines.flat().filter(isNumber);
  const range = {
    x: [0, Math.max(steps.at(-1) || 1, furthest) * 1.02],
    y: [Math.min(0, ...values), Math.max(1e-9, ...values) * 1.08],
  };
  return { steps, lines, range, shade: stop, label: describe(status) };
}

function chartExpected({ steps, stop_low: low, stop_high: high }, { used, expected_stop: stop }) {
  // Early expectations may be wild: the later half of the outcomes sets the scale.
  const late = high.filter((latest, i) => isNumber(latest) && steps[i] >= used / 2);
  const range = { x: [0, (steps.at(-1) || 1) * 1.02], y: [0, 1.15 * Math.max(1, used, ...late)] };
  const seen = stop === null ? "" : ` Now ${formatCount(stop[0])} to ${formatCount(stop[1])}.`;
  return {
    steps,
    lines: [high, low, steps],
    range,
    shade: null,
    label: `Expected number of outcomes over outcomes used.${seen}`,
  };
}

/** Readings are taken ever more rarely; the status is as of now. */
function withLatest({ steps, statistic, threshold }, status) {
  if (!isNumber(status.statistic) || status.used <= (steps.at(-1) ?? -1)) return [steps, statistic, threshold];
  return [
    [...steps, status.used],
    [...statistic, status.statistic],
    [...threshold, status.threshold],
  ];
}

function describeStop({ expected_stop: stop }) {
  if (stop === null) return "";
  return `Shaded: expected to stop between ${formatRough(stop[0])} and ${formatRough(stop[1])} outcomes in all.`;
}

function describe({ statistic, threshold, used }) {
  const values = `statistic ${formatNumber(statistic)}, threshold ${formatNumber(threshold)}`;
  return `Statistic against threshold over outcomes used; after ${formatCount(used)} outcomes: ${values}.`;
}

function describeEmptiness({ state, used }) {
  if (state === "infeasible") return "Stopped before there was a mix to test.";
  if (used === 0) return "Nothing to draw before the first outcomes.";
  return "No reading yet: the explorer tests from time to time.";
}
