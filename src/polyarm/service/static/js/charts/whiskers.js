// Dot-and-whisker plot: one row per arm, its estimate and an interval for the truth; optionally a bound.

import { svg } from "../dom.js";
import { formatInterval, formatNumber, formatSense, isNumber } from "../format.js";
import { makeFigure } from "./figure.js";
import { layOutRows } from "./rows.js";
import { linearScale, rangeOf, ticks } from "./scale.js";

const ROW = 26;
const TOP = 22;
const BOTTOM = 24;

/**
 * Data: {what, rows: [{name, mean, low, high}], bound: {value, sense} | null, known, confidence, proviso}: the
 * intervals hold with that confidence, and under the proviso unless it is empty.
 */
export function makeWhiskers() {
  return makeFigure(draw);
}

function draw(data, width) {
  const names = data.rows.map((row) => row.name);
  const top = data.bound === null ? 6 : TOP;
  const { left, bottom, centre, labels } = layOutRows(names, width, top, ROW);
  const right = width - 10;
  const values = data.rows.flatMap((row) => [row.mean, row.low, row.high]);
  const range = rangeOf([...values, data.bound?.value]);
  const [low, high] = range ?? [0, 1];
  const x = linearScale(low, high, left, right);
  return {
    height: bottom + BOTTOM,
    label: describe(data),
    nodes: [
      range === null ? null : drawAxis(low, high, x, top, bottom, (right - left) / 70),
      data.bound === null ? null : drawBound(data.bound, x, left, right, top, bottom),
      labels,
      data.rows.map((row, i) => drawRow(row, x, centre(i), left, data)),
    ],
  };
}

function drawAxis(low, high, x, top, bottom, count) {
  return ticks(low, high, count).flatMap((value) => [
    svg("line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: bottom }),
    svg("text", { class: "tick", x: x(value), y: bottom + 16, "text-anchor": "middle" }, formatNumber(value)),
  ]);
}

function drawBound({ value, sense }, x, left, right, top, bottom) {
  const at = x(value);
  const [from, to] = sense === "<=" ? [at, right] : [left, at];
  const anchor = at > (left + right) / 2 ? "end" : "start";
  return [
    svg("rect", { class: "forbidden", x: from, y: top, width: Math.max(0, to - from), height: bottom - top }),
    svg("line", { class: "bound", x1: at, x2: at, y1: top - 4, y2: bottom }),
    svg(
      "text",
      { class: "bound-label", x: at, y: top - 8, "text-anchor": anchor },
      `bound ${formatSense(sense)} ${formatNumber(value)}`,
    ),
  ];
}

function drawRow(row, x, y, left, { known, confidence, proviso }) {
  if (!isNumber(row.mean)) {
    return svg("text", { class: "tick", x: left + 4, y, "dominant-baseline": "central" }, "no outcome yet");
  }
  const bounded = isNumber(row.low) && isNumber(row.high);
  return svg(
    "g",
    { class: known ? "known" : null },
    svg("title", {}, describeRow(row, known, `${confidence}${proviso}`)),
    bounded && !known
      ? [
          svg("line", { class: "whisker", x1: x(row.low), x2: x(row.high), y1: y, y2: y }),
          svg("line", { class: "whisker", x1: x(row.low), x2: x(row.low), y1: y - 5, y2: y + 5 }),
          svg("line", { class: "whisker", x1: x(row.high), x2: x(row.high), y1: y - 5, y2: y + 5 }),
        ]
      : null,
    svg("circle", { class: bounded ? "dot" : "open-dot", cx: x(row.mean), cy: y, r: 5 }),
  );
}

function describe({ what, rows, bound, known, confidence, proviso }) {
  const limit = bound === null ? "" : ` Bound: ${formatSense(bound.sense)} ${formatNumber(bound.value)}.`;
  const words = rows.map((row) => describeRow(row, known, confidence)).join("; ");
  return `${what} by arm.${limit} ${words}${known || proviso === "" ? "" : `; all${proviso}`}.`;
}

function describeRow(row, known, trust) {
  if (!isNumber(row.mean)) return `${row.name}: no outcome yet`;
  if (known) return `${row.name}: ${formatNumber(row.mean)}, known`;
  if (!isNumber(row.low) || !isNumber(row.high)) return `${row.name}: about ${formatNumber(row.mean)}`;
  return `${row.name}: about ${formatNumber(row.mean)}, ${formatInterval(row.low, row.high, trust)}`;
}
