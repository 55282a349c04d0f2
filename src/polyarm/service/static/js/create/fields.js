// Labelled inputs that can say what is wrong with them.

import { el, freshId } from "../dom.js";

/** A field: {node, input, label, title, scope, value, setFault(message | null)}; `attributes` are those of its input. */
export function textField(label, { hint = null, ...attributes } = {}) {
  return makeField(label, hint, (id) => el("input", { class: "input", id, autocomplete: "off", ...attributes }));
}

/** A field for a number; text, so that what was typed can be shown back however wrong it is. */
export function numberField(label, options = {}) {
  return textField(label, { inputmode: "decimal", ...options, class: "input numeric" });
}

/** Options: [[value, words], ...]. */
export function selectField(label, options, { hint = null, ...attributes } = {}) {
  const choices = options.map(([value, words]) => el("option", { value }, words));
  return makeField(label, hint, (id) => el("select", { class: "input", id, ...attributes }, choices));
}

function makeField(label, hint, makeInput) {
  const id = freshId("field");
  const input = makeInput(id);
  const caption = el("label", { for: id }, label);
  const help = hint === null ? null : el("p", { class: "hint", id: `${id}-hint` }, hint);
  const fault = el("p", { class: "fault", id: `${id}-fault`, hidden: true });
  const describedBy = [help?.id, fault.id].filter(Boolean).join(" ");
  input.setAttribute("aria-describedby", describedBy);
  // What is being mended is no longer marked. The message keeps its place until the next try: were the page to move
  // while somebody leaves the field by pressing a button, the press would miss it.
  input.addEventListener("input", () => {
    input.removeAttribute("aria-invalid");
    fault.classList.add("mended");
  });
  return {
    node: el("div", { class: "field" }, caption, input, fault, help),
    input,
    /** What the field belongs to, if there are several like it: "Constraint 1". */
    scope: null,
    get title() {
      return this.scope === null ? caption.textContent : `${this.scope}, ${caption.textContent}`;
    },
    set label(text) {
      caption.textContent = text;
    },
    get value() {
      return input.value.trim();
    },
    setFault(message) {
      fault.textContent = message ?? "";
      fault.classList.remove("mended");
      fault.hidden = message === null;
      if (message === null) input.removeAttribute("aria-invalid");
      else input.setAttribute("aria-invalid", "true");
    },
  };
}
