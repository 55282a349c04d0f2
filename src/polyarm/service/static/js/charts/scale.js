// Axes: from values to pixels, and where to put the ticks.

import { isNumber } from "../format.js";

/** Maps [low, high] to [from, to]. */
export function linearScale(low, high, from, to) {
  return (value) => from + ((value - low) / (high - low)) * (to - from);
}

/** The least range that holds all numbers among `values`, with a little room; null if there is none. */
export function rangeOf(values) {
  const numbers = values.filter(isNumber);
  if (numbers.length === 0) return null;
  const low = Math.min(...numbers);
  const high = Math.max(...numbers);
  const room = high > low ? 0.06 * (high - low) : Math.max(Math.abs(high) * 0.1, 0.5);
  return [low - room, high + room];
}

/** About `count` round numbers within [low, high]. */
export function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? 10 * power;
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high; i += 1) found.push(Number((i * step).toPrecision(12)));
  return found;
}

const pen = document.createElement("canvas").getContext("2d");

/** The width of a text at the size of chart labels. */
export function textWidth(text) {
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

/** A name cut so that it fits. */
export function fitText(text, width) {
  if (textWidth(text) <= width) return text;
  let length = text.length;
  while (length > 1 && textWidth(`${text.slice(0, length)}…`) > width) length -= 1;
  return `${text.slice(0, length)}…`;
}
