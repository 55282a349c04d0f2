// Ternary diagram of the mixes of three arms: a corner is one arm alone, the sets of feasible mixes are polygons.

import { svg } from "../dom.js";
import { formatShare } from "../format.js";
import { makeFigure } from "./figure.js";
import { convexHull } from "./hull.js";
import { describeRegion, SETS } from "./region_words.js";
import { fitText } from "./scale.js";

const LARGEST = 460;
const MARGIN = 26;
const GRID = [0.25, 0.5, 0.75];

/** Data: {arms, region: {optimistic, estimated, pessimistic}, shares: [3] | null}. */
export function makeTernary() {
  return makeFigure(draw);
}

function draw(data, width) {
  const side = Math.min(LARGEST, width - 2 * MARGIN);
  const rise = (side * Math.sqrt(3)) / 2;
  const left = (width - side) / 2;
  const corners = [
    [left, MARGIN + rise],
    [left + side, MARGIN + rise],
    [left + side / 2, MARGIN],
  ];
  const place = (mix) => [0, 1].map((axis) => corners.reduce((sum, corner, i) => sum + mix[i] * corner[axis], 0));
  return {
    height: rise + 2 * MARGIN,
    label: describeRegion(data),
    nodes: [
      svg("polygon", { class: "axis", points: join(corners) }),
      GRID.flatMap((share) => [0, 1, 2].map((arm) => drawGridLine(arm, share, place))),
      SETS.map(({ key }) => drawSet(key, data.region[key].map(place))),
      data.shares === null ? null : drawMix(place(data.shares), data),
      data.arms.map((arm, i) => drawName(arm, i, corners[i], side)),
    ],
  };
}

/** The mixes in which one arm has a given share. */
function drawGridLine(arm, share, place) {
  const mix = (other) => [0, 1, 2].map((i) => (i === arm ? share : i === other ? 1 - share : 0));
  const [[x1, y1], [x2, y2]] = [0, 1, 2].filter((i) => i !== arm).map((other) => place(mix(other)));
  return svg("line", { class: "grid", x1, y1, x2, y2 });
}

function drawSet(key, points) {
  const hull = convexHull(points);
  if (hull.length === 0) return null;
  if (hull.length === 1) return svg("circle", { class: key, cx: hull[0][0], cy: hull[0][1], r: 4 });
  return svg("polygon", { class: key, points: join(hull), "stroke-linejoin": "round" });
}

function drawMix([cx, cy], { arms, shares }) {
  const words = arms.map((arm, i) => `${arm} ${formatShare(shares[i])}`).join(", ");
  return svg(
    "g",
    { class: "mix" },
    svg("title", {}, words),
    svg("circle", { class: "mix-halo", cx, cy, r: 9 }),
    svg("circle", { class: "mix-point", cx, cy, r: 6 }),
  );
}

function drawName(arm, index, [x, y], side) {
  const top = index === 2;
  const anchor = top ? "middle" : index === 0 ? "start" : "end";
  const nudge = top ? 0 : index === 0 ? -MARGIN / 2 : MARGIN / 2;
  const text = svg(
    "text",
    { class: "label", x: x + nudge, y: top ? y - 10 : y + 18, "text-anchor": anchor },
    fitText(arm, top ? side : side / 2),
  );
  text.append(svg("title", {}, arm));
  return text;
}

function join(points) {
  return points.map((point) => point.map((value) => value.toFixed(2)).join(",")).join(" ");
}
