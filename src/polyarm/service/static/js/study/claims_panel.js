// What is proved, what is not, and what all of it rests on.

import { el, makeSlot, panel } from "../dom.js";
import { asSentence } from "../format.js";
import { readClaims } from "./claims.js";

export function makeClaimsPanel() {
  const body = el("div", { class: "stack" });
  const show = makeSlot(body, makeLists);
  return {
    node: panel("What is proved", null, body),
    update(view) {
      show(readClaims(view));
    },
  };
}

function makeLists({ proved, missing, assumed }) {
  const lists = [
    makeList(assumed.length === 0 ? "Proved" : "Proved, if what is assumed below holds", proved, "proved"),
    makeList("Not proved", missing, "missing"),
    makeList("Assumed", assumed, "assumed"),
  ].filter((list) => list !== null);
  return lists.length > 0 ? lists : [el("p", { class: "muted" }, "Nothing yet.")];
}

function makeList(title, sentences, kind) {
  if (sentences.length === 0) return null;
  return el(
    "div",
    {},
    el("h3", {}, title),
    el("ul", { class: `claims ${kind}` }, sentences.map((sentence) => el("li", {}, asSentence(sentence)))),
  );
}
