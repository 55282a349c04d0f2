// Parallel coordinates of mixes of any number of arms: an axis from 0 to 100% per arm, a thin line per corner of a
// feasible set, a bar for the range of each arm's share in it, and a thick line for the mix. Axes lie on their sides,
// one below the other, so that twenty names fit on a phone.

import { svg } from "../dom.js";
import { formatShare } from "../format.js";
import { makeFigure } from "./figure.js";
import { describeRegion, SETS } from "./region_words.js";
import { layOutRows } from "./rows.js";
import { linearScale } from "./scale.js";

const ROW = 34;
const TOP = 8;
const BOTTOM = 24;
const BAR = 22;
/** A thinner bar for each smaller set, so that none hides another. */
const INSET = { optimistic: 0, estimated: 3, pessimistic: 7 };

/** Data: {arms, region, shares: [K] | null}. */
export function makeParallel() {
  return makeFigure(draw);
}

function draw(data, width) {
  const { arms, region, shares } = data;
  const { left, bottom, centre: y, labels } = layOutRows(arms, width, TOP, ROW);
  const x = linearScale(0, 1, left + 4, width - 16);
  return {
    height: bottom + BOTTOM,
    label: describeRegion(data),
    nodes: [
      [0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
        svg("line", { class: "grid", x1: x(share), x2: x(share), y1: TOP, y2: bottom }),
        svg("text", { class: "tick", x: x(share), y: bottom + 16, "text-anchor": "middle" }, `${100 * share}%`),
      ]),
      SETS.flatMap(({ key, label }) => drawRanges(key, label, arms, region[key], x, y)),
      SETS.map(({ key }) => drawCorners(key, region[key], x, y)),
      shares === null ? [] : drawMix(arms, shares, x, y),
      labels,
    ],
  };
}

function drawRanges(key, label, arms, corners, x, y) {
  if (corners.length === 0) return [];
  return arms.map((arm, row) => {
    const shares = corners.map((corner) => corner[row]);
    const [low, high] = [Math.min(...shares), Math.max(...shares)];
    const height = BAR - 2 * INSET[key];
    return svg(
      "rect",
      { class: `${key} range`, x: x(low), y: y(row) - height / 2, width: Math.max(2, x(high) - x(low)), height },
      svg("title", {}, `${arm}, ${label}: ${formatShare(low)} to ${formatShare(high)}`),
    );
  });
}

function drawCorners(key, corners, x, y) {
  if (corners.length === 0) return null;
  return svg("path", { class: `${key} corner-line`, d: corners.map((corner) => trace(corner, x, y)).join("") });
}

function drawMix(arms, shares, x, y) {
  return [
    svg("path", { class: "mix-line", d: trace(shares, x, y) }),
    ...arms.map((arm, row) =>
      svg(
        "circle",
        { class: "mix-point", cx: x(shares[row]), cy: y(row), r: 5 },
        svg("title", {}, `${arm}: ${formatShare(shares[row])}`),
      ),
    ),
  ];
}

function trace(mix, x, y) {
  return mix.map((share, row) => `${row === 0 ? "M" : "L"}${x(share).toFixed(1)},${y(row)}`).join("");
}
