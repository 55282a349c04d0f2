// Rows of a chart with their names: beside the marks where the names are short, above them where they are not.

import { svg } from "../dom.js";
import { fitText, textWidth } from "./scale.js";

/** Part of the width that names beside the marks may take. */
const LARGEST_PART = 0.36;
const LABEL_HEIGHT = 16;

/** Returns {left, bottom, centre(row), labels}: where marks may begin, where they end, and the names to draw. */
export function layOutRows(names, width, top, rowHeight) {
  const widest = Math.max(...names.map(textWidth));
  const beside = widest <= LARGEST_PART * width;
  const step = beside ? rowHeight : rowHeight + LABEL_HEIGHT;
  // Marks stand closer to the name above them than to the one below.
  const centre = (row) => top + step * row + rowHeight / 2 + (beside ? 0 : LABEL_HEIGHT - 5);
  const labels = names.map((name, row) => {
    const y = beside ? centre(row) : top + step * row + LABEL_HEIGHT / 2;
    const text = svg("text", { class: "label", x: 0, y, "dominant-baseline": "central" }, fitText(name, width));
    text.append(svg("title", {}, name));
    return text;
  });
  return { left: beside ? Math.ceil(widest) + 12 : 8, bottom: top + step * names.length, centre, labels };
}
