// The page of one study: built once, then brought up to date in place whenever the study changes.

import { getLog, getView, studyPath } from "./api.js";
import { el } from "./dom.js";
import { formatDay } from "./format.js";
import { follow } from "./live.js";
import { makeActions } from "./study/actions.js";
import { makeClaimsPanel } from "./study/claims_panel.js";
import { makeConstraintsPanel } from "./study/constraints_panel.js";
import { makeCostPanel, makeRewardPanel } from "./study/estimates_panel.js";
import { makeFeedPanel } from "./study/feed_panel.js";
import { makeHeadline } from "./study/headline_panel.js";
import { makeHealthPanel } from "./study/health_panel.js";
import { makeLogPanel } from "./study/log_panel.js";
import { makeMixPanel } from "./study/mix_panel.js";
import { makeProgressPanel } from "./study/progress_panel.js";
import { makeRegionPanel } from "./study/region_panel.js";

const LOG_LENGTH = 200;
const RETRY_AFTER = 5000;
const STATUS_WORDS = { live: "Live", reconnecting: "Offline: trying again", paused: "Paused" };

export async function showStudyPage(container, frame, id) {
  const { signal } = frame;
  container.replaceChildren(el("p", { class: "muted" }, "Loading the study…"));
  const [view, log] = await fetchStudy(id, signal);
  const page = buildPage(id, view, frame, () => request());
  container.replaceChildren(...page.nodes);
  frame.setTitle(view.study.name);
  page.update(view, log);

  let failed = false;

  /** Returns after how many milliseconds to try again, if it must. */
  async function refresh() {
    try {
      page.update(...(await fetchStudy(id, signal)));
      if (failed) page.setLive("live");
      failed = false;
      return null;
    } catch (error) {
      if (error.name === "AbortError") return null;
      const passing = error.status === 0 || error.status === 429 || error.status >= 500;
      if (!passing) {
        frame.fail(error);
        return null;
      }
      failed = true;
      page.setLive("reconnecting");
      return RETRY_AFTER;
    }
  }

  const request = follow(`${studyPath(id)}/changes`, refresh, page.setLive, signal);
}

async function fetchStudy(id, signal) {
  const [view, log] = await Promise.all([getView(id, signal), getLog(id, LOG_LENGTH, signal)]);
  return [view, log.events];
}

function buildPage(id, first, frame, onChange) {
  const { problem, study } = first;
  const live = el("span", { class: "live" });
  const headline = makeHeadline();
  const actions = makeActions(id, frame, onChange);
  const logPanel = makeLogPanel(problem);
  const feed = makeFeedPanel(id, problem, frame.session);
  const mix = makeMixPanel();
  const region = makeRegionPanel(problem);
  const claims = makeClaimsPanel();
  const progress = makeProgressPanel();
  const reward = makeRewardPanel(problem);
  const constrained = problem.constraints.length > 0;
  const cost = constrained ? [makeCostPanel(problem)] : [];
  const slack = constrained ? [makeConstraintsPanel(problem)] : [];
  const health = makeHealthPanel();
  const long = problem.arms.length > 6; // then the table of the mix fills its column
  const column = (...parts) => el("div", { class: "column" }, parts.map(({ node }) => node));
  const nodes = [
    el(
      "div",
      { class: "page-head" },
      el(
        "div",
        {},
        el("p", { class: "crumbs" }, el("a", { href: "#/" }, "All studies")),
        el("h1", { tabindex: "-1" }, study.name),
        headline.question,
        el("p", { class: "muted small" }, `${first.status.explorer}, created ${formatDay(study.created_at)} · `, live),
      ),
      actions.node,
    ),
    headline.node,
    el(
      "div",
      { class: "panels" },
      feed.node,
      column(mix, ...(long ? [] : [claims])),
      column(region, ...(long ? [claims] : [])),
      progress.node,
      column(reward, ...cost),
      column(...slack, health),
      logPanel.node,
    ),
  ];
  return {
    nodes,
    setLive(status) {
      live.textContent = STATUS_WORDS[status];
      live.className = `live ${status === "live" ? "on" : status === "paused" ? "" : "off"}`;
    },
    update(view, log) {
      const parts = [headline, actions, feed, mix, region, claims, progress, reward, ...cost, ...slack, health];
      for (const part of parts) part.update(view);
      logPanel.update(log);
    },
  };
}
