// The mix that the study would choose now, beside how it samples the arms.

import { el, makeNumberCell, makeNumberTable, makeSlot, panel } from "../dom.js";
import { asSentence, formatCount, formatInterval, formatNumber, formatShare, isNumber } from "../format.js";
import { describeBounds, describeTrust, isProvedFeasible } from "./claims.js";

export function makeMixPanel() {
  const lead = el("p", { class: "lead" });
  const value = el("p", { class: "mix-value" });
  const body = el("div");
  const show = makeSlot(body, makeTable);
  const node = panel("Mix and allocation", null, lead, body, value);

  return {
    node,
    update(view) {
      const { mix, status, problem } = view;
      lead.textContent = describeMix(view);
      value.textContent = describeValue(view);
      value.hidden = !isNumber(mix.value);
      show({ arms: problem.arms, shares: mix.shares, allocation: status.allocation, pulls: status.pulls });
    },
  };
}

function describeMix(view) {
  const { kind, why } = view.mix;
  if (kind === "answer") return "The answer: the explorer has stopped with it.";
  if (kind === "candidate") return "The best guess so far; it may break a constraint.";
  if (kind === "none") return why === null ? "There is no mix to show yet." : asSentence(why);
  if (!isProvedFeasible(view)) return "The best mix so far that seems feasible (not proved); the answer may be better.";
  return `The best mix so far that is proved feasible (${describeTrust(view)}); the answer may be better.`;
}

function describeValue(view) {
  const { value, value_interval: interval } = view.mix;
  const range = interval === null ? "" : `, ${formatInterval(...interval, describeBounds(view))}`;
  return `Mean reward of this mix: about ${formatNumber(value)}${range}.`;
}

function makeTable({ arms, shares, allocation, pulls }) {
  return makeNumberTable({
    caption: "Share of each arm in the mix and in the sampling",
    columns: ["Arm", "Mix", "Allocation", "Outcomes"],
    rows: arms.map((arm) => [
      el("span", { class: "clamped", title: arm }, arm),
      makeShare(shares?.[arm], "mix"),
      makeShare(allocation[arm], "allocation"),
      makeNumberCell(formatCount(pulls[arm])),
    ]),
    attributes: { class: "shares" },
  });
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
