// Lines over the number of outcomes. The pointer and the arrow keys read values off them, which stand in the legend; a
// slider, which lies over the picture, says them aloud.

import { el, svg } from "../dom.js";
import { countOf, formatCount, formatNumber, isNumber } from "../format.js";
import { makeFigure } from "./figure.js";
import { linearScale, textWidth, ticks } from "./scale.js";

const TOP = 8;
const BOTTOM = 24;
/** Room for half a line, which may run along the edge. */
const EDGE = 3;
const DOT = 3.5;
/** Round numbers may lie up to 2.5 times as far apart as asked for; there must be two. */
const LEAST_TICKS = 2.5;

/** How many readings a key goes forward. */
const MOVES = {
  ArrowLeft: -1,
  ArrowDown: -1,
  ArrowRight: 1,
  ArrowUp: 1,
  PageDown: -10,
  PageUp: 10,
  Home: -Infinity,
  End: Infinity,
};

/**
 * Makes a chart. `name`: what can be read off, in few words; `series`: [{label, look}]; `bands`: [{from, to, look}],
 * areas between two series by index. A look is one or more classes of charts.css: a colour, a dash.
 * Returns {node, update({steps, lines, range, shade, label})}: numbers of outcomes in ascending order; for each series
 * a list with a value at each of them, null where there is none; {x: [low, high], y: [low, high]}; the numbers of
 * outcomes [from, to] to shade, or null; and what the chart shows, in words.
 */
