// From what was typed to the document that the server takes, and what is wrong with it.

import { countOf } from "../format.js";

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
    ...readReward(form, arms.length, refuse),
    delta: readNumber(form.delta, refuse, (x) => x > 0 && x < 1, "between 0 and 1, like 0.05"),
    r: readNumber(form.r, refuse, (x) => x >= 0, "0 or more, like 0.05"),
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
  const family = form.family.value;
  if (family === "gaussian") {
    return { reward_std: readPerArm(form.rewardStd, armCount, refuse, (x) => x > 0, "larger than 0") };
  }
  if (family === "estimated") return {};
  if (family !== "bounded") return { family };
  const ends = readRange(form.rewardLow, form.rewardHigh, refuse, "Must be larger than the least reward.");
  return { reward_range: ends, reward_cap: form.rewardCap.value === "cap" };
}

function readRange(lowest, largest, refuse, complaint) {
  const low = readNumber(lowest, refuse);
  const high = readNumber(largest, refuse);
  if (low !== null && high !== null && low >= high) refuse(largest, complaint);
  return [low, high];
}

function readConstraints(rows, armCount, refuse) {
  const names = readNames(rows, "a constraint", refuse);
  return rows.map((row, i) => ({
    name: names[i],
    sense: row.sense.value,
    bound: readNumber(row.bound, refuse),
    ...readCosts(row, armCount, refuse),
  }));
}

function readCosts(row, armCount, refuse) {
  switch (row.kind.value) {
    case "row":
      return { row: readList(row.costs, armCount, refuse) };
    case "std":
      return { std: readPerArm(row.costs, armCount, refuse, (x) => x > 0, "larger than 0") };
    case "range":
      return {
        range: readRange(row.low, row.high, refuse, "Must be larger than the least cost."),
        cap: row.cap.value === "cap",
      };
    default:
      return {}; // its noise is estimated
  }
}

function checkExplorer(form, problem, explorers, refuse) {
  const certified = explorers.find(({ name }) => name === form.explorer.value)?.certified ?? false;
  if (!certified) return;
  if (problem.r === 0) refuse(form.r, `${form.explorer.value} proves its answers, which needs r larger than 0.`);
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
  if (problem.constraints.every((constraint) => "row" in constraint)) {
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
