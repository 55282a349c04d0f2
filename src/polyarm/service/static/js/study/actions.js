// The buttons of a study page: stop, resume, archive, the certificate, exports.

import { changeStudy, getCertificate, studyPath } from "../api.js";
import { ask } from "../dialog.js";
import { el } from "../dom.js";

const STOP = {
  title: "Stop this study?",
  text: "No new trials are handed out until it is resumed. Outcomes of trials under way are still taken.",
  confirm: "Stop",
  field: "Reason, for the log (optional)",
};
const RESUME = {
  title: "Resume this study?",
  text: "It hands out trials again.",
  confirm: "Resume",
};
const RESUME_TRIPPED = {
  title: "Resume exploring?",
  text: "The circuit breaker has tripped. If you resume, the constraints that tripped it will not trip it again.",
  confirm: "Resume",
};
const ARCHIVE = {
  title: "Archive this study?",
  text: "It takes neither asks nor outcomes until it is resumed. Nothing is deleted.",
  confirm: "Archive",
};

/** `onChange` is called after the study was changed. */
export function makeActions(id, frame, onChange) {
  const fault = el("p", { class: "notice error", role: "alert", hidden: true });
  let state = null;
  let name = "study";

  function button(label, act) {
    return el("button", { class: "button", type: "button", on: { click: () => attempt(act) } }, label);
  }

  async function attempt(act) {
    fault.hidden = true;
    try {
      await act();
    } catch (error) {
      if (error.status === 401) return frame.fail(error);
      fault.textContent = error.message;
      fault.hidden = false;
    }
  }

  async function change(action, question) {
    const answer = await ask(question);
    if (answer === null) return;
    await changeStudy(id, action, action === "stop" ? { reason: answer } : {});
    onChange();
  }

  const stop = button("Stop", () => change("stop", STOP));
  const resume = button("Resume", () => change("resume", state === "tripped" ? RESUME_TRIPPED : RESUME));
  const archive = button("Archive", () => change("archive", ARCHIVE));
  const certificate = button("Download certificate", async () => {
    save(await getCertificate(id), `${fileName(name)}.certificate.json`);
  });
  const exports = ["csv", "json", "parquet"].map((format) => {
    const href = `${studyPath(id)}/export?format=${format}`;
    return el("a", { class: "button quiet", href, "aria-label": `Export as ${format}` }, format);
  });
  const node = el(
    "div",
    { class: "stack" },
    el(
      "div",
      { class: "buttons" },
      [stop, resume, archive, certificate],
      el("span", { class: "exports" }, "Export:", exports),
    ),
    fault,
  );

  return {
    node,
    update({ study, status, mix }) {
      state = status.state;
      name = study.name;
      const ended = state === "answered" || state === "infeasible";
      setHidden(stop, !frame.canManage || (state !== "exploring" && state !== "tripped"), resume);
      setHidden(resume, !frame.canManage || !["stopped", "archived", "tripped"].includes(state), stop);
      setHidden(archive, !frame.canManage || state === "archived", resume);
      certificate.disabled = !ended && mix.kind !== "answer";
      certificate.title = certificate.disabled ? "There is one when the explorer has stopped with a proof." : "";
    },
  };
}

/** Hides a button; if it had the focus, the one that takes its place gets it. */
function setHidden(button, hidden, heir) {
  const focused = document.activeElement === button;
  button.hidden = hidden;
  if (hidden && focused) setTimeout(() => heir.focus());
}

function fileName(name) {
  return name.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 80);
}

function save(blob, filename) {
  const url = URL.createObjectURL(blob);
  el("a", { href: url, download: filename }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
