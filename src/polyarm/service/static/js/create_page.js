// The form that creates a study: checked here for what people mistype, by the server for the rest.

import { createStudy, getExplorers } from "./api.js";
import { numberField, selectField, textField } from "./create/fields.js";
import { readForm } from "./create/read_form.js";
import { makeArmRows, makeConstraintRows, makeControlFields } from "./create/rows.js";
import { findField } from "./create/server_faults.js";
import { el } from "./dom.js";
import { countOf } from "./format.js";
import { studyRoute } from "./router.js";

const FAMILIES = [
  ["gaussian", "Gaussian: any number, with noise"],
  ["bernoulli", "Bernoulli: 0 or 1"],
  ["bounded", "Bounded: between two numbers"],
  ["poisson", "Poisson: counts"],
  ["exponential", "Exponential: waiting times"],
];

const CREATE = "Create the study";

export async function showCreatePage(container, frame) {
  frame.setTitle("New study");
  const { explorers } = await getExplorers(frame.signal);
  const form = makeForm(explorers);
  const summary = el("div", { role: "alert" });
  const button = el("button", { class: "button primary", type: "submit" }, CREATE);
  let marked = [];

  function showFaults(faults, title) {
    for (const field of marked) field.setFault(null);
    marked = faults.map(({ field }) => field).filter((field) => field !== null);
    for (const { field, message } of faults) field?.setFault(message);
    summary.replaceChildren(...(faults.length === 0 ? [] : [describeFaults(faults, title)]));
  }

  function check() {
    const { document, faults } = readForm(form, explorers);
    faults.sort(byPlace);
    showFaults(faults, `${countOf(faults.length, "thing")} to fix`);
    return faults.length === 0 ? document : null;
  }

  async function submit(event) {
    event.preventDefault();
    const document = check();
    if (document === null) return reveal(marked[0]);
    button.disabled = true;
    button.textContent = "Creating…"; // the first study of a kind may have to wait for a compiler
    try {
      const study = await createStudy(document);
      location.hash = studyRoute(study.id);
    } catch (error) {
      if (error.status === 401) return frame.fail(error);
      showFaults(placeFaults(form, error), error.title);
      reveal(marked[0]);
    } finally {
      button.disabled = false;
      button.textContent = CREATE;
    }
  }

  container.replaceChildren(
    el("div", { class: "page-head" }, el("h1", { tabindex: "-1" }, "New study")),
    el(
      "form",
      { class: "stack", novalidate: true, on: { submit } },
      summary,
      layOut(form),
      el("div", { class: "buttons" }, button, el("a", { class: "button", href: "#/" }, "Cancel")),
    ),
  );
}

function makeForm(explorers) {
  const control = makeControlFields();
  const arms = makeArmRows((rows) => control.follow(rows.map(({ name }) => name.value)));
  const options = explorers.map(({ name, certified }) => [name, certified ? `${name} (proves its answer)` : name]);
  const form = {
    name: textField("Name", { maxlength: "200", hint: "how people find the study; it cannot be changed later" }),
    arms,
    constraints: makeConstraintRows(),
    family: selectField("Rewards are", FAMILIES),
    rewardStd: numberField("Noise of one reward (std)", {
      hint: "standard deviation; one number, or one per arm: 0.2, 0.3",
    }),
    rewardLow: numberField("Least reward", { value: "0" }),
    rewardHigh: numberField("Largest reward", { value: "1" }),
    delta: numberField("Error probability delta", { value: "0.05", hint: "0.05 is a confidence of 95%" }),
    r: numberField("Tolerance r", {
      value: "0.05",
      hint: "how far below the best mix the answer may be; smaller takes longer",
    }),
    explorer: selectField("Explorer", options),
    lease: numberField("Lease of a trial", { hint: "a trial not told by then is given up; empty: never" }),
    leaseUnit: selectField(
      "Unit",
      ["hours", "minutes", "days"].map((unit) => [unit, unit]),
    ),
    noise: selectField("Reward and costs of one trial are", [
      ["correlated", "perhaps correlated (safe)"],
      ["independent", "independent"],
    ]),
    seed: textField("Seed", { inputmode: "numeric", hint: "a whole number; empty: drawn at random" }),
    control,
  };
  form.family.input.addEventListener("change", () => showRewardFields(form));
  showRewardFields(form);
  return form;
}

function showRewardFields({ family, rewardStd, rewardLow, rewardHigh }) {
  rewardStd.node.hidden = family.value !== "gaussian";
  rewardLow.node.hidden = rewardHigh.node.hidden = family.value !== "bounded";
}

function layOut(form) {
  const columns = (...fields) => el("div", { class: "columns" }, fields.map(({ node }) => node));
  const group = (title, ...children) =>
    el("div", { class: "panel" }, el("fieldset", { class: "stack" }, el("legend", {}, title), children));
  const rows = ({ node }) => el("div", { class: "panel" }, node);
  return [
    group("Study", columns(form.name, form.explorer)),
    rows(form.arms),
    group("Reward", columns(form.family, form.rewardStd, form.rewardLow, form.rewardHigh)),
    rows(form.constraints),
    group("Confidence", columns(form.delta, form.r)),
    el(
      "details",
      { class: "panel advanced" },
      el("summary", {}, "Advanced"),
      el(
        "div",
        { class: "stack" },
        el(
          "div",
          { class: "columns" },
          el("div", { class: "lease-row" }, form.lease.node, form.leaseUnit.node),
          form.noise.node,
          form.seed.node,
        ),
        el("h2", {}, "Circuit breaker"),
        el(
          "p",
          { class: "muted small" },
          "When the sampling itself is proved to break a constraint, trials follow this control mix until somebody ",
          "resumes the study. Leave empty for none.",
        ),
        form.control.node,
      ),
    ),
  ];
}

/** Faults in the order in which one meets their fields. */
function byPlace(a, b) {
  return a.field.node.compareDocumentPosition(b.field.node) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1;
}

/** Errors of the server beside the fields that they are about, the others on top. */
function placeFaults(form, error) {
  if (error.status === 409) return [{ field: form.name, message: error.message }];
  if (error.errors.length === 0) return [{ field: null, message: error.message }];
  return error.errors.map(({ where, message }) => ({ field: findField(form, where), message, where }));
}

function describeFaults(faults, title) {
  return el(
    "div",
    { class: "notice error" },
    el("strong", {}, title),
    el("ul", {}, faults.map(({ field, message, where }) => el("li", {}, nameFault(field, where), message))),
  );
}

function nameFault(field, where) {
  if (field !== null) return `${field.title}: `;
  return where ? `${where}: ` : null;
}

/** Brings a field with a fault into view, out of a closed part if need be; without one, the summary. */
function reveal(field) {
  if (field === undefined) return scrollTo(0, 0);
  const closed = field.node.closest("details");
  if (closed) closed.open = true;
  field.input.focus();
}
