// The frame of a chart drawn in SVG: redrawn at the width there is, described in words.

import { el, fitToWidth, svg } from "../dom.js";

/**
 * Makes a figure; `draw(data, width)` returns {height, label, nodes}. Returns {node, update(data)}.
 */
export function makeFigure(draw) {
  const node = el("figure", { class: "chart" });
  let data = null;
  let shown = null;
  const render = fitToWidth(node, (width) => {
    if (data === null) return;
    const { height, label, nodes } = draw(data, width);
    const title = svg("title", {}, label);
    node.replaceChildren(
      svg("svg", { role: "img", "aria-label": label, width, height, viewBox: `0 0 ${width} ${height}` }, title, nodes),
    );
  });
  return {
    node,
    update(next) {
      const key = JSON.stringify(next);
      if (key === shown) return;
      shown = key;
      data = next;
      render();
    },
  };
}