export function makeLineChart({ name, series, bands = [], height = 260 }) {
  const figure = makeFigure(draw);
  const marker = svg("g", { class: "marker" });
  const slider = el("div", {
    class: "reader",
    role: "slider",
    tabindex: "0",
    hidden: true, // until there is something to read
    "aria-label": `${name}: read values`,
    on: {
      pointerdown: pickPointed,
      pointermove: pickPointed,
      pointerleave: (event) => event.pointerType !== "touch" && document.activeElement !== slider && pick(null),
      pointercancel: () => pick(null),
      focus: () => pick(data.steps[findPicked()]),
      blur: () => pick(null),
      keydown: pickByKey,
    },
  });
  const when = el("li", { class: "muted" });
  const values = series.map(() => el("span", { class: "value" }));
  const entries = series.map(({ label, look }, i) => el("li", {}, drawSwatch(look, isEdge(i)), label, values[i]));
  const legend = el("ul", { class: "legend", "aria-hidden": "true" }, entries, when);
  const node = el("div", {}, el("div", { class: "plot" }, figure.node, slider), legend);
  let data = null;
  let scales = null; // once it is drawn
  let picked = null; // the number of outcomes that the reader looks at; null: the latest

  function isEdge(index) {
    return bands.some(({ from, to }) => from === index || to === index);
  }

  function draw({ steps, lines, range, shade, label }, width) {
    const widest = textWidth(formatCount(range.x[1]));
    const apart = Math.max(64, widest + 30);
    const right = width - Math.ceil(widest / 2) - 2;
    const bottom = height - BOTTOM;
    const levels = ticks(...range.y, (bottom - TOP) / 32);
    const left = Math.ceil(Math.max(0, ...levels.map((level) => textWidth(formatNumber(level))))) + 10;
    const x = linearScale(...range.x, left, right);
    const y = linearScale(...range.y, bottom, TOP);
    scales = { x, y, top: TOP, bottom };
    const frame = { x: left - EDGE, y: TOP - EDGE, width: right - left + 2 * EDGE, height: bottom - TOP + 2 * EDGE };
    mark();
    return {
      height,
      label,
      nodes: [
        drawColumns(range.x, x, bottom, Math.max(LEAST_TICKS, (right - left) / apart)),
        drawLevels(levels, y, left, right),
        // An inner picture cuts off what lies beyond its frame.
        svg(
          "svg",
          { ...frame, role: "presentation", viewBox: Object.values(frame).join(" ") },
          shade === null ? null : drawShade(shade, x, left, right, bottom),
          bands.map(({ from, to, look }) => drawBand(look, steps, lines[from], lines[to], x, y)),
          series.map(({ look }, i) => drawLine(look, steps, lines[i], x, y)),
          marker,
        ),
      ],
    };
  }

  /** Shows what the reader looks at, or else the latest. */
  function show() {
    const { steps, lines } = data;
    const at = findPicked();
    const words = series.map(({ label }, i) => {
      values[i].textContent = formatNumber(lines[i][at]);
      return `${label} ${isNumber(lines[i][at]) ? formatNumber(lines[i][at]) : "unknown"}`;
    });
    const place = `after ${countOf(steps[at], "outcome")}`;
    when.textContent = steps.length === 0 ? "" : place;
    slider.hidden = steps.length === 0;
    slider.setAttribute("aria-valuemin", steps[0] ?? 0);
    slider.setAttribute("aria-valuemax", steps.at(-1) ?? 0);
    slider.setAttribute("aria-valuenow", steps[at] ?? 0);
    slider.setAttribute("aria-valuetext", `${place}: ${words.join(", ")}`);
    mark();
  }

  function mark() {
    const at = findPicked();
    if (picked === null || scales === null || at < 0) {
      marker.replaceChildren();
      return;
    }
    const { x, y, top, bottom } = scales;
    const cx = x(data.steps[at]);
    marker.replaceChildren(
      svg("line", { class: "axis", x1: cx, x2: cx, y1: top, y2: bottom }),
      ...series.flatMap(({ look }, i) => {
        const value = data.lines[i][at];
        return isNumber(value) ? [svg("circle", { class: `point ${look}`, cx, cy: y(value), r: DOT + 1 })] : [];
      }),
    );
  }

  function findPicked() {
    return picked === null ? data.steps.length - 1 : findNearest(data.steps, picked);
  }

  function pick(step) {
    if (data === null || step === picked) return;
    picked = step ?? null;
    show();
  }

  function pickPointed({ offsetX }) {
    if (scales !== null) pick(data.steps[findNearest(data.steps.map(scales.x), offsetX)]);
  }

  function pickByKey(event) {
    const move = MOVES[event.key];
    if (move === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    pick(data.steps[Math.min(Math.max(findPicked() + move, 0), data.steps.length - 1)]);
  }

  return {
    node,
    update(next) {
      data = next;
      figure.update(next);
      show();
    },
  };
}

/** The index of the value that is closest to a target; -1 if there are no values. */
function findNearest(values, target) {
  return values.reduce(
    (best, value, i) => (best < 0 || Math.abs(value - target) < Math.abs(values[best] - target) ? i : best),
    -1,
  );
}

/** There is no half outcome. */
function drawColumns([low, high], x, bottom, count) {
  return ticks(low, high, count)
    .filter(Number.isInteger)
    .map((step) => [
      svg("line", { class: "grid", x1: x(step), x2: x(step), y1: TOP, y2: bottom }),
      svg("text", { class: "tick", x: x(step), y: bottom + 16, "text-anchor": "middle" }, formatCount(step)),
    ]);
}

function drawLevels(levels, y, left, right) {
  return levels.map((level) => [
    svg("line", { class: level === 0 ? "axis" : "grid", x1: left, x2: right, y1: y(level), y2: y(level) }),
    svg(
      "text",
      { class: "tick", x: left - 6, y: y(level), "text-anchor": "end", "dominant-baseline": "central" },
      formatNumber(level),
    ),
  ]);
}

function drawShade(shade, x, left, right, bottom) {
  const [from, to] = shade.map((step) => Math.min(Math.max(x(step), left), right));
  return svg("rect", { class: "band eta", x: from, y: TOP, width: Math.max(to - from, 2), height: bottom - TOP });
}

function drawBand(look, steps, some, others, x, y) {
  return findRuns(steps.map((_, i) => isNumber(some[i]) && isNumber(others[i]))).map((run) => {
    const there = run.map((i) => place(x(steps[i]), y(some[i])));
    const back = run.map((i) => place(x(steps[i]), y(others[i]))).reverse();
    return svg("polygon", { class: `band ${look}`, points: [...there, ...back].join(" ") });
  });
}

/** A path with gaps where values are missing, and dots for values that stand alone. */
function drawLine(look, steps, values, x, y) {
  const runs = findRuns(values.map(isNumber));
  const points = runs.filter((run) => run.length > 1).map((run) => run.map((i) => place(x(steps[i]), y(values[i]))));
  const alone = runs.filter((run) => run.length === 1).map(([i]) => i);
  return [
    svg("path", { class: `line ${look}`, d: points.map((run) => `M${run.join("L")}`).join("") }),
    alone.map((i) => svg("circle", { class: `point ${look}`, cx: x(steps[i]), cy: y(values[i]), r: DOT })),
  ];
}

/** Lists of neighbouring indices at which something is there. */
function findRuns(present) {
  const runs = [];
  present.forEach((there, i) => {
    if (!there) return;
    if (i > 0 && present[i - 1]) runs.at(-1).push(i);
    else runs.push([i]);
  });
  return runs;
}

function place(x, y) {
  return `${x.toFixed(1)},${y.toFixed(1)}`;
}

function drawSwatch(look, edge) {
  return svg(
    "svg",
    { width: 26, height: 14, "aria-hidden": "true" },
    edge ? svg("rect", { class: `band ${look}`, width: 26, height: 14 }) : null,
    svg("line", { class: `line ${look}`, x2: 26, y1: 7, y2: 7 }),
  );
}
