// The list of studies; looked at again every few seconds, since others add to it.

import { getStudies } from "./api.js";
import { el, makeSlot } from "./dom.js";
import { formatCount, formatDay } from "./format.js";
import { studyRoute } from "./router.js";

const PACE = 5000;

export async function showStudiesPage(container, frame) {
  frame.setTitle("Studies");
  const { studies } = await getStudies(frame.signal);
  const body = el("div");
  const show = makeSlot(body, (list) => (list.length === 0 ? describeNone(frame) : makeTable(list)));
  show(studies);
  const create = frame.canManage ? el("a", { class: "button primary", href: "#/new" }, "New study") : null;
  container.replaceChildren(el("div", { class: "page-head" }, el("h1", { tabindex: "-1" }, "Studies"), create), body);

  async function refresh() {
    if (document.hidden) return;
    try {
      keepFocus(body, show, (await getStudies(frame.signal)).studies);
    } catch (error) {
      if (error.status === 401) frame.fail(error); // else the list is still as good as it was
    }
  }

  const timer = setInterval(refresh, PACE);
  frame.signal.addEventListener("abort", () => clearInterval(timer));
}

/** Shows the list again; the link that had the focus has it afterwards. */
function keepFocus(body, show, studies) {
  const address = body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  show(studies);
  if (address !== null) [...body.querySelectorAll("a")].find((link) => link.getAttribute("href") === address)?.focus();
}

function describeNone(frame) {
  return el(
    "section",
    { class: "panel stack" },
    el("h2", {}, "No studies yet"),
    el(
      "p",
      {},
      "A study looks for the mix of arms with the largest mean reward under budgets that can only be measured, and ",
      "proves its answer. State the arms and the constraints, then feed it outcomes from anywhere.",
    ),
    frame.canManage ? el("p", {}, el("a", { class: "button", href: "#/new" }, "Create the first study")) : null,
    el("p", { class: "muted" }, "Or from the command line:"),
    el("pre", {}, "polyarm study create pricing problem.toml\npolyarm demo    # feeds a simulated study, to watch"),
  );
}

const COLUMNS = ["Study", "Lifecycle", "Explorer", "Trials", "Created"];

// Roles are spelt out because on a phone the rows are laid out as blocks, which would make browsers drop them.
function makeTable(studies) {
  const newest = [...studies].sort((a, b) => b.created_at.localeCompare(a.created_at));
  return el(
    "div",
    { class: "panel" },
    el(
      "table",
      { class: "studies-table", role: "table" },
      el("caption", { class: "visually-hidden" }, "Studies, newest first"),
      el(
        "thead",
        { role: "rowgroup" },
        el(
          "tr",
          { role: "row" },
          COLUMNS.map((name) => el("th", { role: "columnheader", scope: "col", class: columnClass(name) }, name)),
        ),
      ),
      el("tbody", { role: "rowgroup" }, newest.map(makeRow)),
    ),
  );
}

function makeRow(study) {
  const cell = (name, ...children) =>
    el("td", { role: "cell", class: columnClass(name), "data-label": name }, ...children);
  return el(
    "tr",
    { role: "row" },
    el("th", { role: "rowheader", scope: "row" }, el("a", { href: studyRoute(study.id) }, study.name)),
    cell("Lifecycle", el("span", { class: `badge ${study.lifecycle}` }, study.lifecycle)),
    cell("Explorer", study.explorer),
    cell("Trials", formatCount(study.trials)),
    cell("Created", el("time", { datetime: study.created_at }, formatDay(study.created_at))),
  );
}

function columnClass(name) {
  return name === "Trials" ? "number" : null;
}
