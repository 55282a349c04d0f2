// How to feed a study that has no outcomes yet.

import { studyPath } from "../api.js";
import { el, panel } from "../dom.js";

export function makeFeedPanel(id, problem, session) {
  const measured = problem.constraints.filter((constraint) => !constraint.known);
  const tells = [{ trial: 1, reward: 0.6, costs: Object.fromEntries(measured.map(({ name }) => [name, 0.2])) }];
  const token = session.open ? "" : ' \\\n  -H "Authorization: Bearer $POLYARM_TOKEN"';
  const url = `${location.origin}${studyPath(id)}`;
  const call = (action, body) =>
    `curl ${url}/${action}${token} \\\n  -H "Content-Type: application/json" -d ${quote(body)}`;
  const commands = `${call("ask", { n: 5 })}\n\n${call("tell", { tells })}`;
  const node = panel(
    "Feed it",
    "Ask which arms to try, try them, tell what they gave; in any order, whenever it is known.",
    el("pre", { tabindex: "0", role: "region", "aria-label": "Commands that feed this study" }, commands),
  );
  node.classList.add("wide");
  return {
    node,
    update({ status }) {
      node.hidden = status.told + status.observed > 0;
    },
  };
}

/** A JSON text as one word of a shell. */
function quote(value) {
  return `'${JSON.stringify(value).replaceAll("'", "'\\''")}'`;
}
