// Asking before something is done that others will notice.

import { el, freshId } from "./dom.js";

/** Shows a question; resolves to null when it is declined, else to the text of its field ("" without one). */
export function ask({ title, text, confirm, field = null }) {
  const heading = freshId("dialog");
  const inputId = freshId("answer");
  const attributes = { class: "input", id: inputId, maxlength: "500", autocomplete: "off" };
  const input = field === null ? null : el("input", attributes);
  const dialog = el(
    "dialog",
    { "aria-labelledby": heading },
    el(
      "form",
      { method: "dialog", class: "stack" },
      el("h2", { id: heading }, title),
      el("p", {}, text),
      input && el("div", { class: "field" }, el("label", { for: inputId }, field), input),
      el(
        "div",
        { class: "buttons" },
        el("button", { class: "button primary", value: "yes" }, confirm),
        el("button", { class: "button", type: "button", on: { click: () => dialog.close("no") } }, "Cancel"),
      ),
    ),
  );
  document.body.append(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes" ? (input?.value.trim() ?? "") : null);
    });
    dialog.showModal();
  });
}
