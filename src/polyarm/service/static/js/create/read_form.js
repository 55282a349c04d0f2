// From what was typed to the document that the server takes, and what is wrong with it.

import { countOf } from "../format.js";

const CERTIFIABLE = ["gaussian", "bernoulli", "bounded"];
const UNITS = { minutes: 60, hours: 3600, days: 86400 };

/** Returns {document, faults: [{field, message}]}; send the document only if there are no faults. */
export function readForm(form, explorers) {
  const faults = [];
  const refuse = (field, message) => {
    if (!faults.some((fault) => fault.field === field)) faults.push({ field, message });
    return null;
  };
  const arms = readNames(form.arms.rows, "an arm", refuse);
  const problem = {
    arms,
    family: form.family.value,
    ...readReward(form, arms.length, refuse),
    delta: readNumber(form.delta, refuse, (x) => x > 0 && x < 1, "between 0 and 1, like 0.05"),
    r: readNumber(form.r, refuse, (x) => x >= 0, "0 or more, like 0.05"),
    noise: form.noise.value,
    constraints: readConstraints(form.constraints.rows, arms.length, refuse),
  };
  checkExplorer(form, problem, explorers, refuse);
  const document = {
    name: form.name.value || refuse(form.name, "Give the study a name."),
    problem,
    explorer: form.explorer.value,
    settings: {},
    seed: readSeed(form.seed, refuse),
    lease: readLease(form, refuse),
    breaker: readBreaker(form, arms, problem, refuse),
  };
  return { document, faults };
}

function readNames(rows, noun, refuse) {
  const names = rows.map(({ name }) => name.value);
  names.forEach((name, i) => {
    if (name === "") refuse(rows[i].name, `Give ${noun} a name.`);
    else if (names.indexOf(name) < i) refuse(rows[i].name, `“${name}” stands above already; names must differ.`);
  });
  return names;
}

function readReward(form, armCount, refuse) {
  if (form.family.value === "gaussian") {
    return { reward_std: readPerArm(form.rewardStd, armCount, refuse, (x) => x > 0, "larger than 0") };
  }
  if (form.family.value !== "bounded") return {};
  const low = readNumber(form.rewardLow, refuse);
  const high = readNumber(form.rewardHigh, refuse);
  if (low !== null && high !== null && low >= high) refuse(form.rewardHigh, "Must be larger than the least reward.");
  return { reward_range: [low, high] };
}

function readConstraints(rows, armCount, refuse) {
  const names = readNames(rows, "a constraint", refuse);
  return rows.map((row, i) => {
    const known = row.kind.value === "row";
    const costs = known
      ? readList(row.costs, armCount, refuse)
      : readPerArm(row.costs, armCount, refuse, (x) => x > 0, "larger than 0");
    return {
      name: names[i],
      sense: row.sense.value,
      bound: readNumber(row.bound, refuse),
      [known ? "row" : "std"]: costs,
    };
  });
}

function checkExplorer(form, problem, explorers, refuse) {
  const certified = explorers.find(({ name }) => name === form.explorer.value)?.certified ?? false;
  if (!certified) return;
  if (problem.r === 0) refuse(form.r, `${form.explorer.value} proves its answers, which needs r larger than 0.`);
  if (!CERTIFIABLE.includes(problem.family)) {
    const takes = `${form.explorer.value} takes ${CERTIFIABLE.join(", ")} rewards`;
    refuse(form.explorer, `${takes}; choose another explorer or family.`);
  }
}

function readSeed(field, refuse) {
  if (field.value === "") return null;
  const seed = Number(field.value);
  if (!Number.isSafeInteger(seed) || seed < 0) return refuse(field, "A whole number, 0 or more; or leave it empty.");
  return seed;
}

function readLease(form, refuse) {
  if (form.lease.value === "") return null;
  const length = readNumber(form.lease, refuse, (x) => x > 0, "larger than 0, or empty for none");
  return length === null ? null : length * UNITS[form.leaseUnit.value];
}

/** Null unless some share was typed; empty shares are 0. */
function readBreaker(form, arms, problem, refuse) {
  const fields = form.control.fields;
  if (fields.every((field) => field.value === "")) return null;
  const shares = fields.map((field) =>
    field.value === "" ? 0 : readNumber(field, refuse, (x) => x >= 0 && x <= 100, "from 0 to 100"),
  );
  if (shares.includes(null)) return null;
  const total = shares.reduce((sum, share) => sum + share, 0);
  if (Math.abs(total - 100) > 0.01) {
    return refuse(fields[0], `The shares must add up to 100%, not ${Number(total.toFixed(4))}%.`);
  }
  if (!problem.constraints.some((constraint) => "std" in constraint)) {
    return refuse(fields[0], "There is no measured constraint for the breaker to watch.");
  }
  return { control: Object.fromEntries(arms.map((arm, i) => [arm, shares[i] / total])), constraints: null };
}

function readPerArm(field, armCount, refuse, fits, expected) {
  const numbers = parseNumbers(field.value);
  if (numbers === null || !numbers.every(fits)) return refuse(field, `One number ${expected}, or one per arm.`);
  if (numbers.length === 1) return numbers[0];
  return checkLength(field, numbers, armCount, refuse);
}

function readList(field, armCount, refuse) {
  const numbers = parseNumbers(field.value);
  if (numbers === null) return refuse(field, "One number per arm, separated by commas.");
  return checkLength(field, numbers, armCount, refuse);
}

function checkLength(field, numbers, armCount, refuse) {
  if (numbers.length === armCount) return numbers;
  return refuse(field, `There are ${armCount} arms, but ${countOf(numbers.length, "number")} here.`);
}

function readNumber(field, refuse, fits = () => true, expected = "") {
  const numbers = parseNumbers(field.value);
  if (numbers?.length === 1 && fits(numbers[0])) return numbers[0];
  return refuse(field, expected === "" ? "A number, like 0.5." : `A number ${expected}.`);
}

/** The numbers in a text, separated by commas, semicolons or spaces; null if there are none or one is not a number. */
function parseNumbers(text) {
  const parts = text.split(/[\s,;]+/).filter((part) => part !== "");
  const numbers = parts.map(Number);
  return parts.length > 0 && numbers.every(Number.isFinite) ? numbers : null;
}
