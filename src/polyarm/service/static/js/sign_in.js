// The sign-in form: an API token becomes a session, kept in a cookie that scripts cannot read.

import { signIn } from "./api.js";
import { el } from "./dom.js";

export function showSignIn(container, frame, onSignedIn) {
  frame.setTitle("Sign in");
  const fault = el("p", { class: "notice error", role: "alert", hidden: true });
  const input = el("input", {
    class: "input",
    id: "token",
    type: "password",
    autocomplete: "current-password",
    spellcheck: "false",
    "aria-describedby": "token-hint",
  });
  const button = el("button", { class: "button primary", type: "submit" }, "Sign in");

  async function submit(event) {
    event.preventDefault();
    fault.hidden = true;
    const token = input.value.trim();
    if (token === "") return complain("Enter a token.");
    button.disabled = true;
    try {
      await signIn(token);
      await onSignedIn();
    } catch (error) {
      complain(error.status === 401 ? `This token does not work: ${error.message}` : error.message);
    } finally {
      button.disabled = false;
    }
  }

  function complain(text) {
    fault.textContent = text;
    fault.hidden = false;
    input.setAttribute("aria-invalid", "true");
    input.focus();
  }

  container.replaceChildren(
    el(
      "section",
      { class: "panel narrow stack" },
      el("h1", { tabindex: "-1" }, "Sign in"),
      fault,
      el(
        "form",
        { class: "stack", novalidate: true, on: { submit } },
        el(
          "div",
          { class: "field" },
          el("label", { for: "token" }, "API token"),
          input,
          el(
            "p",
            { class: "hint", id: "token-hint" },
            "It starts with pa_. Whoever runs this server makes one with ",
            el("code", {}, "polyarm token create NAME"),
            ".",
          ),
        ),
        button,
      ),
    ),
  );
}
