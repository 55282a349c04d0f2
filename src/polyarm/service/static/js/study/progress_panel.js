// How the proof closes in: the statistic against its threshold, and when the explorer expected to stop.

import { makeLineChart, translucent } from "../charts/line_chart.js";
import { el, panel } from "../dom.js";
import { formatCount, formatNumber, formatRough, isNumber } from "../format.js";

/** An expected stop further away than this many times the outcomes so far would squeeze the lines into a corner. */
const FURTHEST = 6;

export function makeProgressPanel(signal) {
  let stop = null;
  let used = 0;
  let tallest = 1; // early expectations may be wild: the later half of the outcomes sets the scale
  const progress = makeLineChart(
    {
      series: [
        { label: "statistic", property: "--chart-statistic" },
        { label: "threshold", property: "--chart-threshold", dash: [8, 5] },
      ],
      underlay: (chart) => shadeStop(chart, stop),
      range: {
        x: (low, high) => [0, Math.max(high || 1, Math.min(stop?.[1] ?? 0, FURTHEST * Math.max(used, 1))) * 1.02],
        y: (low, high) => [Math.min(0, low ?? 0), Math.max(high ?? 1, 1e-9) * 1.08],
      },
    },
    signal,
  );
  const expected = makeLineChart(
    {
      series: [
        { label: "at the latest", property: "--chart-eta", area: true },
        { label: "at the earliest", property: "--chart-eta", area: true },
        { label: "outcomes used", property: "--chart-statistic", dash: [3, 4] },
      ],
      bands: [{ from: 1, to: 2, property: "--chart-eta" }],
      range: { x: (low, high) => [0, (high || 1) * 1.02], y: () => [0, tallest] },
      height: 200,
    },
    signal,
  );
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
      stop = status.expected_stop;
      used = status.used;
      const hasLines = trace.statistic.some(isNumber) || trace.threshold.some(isNumber);
      empty.textContent = describeEmptiness(status);
      empty.hidden = hasLines;
      progress.node.hidden = !hasLines;
      words.textContent = describeStop(status);
      words.hidden = !hasLines || stop === null;
      progress.update({ columns: withLatest(trace, status), label: describe(status) });
      expectedPart.hidden = !trace.stop_high.some(isNumber);
      tallest = 1.15 * Math.max(1, used, ...trace.stop_high.filter((high, i) => trace.steps[i] >= used / 2));
      const seen = stop === null ? "" : ` Now ${formatCount(stop[0])} to ${formatCount(stop[1])}.`;
      expected.update({
        columns: [trace.steps, trace.stop_high, trace.stop_low, trace.steps],
        label: `Expected number of outcomes over outcomes used.${seen}`,
      });
    },
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

/** The expected stop as a vertical band, below the lines. */
function shadeStop(chart, stop) {
  if (stop === null) return;
  const { left, top, width, height } = chart.bbox;
  const [from, to] = stop.map((steps) => Math.min(Math.max(chart.valToPos(steps, "x", true), left), left + width));
  chart.ctx.save();
  chart.ctx.fillStyle = translucent("--chart-eta");
  chart.ctx.fillRect(from, top, Math.max(to - from, 2), height);
  chart.ctx.restore();
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
