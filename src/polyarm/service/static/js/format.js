// Numbers, shares and times as people read them.

export const UNKNOWN = "–";

/** What arithmetic leaves of a zero. */
const ROUND_OFF = 1e-12;

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const plain = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const percent = new Intl.NumberFormat("en", { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** A count: 1,234. */
export function formatCount(value) {
  return isNumber(value) ? whole.format(value) : UNKNOWN;
}

/** A measurement, to four digits; very large and very small ones as powers of ten. */
export function formatNumber(value) {
  if (!isNumber(value)) return UNKNOWN;
  const size = Math.abs(value);
  if (size < ROUND_OFF) return "0";
  if (size >= 1e7 || size < 1e-4) return minus(value.toExponential(2));
  return minus(plain.format(value));
}

/** A share of a mix: 64.2%. */
export function formatShare(value) {
  return isNumber(value) ? percent.format(value) : UNKNOWN;
}

/** A confidence, which must not be rounded up: 95%, 99.9%, 99.999%. */
export function formatConfidence(delta) {
  const unit = 10 ** Math.max(2, Math.ceil(-Math.log10(delta)));
  return `${Math.floor(100 * (1 - delta) * unit + 1e-6) / unit}%`;
}

/** "between 1 and 2 (95%)"; `how` says how far that is to be trusted. */
export function formatInterval(low, high, how) {
  return `between ${formatNumber(low)} and ${formatNumber(high)} (${how})`;
}

/** About how many: two digits, since the estimate is no better. */
export function formatRough(value) {
  if (value < 10) return whole.format(Math.max(0, Math.ceil(value)));
  const unit = 10 ** (Math.floor(Math.log10(value)) - 1);
  return whole.format(Math.round(value / unit) * unit);
}

/** A time of the log, in the reader's zone: the hour if it was today, else the day too. */
export function formatTime(iso) {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return iso;
  const clock = time.toLocaleTimeString("en-GB");
  return time.toDateString() === new Date().toDateString() ? clock : `${formatDay(iso)} ${clock.slice(0, 5)}`;
}

export function formatDay(iso) {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return iso;
  return time.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
}

/** A remark of the server, which has no full stop, as a sentence of its own. */
export function asSentence(remark) {
  return `${remark.charAt(0).toUpperCase()}${remark.slice(1)}.`;
}

/** "a, b and c" */
export function listWords(words) {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** "1 trial", "2 trials" */
export function countOf(count, noun) {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** A constraint as one writes it: price ≤ 1. */
export function formatConstraint(constraint) {
  return `${constraint.name} ${formatSense(constraint.sense)} ${formatNumber(constraint.bound)}`;
}

export function formatSense(sense) {
  return sense === "<=" ? "≤" : "≥";
}

export function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

function minus(text) {
  return text.replace("-", "−");
}
