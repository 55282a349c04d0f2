// What each constraint leaves and what it costs: slack, price, and how the slack has moved.

import { makeLineChart } from "../charts/line_chart.js";
import { el, makeNumberCell, makeNumberTable, makeSlot, panel } from "../dom.js";
import { formatConstraint, formatNumber, isNumber } from "../format.js";
import { describeBounds } from "./claims.js";

/** Colours and dashes that charts.css has for lines; no number divides both, so that thirty lines look different. */
const COLOURS = 6;
const DASHES = 5;

export function makeConstraintsPanel(problem) {
  const { constraints } = problem;
  const body = el("div", { class: "scroll-x" });
  const show = makeSlot(body, (data) => makeTable(constraints, data));
  const look = (i) => `series-${(i % COLOURS) + 1} dash-${i % DASHES}`;
  const series = constraints.map(({ name }, i) => ({ label: name, look: look(i) }));
  const chart = makeLineChart({ name: "Slack", series, height: 180 });
  const title = el("h3", { class: "chart-title" }, "Slack of the explorer's candidate, by outcomes");
  const trend = el("div", {}, title, chart.node);
  const meaning =
    "Slack is the room the mix leaves below (or above) the bound. The price is the mean reward gained per unit of " +
    "bound, were the estimates true: 0 where the bound does not bind.";
  const lead = el("p", { class: "lead" });

  return {
    node: panel("Slack and prices", null, lead, body, trend),
    update(view) {
      const { mix, prices, trace } = view;
      const least = ` “At least”: the least that it may be (${describeBounds(view)}).`;
      lead.textContent = `${meaning}${mix.slack_low === null ? "" : least}`;
      show({ slack: mix.slack, low: mix.slack_low, prices });
      const lines = constraints.map(({ name }) => trace.slack[name] ?? trace.steps.map(() => null));
      trend.hidden = !lines.some((line) => line.some(isNumber));
      const latest = constraints.map(({ name }) => `${name} ${formatNumber(mix.slack?.[name])}`).join(", ");
      chart.update({
        steps: trace.steps,
        lines,
        range: { x: [0, (trace.steps.at(-1) || 1) * 1.02], y: spread(lines.flat().filter(isNumber)) },
        shade: null,
        label: `Slack that the explorer's candidate leaves, by outcomes used. Of the mix now: ${latest}.`,
      });
    },
  };
}

/** A range that always shows zero, where slack turns into excess. */
function spread(values) {
  const [least, most] = [Math.min(0, ...values), Math.max(0, ...values)];
  const room = (most - least || 1) * 0.08;
  return [least - room, most + room];
}

/** A mix on the edge of its set leaves no slack but what the solver rounds off. */
function settle(slack, bound) {
  return isNumber(slack) && Math.abs(slack) < 1e-7 * Math.abs(bound) ? 0 : slack;
}

function makeHeading(constraint) {
  const text = formatConstraint(constraint);
  return [
    el("span", { class: "clamped", title: text }, text),
    constraint.known ? el("span", { class: "muted small" }, "costs known") : null,
  ];
}

function makeTable(constraints, { slack, low, prices }) {
  const number = (value) => makeNumberCell(formatNumber(value));
  return makeNumberTable({
    caption: "Slack and price of each constraint",
    columns: ["Constraint", "Slack", "At least", "Price"],
    rows: constraints.map((constraint) => [
      makeHeading(constraint),
      number(settle(slack?.[constraint.name], constraint.bound)),
      number(settle(low?.[constraint.name], constraint.bound)),
      number(prices[constraint.name]),
    ]),
  });
}
