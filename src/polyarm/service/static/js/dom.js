// Building the page. Text only ever enters as text nodes and attributes, never as markup: names of studies and arms are
// whatever somebody typed.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element: attributes (`class`, `on: {click: f}`; null and false are left out) and children (nodes, strings,
 * lists of them).
 */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

/** Replaces what a node holds, but only if `data` differs from last time: selections and hover survive no news. */
export function makeSlot(node, render) {
  let shown;
  return (data) => {
    const key = JSON.stringify(data);
    if (key === shown) return;
    shown = key;
    node.replaceChildren(...[render(data)].flat().filter((child) => child !== null));
  };
}

/** Calls `render(width)` now and whenever the node's width changes; returns how to render again. */
export function fitToWidth(node, render) {
  let width = 0;
  const draw = () => width > 0 && render(width);
  new ResizeObserver(([entry]) => {
    const now = Math.floor(entry.contentRect.width);
    if (now === width) return;
    width = now;
    draw();
  }).observe(node);
  return draw;
}

let lastId = 0;

/** An id that no other element of the page has. */
export function freshId(prefix) {
  lastId += 1;
  return `${prefix}-${lastId}`;
}

/** Says something to those who hear the page. */
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}

/** A table with a caption for those who hear the page; the first column heads the rows, the others hold numbers. */
export function makeNumberTable({ caption, columns, rows, attributes = {} }) {
  const [first, ...others] = columns;
  return el(
    "table",
    attributes,
    el("caption", { class: "visually-hidden" }, caption),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        el("th", { scope: "col" }, first),
        others.map((name) => el("th", { scope: "col", class: "number" }, name)),
      ),
    ),
    el(
      "tbody",
      {},
      rows.map(([heading, ...cells]) => el("tr", {}, el("th", { scope: "row" }, heading), cells)),
    ),
  );
}

/** A cell of such a table. */
export function makeNumberCell(text) {
  return el("td", { class: "number" }, text);
}

/** A panel of a page: a titled section. */
export function panel(title, lead, ...children) {
  const id = freshId("panel");
  return el(
    "section",
    { class: "panel", "aria-labelledby": id },
    el("h2", { id }, title),
    lead === null ? null : el("p", { class: "lead" }, lead),
    children,
  );
}
