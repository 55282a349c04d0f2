// The mix that the study would choose now, beside how it samples the arms.

import { el, makeSlot, panel } from "../dom.js";
import { asSentence, formatCount, formatInterval, formatNumber, formatShare, isNumber } from "../format.js";

const LEADS = {
  answer: "The answer: the explorer has stopped with it.",
  safe: "The best mix that is certainly feasible so far; the answer may be better.",
  candidate: "The best guess so far; it may break a constraint.",
  none: "There is no mix to show yet.",
};

export function makeMixPanel() {
  const lead = el("p", { class: "lead" });
  const value = el("p", { class: "mix-value" });
  const body = el("div");
  const show = makeSlot(body, makeTable);
  const node = panel("Mix and allocation", null, lead, body, value);

  return {
    node,
    update({ mix, status, problem }) {
      lead.textContent = mix.kind === "none" && mix.why !== null ? asSentence(mix.why) : LEADS[mix.kind];
      value.textContent = describeValue(mix);
      value.hidden = !isNumber(mix.value);
      show({ arms: problem.arms, shares: mix.shares, allocation: status.allocation, pulls: status.pulls });
    },
  };
}

function describeValue({ value, value_interval: interval }) {
  const surely = interval === null ? "" : `, surely ${formatInterval(...interval)}`;
  return `Mean reward of this mix: about ${formatNumber(value)}${surely}.`;
}

function makeTable({ arms, shares, allocation, pulls }) {
  const column = (name) => el("th", { scope: "col", class: "number" }, name);
  return el(
    "table",
    { class: "shares" },
    el("caption", { class: "visually-hidden" }, "Share of each arm in the mix and in the sampling"),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Arm"), ["Mix", "Allocation", "Outcomes"].map(column))),
    el(
      "tbody",
      {},
      arms.map((arm) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, el("span", { class: "clamped", title: arm }, arm)),
          makeShare(shares?.[arm], "mix"),
          makeShare(allocation[arm], "allocation"),
          el("td", { class: "number" }, formatCount(pulls[arm])),
        ),
      ),
    ),
  );
}

function makeShare(share, kind) {
  const bar = el("span", { class: `share-bar ${kind}` });
  bar.style.width = `${isNumber(share) ? 100 * share : 0}%`;
  return el(
    "td",
    {},
    el("span", { class: "share-number" }, formatShare(share)),
    el("span", { class: "share-track", "aria-hidden": "true" }, bar),
  );
}
