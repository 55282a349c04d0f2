// Lines over the number of outcomes, by uPlot, with a legend that shows the latest values or those under the pointer.

import uPlot from "../../vendor/uplot/uPlot.esm.js";

import { el, fitToWidth } from "../dom.js";
import { formatCount, formatNumber } from "../format.js";
import { colour, onThemeChange } from "../theme.js";

/** Steps between ticks for counts: there is no half outcome. */
const WHOLE = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

/**
 * Makes a chart. `series`: [{label, property (colour), dash?, area?}]; `bands`: [{from, to, property}] between series
 * by index; `underlay(u)` draws below the lines; `range`: {x(lowest, highest), y(lowest, highest)}.
 * Returns {node, update({columns, label})}: `columns` as uPlot takes them, x first; `label` describes them in words.
 */
export function makeLineChart({ series, bands = [], underlay = null, range, height = 260 }, signal) {
  const plot = el("div", { class: "plot", role: "img" });
  const values = series.map(() => el("span", { class: "value" }));
  const legend = el("ul", { class: "legend", "aria-hidden": "true" }, series.map(makeEntry));
  const node = el("figure", { class: "chart" }, plot, legend);
  let columns = [[], ...series.map(() => [])];
  let chart = null;

  function makeEntry({ label, property, dash, area }, i) {
    const swatch = el("span", { class: `swatch${dash ? " dashed" : ""}${area ? " area" : ""}` });
    swatch.style.setProperty("--swatch", `var(${property})`);
    return el("li", {}, swatch, label, values[i]);
  }

  function showValues() {
    const at = chart?.cursor.idx ?? columns[0].length - 1;
    series.forEach((one, i) => {
      values[i].textContent = formatNumber(columns[i + 1][at]);
    });
  }

  function build(width) {
    return new uPlot(
      {
        width,
        height,
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false } },
        scales: {
          x: { time: false, range: (u, low, high) => range.x(low, high) },
          y: { range: (u, low, high) => range.y(low, high) },
        },
        axes: [
          { ...axisColours(), values: (u, splits) => splits.map(formatCount), incrs: WHOLE, size: 32, font: font() },
          { ...axisColours(), values: (u, splits) => splits.map(formatNumber), size: 58, font: font() },
        ],
        series: [
          {},
          ...series.map(({ property, dash, area }) => ({
            stroke: () => colour(property),
            width: area ? 1 : 2,
            dash,
            spanGaps: true,
            points: { show: (u) => u.data[0].length < 2, size: 7, fill: () => colour(property) },
          })),
        ],
        bands: bands.map(({ from, to, property }) => ({ series: [from, to], fill: () => translucent(property) })),
        hooks: { drawClear: underlay === null ? [] : [underlay], setCursor: [showValues] },
      },
      columns,
      plot,
    );
  }

  fitToWidth(plot, (width) => {
    if (chart === null) {
      chart = build(width);
      showValues();
    } else {
      chart.setSize({ width, height });
    }
  });
  onThemeChange(() => chart?.redraw(false, true), signal);
  signal.addEventListener("abort", () => chart?.destroy());

  return {
    node,
    update({ columns: next, label }) {
      columns = next;
      plot.setAttribute("aria-label", label);
      chart?.setData(columns);
      showValues();
    },
  };
}

/** A colour for areas, which must not hide what lies below; theme.css gives colours as #rrggbb. */
export function translucent(property) {
  return `${colour(property)}38`;
}

function axisColours() {
  const grid = { stroke: () => colour("--chart-grid"), width: 1 };
  return { stroke: () => colour("--muted"), grid, ticks: grid };
}

function font() {
  return `12px ${getComputedStyle(document.body).fontFamily}`;
}
