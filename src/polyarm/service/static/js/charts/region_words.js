// The three sets of feasible mixes, as both region charts name and describe them.

import { el, svg } from "../dom.js";
import { formatShare, listWords } from "../format.js";

/** In the order they are drawn: the largest first. They follow from the intervals of the costs, not from a proof. */
export const SETS = [
  {
    key: "optimistic",
    label: "feasible at best",
    meaning: "feasible if every cost is as good as its interval below allows",
  },
  { key: "estimated", label: "by the estimates", meaning: "feasible if every cost is as estimated" },
  {
    key: "pessimistic",
    label: "feasible at worst",
    meaning: "feasible if every cost is as bad as its interval below allows",
  },
];

export function makeRegionLegend(mixLabel) {
  const swatch = (className) =>
    svg(
      "svg",
      { width: 22, height: 14, "aria-hidden": "true" },
      svg("rect", { class: className, x: 2, y: 2, width: 18, height: 10 }),
    );
  const mix = svg(
    "svg",
    { width: 22, height: 14, "aria-hidden": "true" },
    svg("line", { class: "mix-line", x1: 1, x2: 21, y1: 7, y2: 7 }),
    svg("circle", { class: "mix-point", cx: 11, cy: 7, r: 5 }),
  );
  return el(
    "ul",
    { class: "legend" },
    SETS.map(({ key, label, meaning }) => el("li", { title: meaning }, swatch(key), label)),
    mixLabel === null ? null : el("li", {}, mix, mixLabel),
  );
}

/** Says of each set how far the share of every arm ranges in it. */
export function describeRegion({ arms, region, shares }) {
  const sets = SETS.map(({ key, label }) => {
    const corners = region[key];
    if (corners.length === 0) return `${label}: none`;
    const ranges = arms.map((arm, i) => {
      const column = corners.map((corner) => corner[i]);
      return `${arm} ${formatShare(Math.min(...column))} to ${formatShare(Math.max(...column))}`;
    });
    return `${label}: ${ranges.join(", ")}`;
  });
  const mix = shares === null ? "" : ` Mix: ${listWords(arms.map((arm, i) => `${arm} ${formatShare(shares[i])}`))}.`;
  return `Feasible mixes. ${sets.join("; ")}.${mix}`;
}
