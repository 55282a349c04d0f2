// Lists of rows in the form: arms, and constraints.

import { el, freshId } from "../dom.js";
import { numberField, selectField, textField } from "./fields.js";

/** Rows that can be added and removed; `make(remove, rows)` returns a row with its `node` and its `first` field. */
function makeRows({ legend, lead, addLabel, least, make, onChange }) {
  const rows = [];
  const list = el("div", { class: "rows" });
  const heading = freshId("rows");

  function add({ focus }) {
    const remove = el("button", { class: "button remove", type: "button" }, "Remove");
    const row = make(remove, rows);
    remove.addEventListener("click", () => drop(row));
    rows.push(row);
    list.append(row.node);
    renew();
    if (focus) row.first.input.focus();
  }

  function drop(row) {
    const at = rows.indexOf(row);
    rows.splice(at, 1);
    row.node.remove();
    renew();
    (rows[Math.min(at, rows.length - 1)]?.first.input ?? addButton).focus();
  }

  function renew() {
    rows.forEach((row, i) => {
      row.renumber(i + 1);
      row.remove.disabled = rows.length <= least;
    });
    onChange(rows);
  }

  const addButton = el("button", { class: "button", type: "button" }, addLabel);
  addButton.addEventListener("click", () => add({ focus: true }));
  const node = el(
    "fieldset",
    { "aria-describedby": heading },
    el("legend", {}, legend),
    el("p", { class: "hint muted small", id: heading }, lead),
    list,
    addButton,
  );
  return { node, rows, add };
}

export function makeArmRows(onChange) {
  const group = makeRows({
    legend: "Arms",
    lead: "The options to mix: models, prices, routes. At least two, with different names.",
    addLabel: "Add an arm",
    least: 2,
    onChange,
    make(remove, rows) {
      const name = textField("Arm", { maxlength: "200" });
      name.input.addEventListener("input", () => onChange(rows));
      const line = el("div", { class: "arm-row" }, name.input, remove);
      name.node.insertBefore(line, name.node.querySelector(".fault"));
      return {
        node: name.node,
        first: name,
        name,
        remove,
        renumber(number) {
          name.label = `Arm ${number}`;
          remove.setAttribute("aria-label", `Remove arm ${number}`);
        },
      };
    },
  });
  group.add({ focus: false });
  group.add({ focus: false });
  return group;
}

const COSTS = {
  std: { label: "Noise of a cost (std)", hint: "one number, or one per arm: 0.3, 0.2" },
  row: { label: "Costs, one per arm", hint: "in the order of the arms: 0.2, 0.8" },
};

export function makeConstraintRows() {
  return makeRows({
    legend: "Constraints",
    lead: "The mean cost of the mix, compared with a bound. Leave out for none.",
    addLabel: "Add a constraint",
    least: 0,
    onChange() {},
    make(remove) {
      const name = textField("Name", { maxlength: "200" });
      const sense = selectField("Sense", [
        ["<=", "≤ at most"],
        [">=", "≥ at least"],
      ]);
      const bound = numberField("Bound");
      const kind = selectField("Costs are", [
        ["std", "measured"],
        ["row", "known"],
      ]);
      const costs = numberField(COSTS.std.label, { hint: COSTS.std.hint });
      kind.input.addEventListener("change", () => {
        costs.label = COSTS[kind.value].label;
        costs.node.querySelector(".hint").textContent = COSTS[kind.value].hint;
      });
      const fields = [name, sense, bound, kind, costs];
      return {
        node: el("div", { class: "constraint-row", role: "group" }, fields.map(({ node }) => node), remove),
        first: name,
        name,
        sense,
        bound,
        kind,
        costs,
        remove,
        renumber(number) {
          this.node.setAttribute("aria-label", `Constraint ${number}`);
          for (const field of fields) field.scope = `Constraint ${number}`;
          remove.setAttribute("aria-label", `Remove constraint ${number}`);
        },
      };
    },
  });
}

/** Shares of the control mix, one field per arm; names follow the arms as they are typed. */
export function makeControlFields() {
  const fields = [];
  const node = el("div", { class: "columns" });
  return {
    node,
    fields,
    follow(names) {
      while (fields.length > names.length) fields.pop().node.remove();
      while (fields.length < names.length) {
        fields.push(numberField(""));
        node.append(fields.at(-1).node);
      }
      names.forEach((name, i) => {
        fields[i].label = `Share of ${name || `arm ${i + 1}`}, in %`;
      });
    },
  };
}
