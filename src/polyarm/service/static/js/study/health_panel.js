// Whether outcomes flow: trials under way, given up, late.

import { el, makeSlot, panel } from "../dom.js";
import { formatCount } from "../format.js";

const FACTS = [
  { key: "used", label: "Used", note: "outcomes that reached the explorer" },
  { key: "pending", label: "Pending", note: "trials under way" },
  { key: "overdue", label: "Overdue", note: "pending beyond their lease", alert: true },
  { key: "waiting", label: "Waiting", note: "told, not yet needed" },
  { key: "expired", label: "Expired", note: "given up", alert: true },
  { key: "late", label: "Late", note: "told after they were given up", alert: true },
  { key: "observed", label: "Observed", note: "told without being asked for" },
];

export function makeHealthPanel() {
  const list = el("dl", { class: "facts" });
  const show = makeSlot(list, (status) => FACTS.map((fact) => makeFact(fact, status[fact.key])));
  const next = el("p", { class: "muted small" });
  return {
    node: panel("Health", null, list, next),
    update({ status }) {
      show(Object.fromEntries(FACTS.map(({ key }) => [key, status[key]])));
      next.textContent = `The explorer needs an outcome of ${status.waiting_for} next.`;
      next.hidden = status.waiting_for === null;
    },
  };
}

function makeFact({ label, note, alert }, count) {
  return el(
    "div",
    {},
    el("dt", {}, label),
    el("dd", { class: alert && count > 0 ? "alert" : null }, formatCount(count), el("div", { class: "note" }, note)),
  );
}
