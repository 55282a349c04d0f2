// The top of a study page: what it looks for and how it stands, in words.

import { announce, el, makeSlot } from "../dom.js";
import { isNumber } from "../format.js";
import { readClaims } from "./claims.js";
import { describeQuestion, describeState } from "./sentences.js";

export function makeHeadline() {
  const line = el("p", { class: "state-line" });
  const detail = el("p", { class: "state-detail" });
  const bar = el("div");
  const meter = el("div", { class: "meter", "aria-hidden": "true" }, bar);
  const node = el("section", { class: "state", "aria-label": "State" }, line, detail, meter);
  const question = el("p", { class: "muted" });
  const showQuestion = makeSlot(question, describeQuestion);
  let state = null;

  return {
    node,
    question,
    update(view) {
      const { headline, detail: more } = describeState(view);
      node.className = `state ${view.status.state}${isDoubtful(view) ? " doubtful" : ""}`;
      line.textContent = headline;
      detail.textContent = more;
      detail.hidden = more === "";
      showQuestion(view.problem);
      showProgress(view.status, meter, bar);
      if (state !== null && state !== view.status.state) announce(headline); // numbers change all the time: not those
      state = view.status.state;
    },
  };
}

/** An end that is not proved. */
function isDoubtful(view) {
  return ["answered", "infeasible"].includes(view.status.state) && readClaims(view).missing.length > 0;
}

/** How much of the expected number of outcomes is in. */
function showProgress({ state, used, expected_stop: stop }, meter, bar) {
  const known = state === "exploring" && stop !== null && isNumber(stop[1]) && stop[1] > 0;
  meter.hidden = !known;
  if (known) bar.style.width = `${Math.min(100, (100 * used) / ((stop[0] + stop[1]) / 2)).toFixed(1)}%`;
}
